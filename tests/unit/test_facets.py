"""The part of a scope that the index checks."""

from __future__ import annotations

from hermes.state.owner import TERMINAL, parse_asker
from hermes.state.search.facets import MAX_EXCLUDED, MAX_WANTED, Facet, Facets, facets_of
from hermes.state.search.scope import Scope


def numbers(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def test_every_filter_but_time_is_a_facet() -> None:
    scope = Scope(parse_asker("o"), ("a",), ("b",), ("user",), ("s", "t"), ("u",), since=1.0, include_inactive=True)
    assert facets_of(scope) == Facets(
        [Facet("s", ("a",)), Facet("r", ("user",)), Facet("i", ("s", "t")), Facet("o", ("o",))],
        [Facet("s", ("b",)), Facet("i", ("u",))],
        is_exact=True,
    )


def test_an_empty_scope_has_no_facets() -> None:
    assert facets_of(Scope()) == Facets([], [], is_exact=True)


def test_a_filter_without_values_is_a_facet_too() -> None:
    assert facets_of(Scope(sources=())) == Facets([Facet("s", ())], [], is_exact=True)


def test_long_lists_are_checked_on_the_rows() -> None:
    named, lacked = numbers(MAX_WANTED), numbers(MAX_EXCLUDED)
    assert facets_of(Scope(sessions=named, not_sources=lacked)).is_exact
    assert facets_of(Scope(sessions=(*named, "x"), roles=("user",))) == Facets(
        [Facet("r", ("user",))], [], is_exact=False
    )
    assert facets_of(Scope(not_sources=(*lacked, "x"))) == Facets([], [], is_exact=False)


def test_the_terminal_owner_is_not_a_facet() -> None:
    assert facets_of(Scope(TERMINAL)) == Facets([], [], is_exact=False)
