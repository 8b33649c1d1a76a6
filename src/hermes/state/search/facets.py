"""The part of a scope that the index checks: roles, sources, owner and sessions."""

from __future__ import annotations

from typing import NamedTuple

from hermes.state.owner import TERMINAL
from hermes.state.search.scope import Scope

MAX_WANTED, MAX_EXCLUDED = 200, 32
"""How many values of a filter are looked up in the index; longer lists are checked on the rows."""


class Facet(NamedTuple):
    """Some values of one kind: roles (r), sources (s), owners (o) or sessions (i)."""

    kind: str
    values: tuple[str, ...]


class Facets(NamedTuple):
    """The filters for the index."""

    wanted: list[Facet]
    """A message has one value of each of these."""
    excluded: list[Facet]
    """A message has no value of these."""
    is_exact: bool
    """Whether the filters cover the scope, except times and undone messages."""


def facets_of(scope: Scope) -> Facets:
    """Return the part of a scope that the index can check."""
    owners = None if scope.owner.stored is None else (scope.owner.stored,)
    filters = (("s", scope.sources), ("r", scope.roles), ("i", scope.sessions), ("o", owners))
    wanted = [Facet(kind, values) for kind, values in filters if values is not None]
    excluded = [Facet(kind, values) for kind, values in (("s", scope.not_sources), ("i", scope.not_sessions)) if values]
    short = [each for each in wanted if len(each.values) <= MAX_WANTED]
    few = [each for each in excluded if len(each.values) <= MAX_EXCLUDED]
    # No index has a word for messages of the terminal, because they have no owner.
    is_exact = (short, few) == (wanted, excluded) and scope.owner != TERMINAL
    return Facets(short, few, is_exact)
