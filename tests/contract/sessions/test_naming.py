"""A session is found by the name that the user types."""

from __future__ import annotations

import time

import pytest

from hermes.errors import AmbiguousSession, InvalidValue, UnknownSession
from hermes.state.provider import SessionDBProvider
from hermes.state.sessions.lookup import Purpose, find_session
from tests.support.conversations import start

FIRST, SECOND = "20260101_120000_aaaaaaaa", "20260101_120000_bbbbbbbb"


@pytest.fixture
def titled_store(store: SessionDBProvider) -> SessionDBProvider:
    """Create a store with some sessions, three of which have titles."""
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
def test_session_to_resume_is_found_by_name(titled_store: SessionDBProvider, given: str, found: str) -> None:
    assert find_session(titled_store, given, Purpose.RESUME) == found


@pytest.mark.parametrize("purpose", [Purpose.READ, Purpose.CHANGE])
@pytest.mark.parametrize(
    ("given", "found"),
    [
        (FIRST, FIRST),
        ("Docker", FIRST),
        ("Docker #2", SECOND),
        ("Docker  #2", SECOND),
        ("20260101_120000_b", SECOND),
        ("Café 京都", "20260202_130000_cccccccc"),
    ],
)
def test_an_exact_title_wins_unless_a_session_is_resumed(
    titled_store: SessionDBProvider, purpose: Purpose, given: str, found: str
) -> None:
    assert find_session(titled_store, given, purpose) == found


@pytest.mark.parametrize("purpose", [Purpose.READ, Purpose.CHANGE])
def test_only_resuming_follows_the_numbers_of_a_removed_title(
    titled_store: SessionDBProvider, purpose: Purpose
) -> None:
    titled_store.delete_session(FIRST)
    assert find_session(titled_store, "Docker", Purpose.RESUME) == SECOND
    with pytest.raises(UnknownSession, match="Docker") as caught:
        find_session(titled_store, "Docker", purpose)
    assert '"Docker #2"' in caught.value.hint


def test_title_in_other_case_is_accepted_to_read_but_not_to_change(titled_store: SessionDBProvider) -> None:
    assert find_session(titled_store, "DOCKER", Purpose.READ) == FIRST
    with pytest.raises(UnknownSession) as caught:
        find_session(titled_store, "DOCKER", Purpose.CHANGE)
    assert '"Docker"' in caught.value.hint


def test_an_id_that_is_also_a_title_of_another_is_not_changed(titled_store: SessionDBProvider) -> None:
    start(titled_store, "other")
    titled_store.set_session_title("other", FIRST)
    with pytest.raises(AmbiguousSession) as caught:
        find_session(titled_store, FIRST, Purpose.CHANGE)
    assert "other" in caught.value.hint
    assert find_session(titled_store, FIRST, Purpose.READ) == FIRST
    assert find_session(titled_store, "other", Purpose.CHANGE) == "other"


def test_an_id_that_is_its_own_title_is_unambiguous(titled_store: SessionDBProvider) -> None:
    titled_store.set_session_title(FIRST, FIRST)
    assert find_session(titled_store, FIRST, Purpose.CHANGE) == FIRST


def test_an_id_beats_a_title(titled_store: SessionDBProvider) -> None:
    start(titled_store, "Docker")
    assert find_session(titled_store, "Docker", Purpose.READ) == "Docker"
    assert find_session(titled_store, "Docker", Purpose.RESUME) == "Docker"


@pytest.mark.parametrize("purpose", Purpose)
def test_a_title_beats_an_id_prefix(titled_store: SessionDBProvider, purpose: Purpose) -> None:
    start(titled_store, "other")
    titled_store.set_session_title("other", "20260202")
    assert find_session(titled_store, "20260202", purpose) == "other"


def test_several_ids_with_a_prefix_are_listed_with_dates_and_titles(titled_store: SessionDBProvider) -> None:
    with pytest.raises(AmbiguousSession) as caught:
        find_session(titled_store, "20260101", Purpose.RESUME)
    _, *listed = caught.value.hint.split("\n")
    today = time.strftime("%Y-%m-%d %H:%M", time.localtime(titled_store.get_ancestors(FIRST)[0]["started_at"]))
    assert listed == [f"  {SECOND}  {today}  Docker #2", f"  {FIRST}  {today}  Docker"]


def test_titles_that_differ_in_case_are_listed(titled_store: SessionDBProvider) -> None:
    start(titled_store, "other")
    titled_store.set_session_title("other", "DOCKER")
    with pytest.raises(AmbiguousSession) as caught:
        find_session(titled_store, "docker", Purpose.RESUME)
    assert '"DOCKER", "Docker"' in caught.value.hint


@pytest.mark.parametrize(("given", "near"), [("Dokcer", "Docker"), ("京都", "Café 京都"), ("cafe 京都", "Café 京都")])
def test_similar_titles_are_suggested(titled_store: SessionDBProvider, given: str, near: str) -> None:
    with pytest.raises(UnknownSession) as caught:
        find_session(titled_store, given, Purpose.RESUME)
    assert near in caught.value.hint


def test_too_short_a_prefix_finds_nothing(titled_store: SessionDBProvider) -> None:
    with pytest.raises(UnknownSession):
        find_session(titled_store, "202", Purpose.RESUME)


@pytest.mark.parametrize("given", ["", "  ", "\n"])
def test_empty_name_is_refused(titled_store: SessionDBProvider, given: str) -> None:
    with pytest.raises(InvalidValue):
        find_session(titled_store, given, Purpose.RESUME)


def test_sessions_of_others_are_neither_found_nor_suggested(store: SessionDBProvider) -> None:
    start(store, "20260303_000000_dddddddd", owner="telegram:1")
    store.set_session_title("20260303_000000_dddddddd", "Secret plan")
    for given in ("20260303_000000_dddddddd", "20260303", "Secret plan", "secret plan", "Secret plam"):
        with pytest.raises(UnknownSession) as caught:
            find_session(store, given, Purpose.RESUME, owner="telegram:2")
        assert "plan" not in caught.value.hint
        assert "dddd" not in caught.value.hint
    assert find_session(store, "secret plan", Purpose.RESUME, owner="telegram:1") == "20260303_000000_dddddddd"
