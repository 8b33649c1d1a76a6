"""Names of sessions are suggested for a typed prefix."""

from __future__ import annotations

import pytest

from hermes.state.provider import SessionDBProvider
from hermes.state.sessions.suggestions import MAX_SUGGESTIONS, suggest_names
from tests.support.clock import FakeClock
from tests.support.conversations import say, start


@pytest.fixture
def titled_store(store: SessionDBProvider, clock: FakeClock) -> SessionDBProvider:
    for session_id, title in {"a1": "refactoring auth", "a2": "Refill", "b1": "京都 旅行", "c1": ""}.items():
        clock.advance(1)
        start(store, session_id)
        say(store, session_id, f"about {session_id}")
        store.set_session_title(session_id, title)
    start(store, "t1", source="tool")
    return store


@pytest.mark.parametrize(
    ("beginning", "names"),
    [
        ("", [("c1", "about c1"), ("京都 旅行", "b1"), ("Refill", "a2"), ("refactoring auth", "a1")]),
        ("ref", [("refactoring auth", "a1"), ("Refill", "a2")]),
        ("Ref", [("Refill", "a2"), ("refactoring auth", "a1")]),
        ("refactoring a", [("refactoring auth", "a1")]),
        ("京", [("京都 旅行", "b1")]),
        ("a", [("a2", "Refill"), ("a1", "refactoring auth")]),
        ("c", [("c1", "about c1")]),
        ("%", []),
        ("auth", []),
    ],
)
def test_suggested_names_start_with_the_text(
    titled_store: SessionDBProvider, beginning: str, names: list[tuple[str, str]]
) -> None:
    assert suggest_names(titled_store, beginning) == names


def test_suggestions_are_limited(store: SessionDBProvider) -> None:
    start(store, *(f"s{number:03}" for number in range(MAX_SUGGESTIONS + 10)))
    assert len(suggest_names(store, "s")) == MAX_SUGGESTIONS
    assert len(suggest_names(store, "")) == MAX_SUGGESTIONS
