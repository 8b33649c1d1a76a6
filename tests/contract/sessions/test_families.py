"""Families: which sessions are descendants of which."""

from __future__ import annotations

from hermes.state.provider import SessionDBProvider
from hermes.state.row_types import ChildKindName
from hermes.state.sessions.lineage.forest import list_families, sessions_by_id
from tests.support.clock import FakeClock
from tests.support.conversations import compress, say, start


def child(
    store: SessionDBProvider, clock: FakeClock, session_id: str, parent: str, kind: ChildKindName, source: str = "cli"
) -> None:
    clock.advance(1)
    store.create_session(session_id, source, parent_session_id=parent, child_kind=kind)


def families(store: SessionDBProvider, **options: bool) -> list[tuple[str, ...]]:
    return [tree.member_ids for tree in list_families(store, hidden_sources=("subagent",), **options)]


def test_single_sessions_are_no_family(store: SessionDBProvider) -> None:
    start(store, "a", "b")
    assert families(store) == []


def test_each_session_follows_its_parent(store: SessionDBProvider, clock: FakeClock) -> None:
    start(store, "a")
    child(store, clock, "b", "a", "branch")
    compress(store, clock, "a", "a2")
    child(store, clock, "c", "b", "reset")
    child(store, clock, "d", "a2", "branch")
    assert families(store) == [("a", "b", "a2", "c", "d")]


def test_the_newest_activity_of_any_member_decides_the_order(store: SessionDBProvider, clock: FakeClock) -> None:
    for first in ("a", "b", "c"):
        start(store, first)
        child(store, clock, f"{first}2", first, "branch")
    clock.advance(1)
    say(store, "a2", "still here")
    assert [tree.root_id for tree in list_families(store)] == ["a", "c", "b"]


def test_delegates_and_archived_families_are_listed_on_request(store: SessionDBProvider, clock: FakeClock) -> None:
    start(store, "a", "b")
    child(store, clock, "helper", "a", "delegate", "subagent")
    child(store, clock, "below", "helper", "branch")
    child(store, clock, "b2", "b", "branch")
    store.set_session_archived("b", True)
    assert families(store) == []
    assert families(store, include_all=True) == [("b", "b2"), ("a", "helper", "below")]


def test_sessions_of_families_are_returned_by_id(store: SessionDBProvider) -> None:
    start(store, "a", "b")
    assert {key: row["id"] for key, row in sessions_by_id(store, ["a", "b", "nowhere"]).items()} == {"a": "a", "b": "b"}
