"""Which session a person means."""

from __future__ import annotations

import pytest

from hermes.errors import AmbiguousSession, InvalidValue, UnknownSession
from hermes.state.naming import find_session
from hermes.state.provider import SessionDBProvider
from tests.support.conversations import start

FIRST, SECOND = "20260101_120000_aaaaaaaa", "20260101_120000_bbbbbbbb"


@pytest.fixture
def named(store: SessionDBProvider) -> SessionDBProvider:
    """A store with some sessions, three of which have titles."""
    for session_id, title in ((FIRST, "Docker"), (SECOND, "Docker #2"), ("20260202_130000_cccccccc", "Café 京都")):
        start(store, session_id)
        store.set_session_title(session_id, title)
    return store


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (FIRST, FIRST),
        (f"  {FIRST} ", FIRST),
        ("Docker", SECOND),
        ("Docker #2", SECOND),
        ("docker", SECOND),
        ("DOCKER #2", SECOND),
        ("20260202", "20260202_130000_cccccccc"),
        ("20260101_120000_b", SECOND),
        ("Café 京都", "20260202_130000_cccccccc"),
        ("CAFÉ 京都", "20260202_130000_cccccccc"),
        ("Café\u200b  京都", "20260202_130000_cccccccc"),
    ],
)
def test_is_found_by(named: SessionDBProvider, given: str, found: str) -> None:
    assert find_session(named, given) == found


def test_an_id_goes_before_a_title(named: SessionDBProvider) -> None:
    start(named, "Docker")
    assert find_session(named, "Docker") == "Docker"


def test_a_title_goes_before_the_beginning_of_an_id(named: SessionDBProvider) -> None:
    start(named, "other")
    named.set_session_title("other", "20260202")
    assert find_session(named, "20260202") == "other"


def test_several_ids_that_begin_so_are_listed(named: SessionDBProvider) -> None:
    with pytest.raises(AmbiguousSession) as caught:
        find_session(named, "20260101")
    assert FIRST in caught.value.hint
    assert SECOND in caught.value.hint


def test_titles_that_differ_in_capitals_are_listed(named: SessionDBProvider) -> None:
    start(named, "other")
    named.set_session_title("other", "DOCKER")
    with pytest.raises(AmbiguousSession) as caught:
        find_session(named, "docker")
    assert '"DOCKER", "Docker"' in caught.value.hint


@pytest.mark.parametrize(("given", "near"), [("Dokcer", "Docker"), ("京都", "Café 京都"), ("cafe 京都", "Café 京都")])
def test_what_is_near_is_named(named: SessionDBProvider, given: str, near: str) -> None:
    with pytest.raises(UnknownSession) as caught:
        find_session(named, given)
    assert near in caught.value.hint


def test_too_short_a_beginning_names_nothing(named: SessionDBProvider) -> None:
    with pytest.raises(UnknownSession):
        find_session(named, "202")


@pytest.mark.parametrize("given", ["", "  ", "\n"])
def test_nothing_is_not_a_name(named: SessionDBProvider, given: str) -> None:
    with pytest.raises(InvalidValue):
        find_session(named, given)


def test_what_belongs_to_others_is_neither_found_nor_named(store: SessionDBProvider) -> None:
    start(store, "20260303_000000_dddddddd", owner="telegram:1")
    store.set_session_title("20260303_000000_dddddddd", "Secret plan")
    for given in ("20260303_000000_dddddddd", "20260303", "Secret plan", "secret plan", "Secret plam"):
        with pytest.raises(UnknownSession) as caught:
            find_session(store, given, owner="telegram:2")
        assert "plan" not in caught.value.hint
        assert "dddd" not in caught.value.hint
    assert find_session(store, "secret plan", owner="telegram:1") == "20260303_000000_dddddddd"
