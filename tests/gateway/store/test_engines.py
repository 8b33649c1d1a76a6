"""A session store on every engine: what a database could do differently."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from hermes.errors import UnknownSession
from hermes.gateway import GatewayConfig, Platform, SessionResetPolicy, SessionSource, SessionStore
from hermes.gateway.store.files.importing import import_sessions_file
from hermes.gateway.store.files.journal import Journal
from hermes.gateway.store.files.replay import replay_journal
from hermes.state.provider import SessionDBProvider
from tests.gateway.store.conftest import refuse
from tests.support.clock import FakeClock
from tests.support.engines import clock, open_store, stores
from tests.support.stores import Opener

__all__ = ["clock", "open_store", "stores"]

ALICE = SessionSource(Platform.TELEGRAM, "1", user_id="7", user_name="Alice", chat_name="Grüße 😀")
KEY = "agent:main:telegram:dm:1"
IDLE = GatewayConfig(default_reset_policy=SessionResetPolicy(mode="idle", idle_minutes=60))


@pytest.fixture
def db(open_store: Opener) -> SessionDBProvider:
    return open_store()


@pytest.fixture
def store(
    db: SessionDBProvider,
    tmp_path: Path,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[SessionStore]:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    with SessionStore(tmp_path / "sessions", IDLE, db=db, clock=clock) as opened:
        yield opened


def test_life_of_a_lane(store: SessionStore, db: SessionDBProvider, clock: FakeClock) -> None:
    first = store.get_or_create_session(ALICE)
    assert store.get_or_create_session(ALICE) == first
    assert first.origin == ALICE
    assert first.display_name == "Grüße 😀"
    store.append_to_transcript(first.session_id, {"role": "user", "content": "hi"})
    store.update_session(KEY, 5)
    clock.advance(3601)
    second = store.get_or_create_session(ALICE)
    assert (second.auto_reset_reason, second.reset_had_activity) == ("idle", True)
    assert store.switch_session(KEY, first.session_id) is not None
    with pytest.raises(UnknownSession):
        store.switch_session(KEY, "nothing")
    assert store.mark_resume_pending(KEY)
    assert store.suspend_session(KEY)
    third = store.get_or_create_session(ALICE)
    assert third.auto_reset_reason == "suspended"
    reasons = [row["end_reason"] for each in (first, second, third) if (row := db.get_session(each.session_id))]
    assert reasons == ["session_reset", "session_switch", None]
    assert store.load_transcript(first.session_id)[0]["content"] == "hi"
    clock.advance(9 * 86_400)
    assert store.prune_old_entries(8) == 1
    assert store.list_sessions() == []


@pytest.mark.parametrize("odd", ["", "x" * 10_240, "a\x00b\n", "\ud800", "a:b:c", "😀" * 2000, "Ä", "ä", "a ", " a"])
def test_odd_ids_have_lanes_of_their_own(store: SessionStore, db: SessionDBProvider, odd: str) -> None:
    source = SessionSource(
        Platform.SIGNAL, odd, chat_type="group", user_id=odd, user_name=odd, chat_name=odd, thread_id=odd
    )
    weird = SessionSource(Platform.SIGNAL, odd, chat_type=odd, user_id=odd, chat_name=odd)
    first, second = store.get_or_create_session(source), store.get_or_create_session(weird)
    assert first.session_id != second.session_id
    assert store.get_or_create_session(source).session_id == first.session_id
    assert first.origin == source
    assert len(store.list_sessions()) == 2
    session = db.get_session(first.session_id)
    assert session is not None
    assert session["owner"]


def test_keys_that_look_alike_are_different_lanes(store: SessionStore) -> None:
    chats = ["a", "A", "ä", "a\u0308", "Ä", "ａ", "a ", "ß", "ss"]
    entries = [store.get_or_create_session(SessionSource(Platform.SLACK, chat)) for chat in chats]
    assert len({entry.session_id for entry in entries}) == len(chats)
    assert len(store.list_sessions()) == len(chats)


def test_changed_entry_is_stored(store: SessionStore) -> None:
    entry = store.get_or_create_session(ALICE)
    entry.updated_at -= timedelta(hours=2)
    entry.total_tokens = 77
    assert store.save(entry)
    assert store.get_or_create_session(ALICE).reset_had_activity is True


def test_time_without_database_is_replayed(
    store: SessionStore,
    db: SessionDBProvider,
    tmp_path: Path,
    clock: FakeClock,
) -> None:
    away = SessionStore(tmp_path / "sessions", IDLE, clock=clock, opener=refuse)
    entry = away.get_or_create_session(ALICE)
    away.append_to_transcript(entry.session_id, {"role": "user", "content": "hi"})
    away.close()
    import_sessions_file(db, tmp_path / "sessions", IDLE, tmp_path)
    for _ in range(2):
        replay_journal(db, Journal(tmp_path / "sessions"))
    assert [message["content"] for message in db.get_messages(entry.session_id)] == ["hi"]
    assert store.get_or_create_session(ALICE).session_id == entry.session_id
