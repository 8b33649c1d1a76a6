"""The results of a search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from hermes.state.row_types import SearchHit


SearchPath = Literal["words", "coverage", "substring", "scan"]


class SearchResults(list["SearchHit"]):
    """The found messages, and how they were found. An empty list means no match; a failure raises."""

    def __init__(
        self,
        hits: Iterable[SearchHit] = (),
        *,
        path: SearchPath = "words",
        degraded: bool = False,
        complete: bool = True,
        repairs: tuple[str, ...] = (),
        hidden: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(hits)
        self.path: SearchPath = path
        """words: through the index; coverage: no message has all words, these have some; substring: inside words;
        scan: row by row, without the index."""
        self.degraded = degraded
        """Whether the index is damaged or still being built, so that the search read messages."""
        self.complete = complete
        """False if the time limit ended the search before every message was considered."""
        self.repairs = repairs
        """Messages for the user about parts of the query that were ignored or changed."""
        self.hidden = dict(hidden or {})
        """How many matches are not shown, by reason, as far as the search got."""
