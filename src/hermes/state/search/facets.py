"""What of a scope an index is asked: of which roles, sources, owner and sessions messages are."""

from __future__ import annotations

from typing import NamedTuple

from hermes.state.owner import TERMINAL
from hermes.state.search.scope import Scope

MAX_NAMED, MAX_LACKED = 200, 32
"""How many values of a filter are looked up in the index; longer lists are checked on the rows."""


class Facet(NamedTuple):
    """Some values of one kind: roles (r), sources (s), owners (o) or sessions (i)."""

    kind: str
    values: tuple[str, ...]


class Facets(NamedTuple):
    """What messages are asked for."""

    wanted: list[Facet]
    """Of each of these a message has one value."""
    lacked: list[Facet]
    """Of each of these it has none."""
    is_exact: bool
    """Whether that is everything but times and hidden messages."""


def facets_of(scope: Scope) -> Facets:
    """What of a scope is looked up in the index."""
    owners = None if scope.owner.stored is None else (scope.owner.stored,)
    named = (("s", scope.sources), ("r", scope.roles), ("i", scope.sessions), ("o", owners))
    wanted = [Facet(kind, values) for kind, values in named if values is not None]
    lacked = [Facet(kind, values) for kind, values in (("s", scope.not_sources), ("i", scope.not_sessions)) if values]
    short = [each for each in wanted if len(each.values) <= MAX_NAMED]
    few = [each for each in lacked if len(each.values) <= MAX_LACKED]
    # No index has a word for messages of the terminal, which is known by having no owner.
    is_exact = (short, few) == (wanted, lacked) and scope.owner != TERMINAL
    return Facets(short, few, is_exact)
