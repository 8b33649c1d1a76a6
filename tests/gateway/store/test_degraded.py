"""A store whose database goes away and comes back: nothing is lost, nothing is stored twice."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from hermes.errors import ConfigError, StoreClosed, StoreReadOnly, StoreUnavailable
from hermes.gateway import GatewayConfig, Platform, SessionResetPolicy, SessionSource, SessionStore
from hermes.gateway.store import connection
from hermes.gateway.store.files.journal import Journal
from hermes.gateway.store.files.replay import replay_journal
from hermes.state.provider import SessionDBProvider
from tests.gateway.store.conftest import MakeStore
from tests.gateway.store.database import Database, Time
from tests.support.waiting import wait_until
from tests.upgrade import oldfiles

ALICE = SessionSource(Platform.TELEGRAM, "1", user_id="7")
BOB = SessionSource(Platform.TELEGRAM, "2", user_id="8")
KEY = "agent:main:telegram:dm:1"
NEVER = GatewayConfig(default_reset_policy=SessionResetPolicy(mode="none"))


def _has_reached(sent: list[int], goal: int, talks: list[Future[None]]) -> bool:
    return sum(sent) >= goal or any(each.done() for each in talks)


def texts(db: SessionDBProvider, session_id: str) -> list[object]:
    return [message["content"] for message in db.get_messages(session_id)]


def test_lanes_continue_without_the_database(make_store: MakeStore, database: Database) -> None:
    store = make_store(NEVER)
    first = store.get_or_create_session(ALICE)
    database.is_down = True
    assert store.get_or_create_session(ALICE).session_id == first.session_id
    assert isinstance(store.degraded_reason, StoreUnavailable)
    database.is_down = False
    assert store.degraded_reason is None
    assert store.get_or_create_session(ALICE).session_id == first.session_id


def test_everything_of_the_time_without_database_is_stored_afterwards(
    make_store: MakeStore, database: Database, home: Path, time: Time
) -> None:
    store = make_store(NEVER)
    first = store.get_or_create_session(ALICE)
    store.append_to_transcript(first.session_id, {"role": "user", "content": "before"})
    store.flush()
    database.is_down = True
    time.pass_(minutes=1)
    store.append_to_transcript(first.session_id, {"role": "user", "content": "while down"})
    bob = store.get_or_create_session(BOB)
    store.append_to_transcript(bob.session_id, {"role": "user", "content": "from Bob"})
    second = store.reset_session(KEY)
    assert second is not None
    store.append_to_transcript(second.session_id, {"role": "user", "content": "fresh"})
    store.suspend_session(bob.session_key)
    database.is_down = False
    assert store.degraded_reason is None
    db = store._db
    assert db is not None
    assert texts(db, first.session_id) == ["before", "while down"]
    assert texts(db, bob.session_id) == ["from Bob"]
    assert texts(db, second.session_id) == ["fresh"]
    left = db.get_session(first.session_id)
    assert left is not None
    assert left["end_reason"] == "session_reset"
    row = db.lanes.get(bob.session_key)
    assert row is not None
    assert row["suspended"] is True
    session = db.get_session(bob.session_id)
    assert session is not None
    assert session["owner"] == "telegram:8"
    entry = store.peek(ALICE)
    assert entry is not None
    assert (entry.session_id, entry.is_fresh_reset) == (second.session_id, True)
    assert not (home / "sessions" / "degraded.jsonl").exists()


def test_messages_are_in_jsonl_files_while_the_database_is_away(
    make_store: MakeStore, database: Database, home: Path
) -> None:
    database.is_down = True
    store = make_store()
    entry = store.get_or_create_session(ALICE)
    store.append_to_transcript(entry.session_id, {"role": "user", "content": "hi"})
    (line,) = (home / "sessions" / f"{entry.session_id}.jsonl").read_text().splitlines()
    assert json.loads(line)["content"] == "hi"
    store.close()
    assert json.loads((home / "sessions" / "sessions.json").read_text())[KEY]["session_id"] == entry.session_id


def test_next_process_continues_without_the_database(make_store: MakeStore, database: Database) -> None:
    database.is_down = True
    one = make_store(NEVER)
    first = one.get_or_create_session(ALICE)
    one.append_to_transcript(first.session_id, {"role": "user", "content": "hi"})
    other = make_store(NEVER)  # the first one is not closed: it could have been killed
    assert other.get_or_create_session(ALICE).session_id == first.session_id
    assert other.load_transcript(first.session_id) == [{"role": "user", "content": "hi"}]
    database.is_down = False
    db = other._db
    assert db is not None
    assert texts(db, first.session_id) == ["hi"]


def test_two_stores_without_the_database_agree(make_store: MakeStore, database: Database) -> None:
    database.is_down = True
    one, other = make_store(NEVER), make_store(NEVER)
    first = one.get_or_create_session(ALICE)
    assert other.get_or_create_session(ALICE).session_id == first.session_id
    second = other.reset_session(KEY)
    assert second is not None
    assert one.get_or_create_session(ALICE).session_id == second.session_id


@pytest.mark.parametrize("writes", range(12))
def test_replay_that_breaks_off_anywhere_stores_everything_once(
    make_store: MakeStore, database: Database, writes: int
) -> None:
    database.is_down = True
    store = make_store(NEVER)
    first = store.get_or_create_session(ALICE)
    for number in range(3):
        store.append_to_transcript(first.session_id, {"role": "user", "content": f"m{number}"})
    store.rewind_session(first.session_id)
    store.append_to_transcript(first.session_id, {"role": "user", "content": "last"})
    database.is_down, database.writes_left = False, writes
    make_store(NEVER).list_sessions()
    database.is_down, database.writes_left = False, None
    db = make_store(NEVER)._db
    assert db is not None
    assert texts(db, first.session_id) == ["m0", "m1", "last"]
    assert len(db.get_messages(first.session_id, include_inactive=True)) == 4
    assert len(db.list_rewinds(first.session_id)) == 1
    assert db.lanes.count() == 1


def test_second_time_without_database_is_replayed_too(make_store: MakeStore, database: Database) -> None:
    store = make_store(NEVER)
    first = store.get_or_create_session(ALICE)
    for content in ("one", "two", "three"):
        store.flush()
        database.is_down = True
        store.append_to_transcript(first.session_id, {"role": "user", "content": content})
        database.is_down = False
        assert store.degraded_reason is None
    db = store._db
    assert db is not None
    assert texts(db, first.session_id) == ["one", "two", "three"]


def test_threads_store_every_message_once_while_the_database_comes_and_goes(
    make_store: MakeStore, database: Database
) -> None:
    store = make_store(NEVER)
    lanes = [SessionSource(Platform.SLACK, str(number), user_id="u") for number in range(4)]
    ids = [store.get_or_create_session(lane).session_id for lane in lanes]
    is_over = threading.Event()
    sent = [0] * len(lanes)

    def talk(place: int) -> None:
        while not is_over.is_set():
            assert store.get_or_create_session(lanes[place]).session_id == ids[place]
            store.append_to_transcript(ids[place], {"role": "user", "content": f"message {sent[place]}"})
            sent[place] += 1

    with ThreadPoolExecutor(len(lanes)) as threads:
        talks = [threads.submit(talk, place) for place in range(len(lanes))]
        for change in range(40):
            database.is_down = change % 2 == 0
            goal = sum(sent) + 5
            wait_until(partial(_has_reached, sent, goal, talks), "messages")
        is_over.set()
        for each in talks:
            each.result()
    assert store.degraded_reason is None
    db = store._db
    assert db is not None
    for session_id, count in zip(ids, sent, strict=True):
        stored = texts(db, session_id)
        assert len(stored) == count
        assert set(stored) == {f"message {number}" for number in range(count)}


def test_slow_attempts_to_connect_run_in_the_background(
    make_store: MakeStore, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SLOW_S", -1.0)
    database.is_down = True
    store = make_store(NEVER)
    first = store.get_or_create_session(ALICE)
    database.is_down = False
    assert store.get_or_create_session(ALICE).session_id == first.session_id
    wait_until(lambda: store.degraded_reason is None, "the database")
    db = store._db
    assert db is not None
    assert db.get_session(first.session_id) is not None


def test_closed_store_is_closed_without_its_database_too(make_store: MakeStore, database: Database) -> None:
    database.is_down = True
    store = make_store(NEVER)
    store.get_or_create_session(ALICE)
    store.close()
    with pytest.raises(StoreClosed):
        store.get_or_create_session(ALICE)


def test_rewritten_transcript_is_replayed(make_store: MakeStore, database: Database) -> None:
    store = make_store(NEVER)
    first = store.get_or_create_session(ALICE)
    store.append_to_transcript(first.session_id, {"role": "user", "content": "old"})
    store.flush()
    database.is_down = True
    assert store.rewrite_transcript(first.session_id, [{"role": "user", "content": "new"}])
    assert store.load_transcript(first.session_id) == [{"role": "user", "content": "new"}]
    database.is_down = False
    db = store._db
    assert db is not None
    assert texts(db, first.session_id) == ["new"]


def test_newer_lane_of_another_process_wins(make_store: MakeStore, database: Database, time: Time, home: Path) -> None:
    store = make_store(NEVER)
    first = store.get_or_create_session(ALICE)
    store.flush()
    database.is_down = True
    cut_off = make_store(NEVER)
    second = cut_off.reset_session(KEY)
    assert second is not None
    cut_off.append_to_transcript(second.session_id, {"role": "user", "content": "cut off"})
    database.is_down = False
    other = database.open()  # a node that could reach the database all the time
    time.pass_(minutes=5)
    other.lanes.update(KEY)
    other.close()
    db = cut_off._db
    assert db is not None
    row = db.lanes.get(KEY)
    assert row is not None
    assert row["session_id"] == first.session_id
    assert texts(db, second.session_id) == ["cut off"]


def test_lane_that_continued_an_older_session_keeps_it(
    make_store: MakeStore, database: Database, home: Path, time: Time
) -> None:
    store, other = make_store(NEVER), make_store(NEVER)
    first = store.get_or_create_session(ALICE)
    store.flush()
    left = other.reset_session(KEY)  # which the file does not say yet when the database goes away
    assert left is not None
    database.is_down = True
    time.pass_(minutes=1)
    assert store.get_or_create_session(ALICE).session_id == first.session_id
    store.append_to_transcript(first.session_id, {"role": "user", "content": "while down"})
    database.is_down = False
    assert store.get_or_create_session(ALICE).session_id == first.session_id
    assert not (home / "sessions" / "degraded-rejected.jsonl").exists()
    assert store._db is not None
    ends = {each: store._db.get_session(each) for each in (first.session_id, left.session_id)}
    assert {each: row and row["end_reason"] for each, row in ends.items()} == {
        first.session_id: None,
        left.session_id: "session_switch",
    }


def test_record_that_cannot_be_stored_is_set_aside(
    make_store: MakeStore, database: Database, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database.is_down = True
    store = make_store(NEVER)
    store.append_to_transcript("no-such-session", {"role": "user", "content": "stray"})
    first = store.get_or_create_session(ALICE)
    store.append_to_transcript(first.session_id, {"role": "user", "content": "fine"})
    database.is_down = False
    db = store._db
    assert db is not None
    assert texts(db, first.session_id) == ["fine"]
    (line,) = (home / "sessions" / "degraded-rejected.jsonl").read_text().splitlines()
    assert json.loads(line)["record"]["message"]["content"] == "stray"
    assert "degraded-rejected.jsonl" in caplog.text


@pytest.mark.parametrize("line", [b"not json", b"[1]", b'{"kind": "lane"}', b'{"kind": "message"}', b"\xff\xfe", b"{}"])
def test_damaged_line_of_the_journal_is_set_aside(
    make_store: MakeStore, database: Database, home: Path, line: bytes
) -> None:
    database.is_down = True
    store = make_store(NEVER)
    first = store.get_or_create_session(ALICE)
    with (home / "sessions" / "degraded.jsonl").open("ab") as journal:
        journal.write(line + b"\n")
    store.append_to_transcript(first.session_id, {"role": "user", "content": "hi"})
    assert make_store(NEVER).get_or_create_session(ALICE).session_id == first.session_id
    database.is_down = False
    db = store._db
    assert db is not None
    assert texts(db, first.session_id) == ["hi"]
    assert len((home / "sessions" / "degraded-rejected.jsonl").read_text().splitlines()) == 1


def test_half_a_line_of_a_killed_process_is_dropped(make_store: MakeStore, database: Database, home: Path) -> None:
    database.is_down = True
    store = make_store(NEVER)
    first = store.get_or_create_session(ALICE)
    with (home / "sessions" / "degraded.jsonl").open("ab") as journal:
        journal.write(b'{"kind": "message", "session')
    store.append_to_transcript(first.session_id, {"role": "user", "content": "hi"})
    other = make_store(NEVER)
    assert other.get_or_create_session(ALICE).session_id == first.session_id
    database.is_down = False
    db = other._db
    assert db is not None
    assert texts(db, first.session_id) == ["hi"]


def test_switch_is_refused_without_the_database(make_store: MakeStore, database: Database) -> None:
    database.is_down = True
    store = make_store()
    store.get_or_create_session(ALICE)
    with pytest.raises(StoreUnavailable, match="switch"):
        store.switch_session(KEY, "20200101_000000_ffffffff")


def test_file_is_imported_when_the_database_appears_for_the_first_time(
    make_store: MakeStore, database: Database
) -> None:
    database.is_down = True
    store = make_store(NEVER)
    first, second = store.get_or_create_session(ALICE), store.get_or_create_session(BOB)
    store.close()
    database.is_down = False
    sessions = {entry.session_id for entry in make_store(NEVER).list_sessions()}
    assert sessions == {first.session_id, second.session_id}


def test_wrong_configuration_is_no_reason_for_files(home: Path) -> None:
    (home / "config.yaml").write_text("sessiondb: {provider: nonsense}")
    config = GatewayConfig()
    store = SessionStore(config.sessions_dir, config)
    with pytest.raises(ConfigError, match="nonsense"):
        store.get_or_create_session(ALICE)
    assert not (home / "sessions").exists()


def test_database_of_another_program_is_refused(home: Path) -> None:
    (home / "state.db").unlink()
    oldfiles.real(22, home / "state.db")
    config = GatewayConfig()
    store = SessionStore(config.sessions_dir, config)
    with pytest.raises(StoreReadOnly):
        store.get_or_create_session(ALICE)
    assert not (home / "sessions").exists()


def test_journal_without_records_is_deleted(make_store: MakeStore, database: Database, home: Path) -> None:
    database.is_down = True
    store = make_store()
    assert store.list_sessions() == []
    database.is_down = False
    assert store.list_sessions() == []
    assert not (home / "sessions" / "degraded.jsonl").exists()


def test_replay_leaves_no_trace_without_a_journal(database: Database, home: Path) -> None:
    db = database.open()
    replay_journal(db, Journal(home / "sessions"))
    assert db.get_meta("gateway_replay") is None
    db.close()
