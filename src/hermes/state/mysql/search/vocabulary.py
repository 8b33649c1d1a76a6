"""The words of all messages, to look up the words with a prefix or a part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hermes.query.analyze import GAP
from hermes.state.engine import Values
from hermes.state.mysql.connection.transaction import DIALECT
from hermes.state.mysql.search.document import CUT
from hermes.state.operations import chunks, placeholders
from hermes.state.server.search.word_patterns import Pattern

MOST_WORDS = 400
"""With more words than this, reading messages is faster if many messages have one of them, which is common."""
MOST_RARE_WORDS = 4_000
"""With more words than this, an index query is not worth trying."""


@dataclass
class Vocabulary:
    """Looks up words for one search."""

    query: Callable[..., list[Values]]
    """Runs a query."""
    _found: dict[tuple[Pattern, int], list[str] | None] = field(default_factory=dict)
    _ids: dict[str, int] = field(default_factory=dict)

    def __call__(self, pattern: Pattern) -> Sequence[str] | None:
        """The words of a pattern; None if they are too many for a query."""
        return self._look_up(pattern, MOST_WORDS)

    def all_of(self, pattern: Pattern) -> Sequence[str] | None:
        """The words of a pattern that are rare; None if they are far too many."""
        return self._look_up(pattern, MOST_RARE_WORDS)

    def ids(self, words: Sequence[str]) -> dict[str, int]:
        """The ids of words; words that no message has are left out."""
        for some in chunks([word for word in dict.fromkeys(words) if word not in self._ids]):
            listed, values = placeholders("word", some)
            self._ids.update(self.query(f"SELECT word, id FROM known_words WHERE word IN ({listed})", **values))
        return self._ids

    def _look_up(self, pattern: Pattern, limit: int) -> list[str] | None:
        if (pattern, limit) not in self._found:
            if pattern.is_beginning:
                condition, text = DIALECT.starts_with("word", "text"), pattern.text
            else:
                # Analyzed words have no wildcard characters.
                condition, text = "(word LIKE :text AND word NOT LIKE :mark) OR word = :cut", f"%{pattern.text}%"
            rows = self.query(
                f"SELECT word, id FROM known_words WHERE {condition} LIMIT :limit",
                text=text,
                mark=f"{GAP}%",
                cut=CUT,
                limit=limit + 1,
            )
            self._ids.update(rows)
            self._found[pattern, limit] = None if len(rows) > limit else [row[0] for row in rows]
        return self._found[pattern, limit]
