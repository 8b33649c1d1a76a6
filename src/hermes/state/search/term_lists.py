"""An index that can be queried for several terms at once, as one on a server is: a round trip for each takes longer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

from hermes.query.tree import Node
from hermes.state.engine import Found, Reading
from hermes.state.search.scope import Scope


class TermLists(Protocol):
    """The messages that may have each of some terms, newest id first."""

    def read(self, numbers: Collection[int], /) -> Mapping[int, Found]:
        """Return the next messages for each of these terms, by its number; nothing for a list that has ended."""
        ...


@runtime_checkable
class ListIndex(Protocol):
    """An index that reads the lists of several terms together."""

    def term_lists(
        self, tx: Reading, terms: Sequence[Node], scope: Scope, low: int, high: int, limit: int, *, deadline: float
    ) -> TermLists:
        """Return the lists of terms with low <= id <= high; each is read until it has about `limit` messages."""
        ...
