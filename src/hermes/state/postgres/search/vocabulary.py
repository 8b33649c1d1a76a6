"""The words of all messages, to look up the words with a prefix or a part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hermes.state.engine import Values
from hermes.state.postgres.connection.transaction import DIALECT
from hermes.state.server.search.word_patterns import Pattern

MOST_WORDS = 400
"""With more words than this, reading messages is faster if many messages have one of them, which is common."""
MOST_RARE_WORDS = 4_000
"""With more words than this, an index query is not worth trying."""
MOST_TOGETHER = 4_000
"""How many words one query may contain in total."""


@dataclass
class Vocabulary:
    """Looks up words for one search."""

    query: Callable[..., list[Values]]
    """Runs a query."""
    _named: int = 0
    _found: dict[Pattern, list[str] | None] = field(default_factory=dict)

    def __call__(self, pattern: Pattern) -> Sequence[str] | None:
        """The words of a pattern; None if they are too many for a query."""
        if pattern not in self._found:
            words = self._look_up(pattern, min(MOST_WORDS, MOST_TOGETHER - self._named))
            self._named += len(words or ())
            self._found[pattern] = words
        return self._found[pattern]

    def all_of(self, pattern: Pattern) -> Sequence[str] | None:
        """The words of a pattern that are rare; None if they are far too many."""
        return self._look_up(pattern, MOST_RARE_WORDS)

    def _look_up(self, pattern: Pattern, limit: int) -> list[str] | None:
        if pattern.is_beginning:
            condition, text = DIALECT.starts_with("word", "text"), pattern.text
        else:
            # Analyzed words have no wildcard characters.
            condition, text = "word LIKE :text", f"%{pattern.text}%"
        rows = self.query(f"SELECT word FROM known_words WHERE {condition} LIMIT :limit", text=text, limit=limit + 1)
        return None if len(rows) > limit else [row[0] for row in rows]
