"""What a search answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from hermes.state.row_types import SearchHit


SearchPath = Literal["words", "substring", "scan"]


class SearchResults(list["SearchHit"]):
    """The found messages, and how they were found. Nothing found is an empty list; a failure is an error."""

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
        """words: through the index; substring: inside of words; scan: without an index, row by row."""
        self.degraded = degraded
        """The index is damaged or still being built, so messages themselves were read."""
        self.complete = complete
        """False: the time for a search was over before every message had been considered."""
        self.repairs = repairs
        """What was made of parts of the query that mean nothing."""
        self.hidden = dict(hidden or {})
        """How many matches are not shown, by reason, as far as they were seen."""
