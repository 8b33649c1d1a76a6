"""`sessions.json`: the export, its import, and rows that cannot be used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway import GatewayConfig, Platform, SessionEntry, SessionSource
from tests.gateway.store.conftest import MakeStore
from tests.gateway.store.database import Database, Time
from tests.support.waiting import wait_until

ALICE = SessionSource(Platform.TELEGRAM, "1", user_id="7", user_name="Alice")
KEY = "agent:main:telegram:dm:1"


def row(key: str, session_id: str = "20260101_000000_00000001", **more: Any) -> dict[str, Any]:
    return {
        "session_key": key,
        "session_id": session_id,
        "created_at": "2026-01-01T00:00:00.000001",
        "updated_at": "2026-01-02T00:00:00",
        **more,
    }


def write(home: Path, rows: object) -> Path:
    (home / "sessions").mkdir(exist_ok=True)
    path = home / "sessions" / "sessions.json"
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows))
    return path


def read(home: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((home / "sessions" / "sessions.json").read_text())
    return data


def test_export_follows_a_change_by_itself(make_store: MakeStore, home: Path) -> None:
    entry = make_store().get_or_create_session(ALICE)
    path = home / "sessions" / "sessions.json"
    wait_until(path.exists, "sessions.json")
    assert read(home) == {KEY: entry.to_dict()}


def test_export_is_complete_after_close(make_store: MakeStore, home: Path) -> None:
    store = make_store()
    entries = [store.get_or_create_session(SessionSource(Platform.SLACK, str(number))) for number in range(120)]
    store.suspend_session(entries[0].session_key)
    store.close()
    entries[0].suspended = True
    assert read(home) == {entry.session_key: entry.to_dict() for entry in entries}


def test_export_has_the_documented_form(make_store: MakeStore, home: Path) -> None:
    store = make_store()
    store.get_or_create_session(SessionSource(Platform.TELEGRAM, "1", chat_name="Grüße 😀"))
    store.close()
    text = (home / "sessions" / "sessions.json").read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    assert "Grüße 😀" in text
    assert list(json.loads(text)[KEY]) == [*SessionEntry("k", "s", datetime.min, datetime.min).to_dict(), "origin"]  # noqa: DTZ901


def test_export_of_no_lanes_is_an_empty_object(make_store: MakeStore, home: Path, time: Time) -> None:
    store = make_store()
    store.get_or_create_session(ALICE)
    time.pass_(days=9)
    store.prune_old_entries(1)
    store.close()
    assert read(home) == {}


def test_export_leaves_no_temporary_files(make_store: MakeStore, home: Path) -> None:
    store = make_store()
    store.get_or_create_session(ALICE)
    store.close()
    assert [path.name for path in (home / "sessions").iterdir()] == ["sessions.json"]


def test_export_removes_the_drafts_of_dead_processes(make_store: MakeStore, home: Path) -> None:
    (home / "sessions").mkdir()
    (home / "sessions" / ".sessions_0123456789ab.tmp").write_text("{")
    store = make_store()
    store.get_or_create_session(ALICE)
    store.flush()
    assert [path.name for path in (home / "sessions").iterdir()] == ["sessions.json"]


def test_lost_export_is_written_again(make_store: MakeStore, home: Path) -> None:
    store = make_store()
    first = store.get_or_create_session(ALICE)
    store.flush()
    (home / "sessions" / "sessions.json").unlink()
    store.update_session(KEY)
    store.close()
    assert read(home)[KEY]["session_id"] == first.session_id


def test_file_is_imported_once_when_there_are_no_lanes(make_store: MakeStore, home: Path, time: Time) -> None:
    time.now = datetime(2026, 1, 2, 1).timestamp()  # noqa: DTZ001
    given = row(
        KEY,
        origin=ALICE.to_dict(),
        platform="telegram",
        display_name="Alice",
        resume_pending=True,
        resume_reason="shutdown_timeout",
        last_resume_marked_at="2026-01-02T00:00:01",
        last_prompt_tokens=5,
        input_tokens=10,
        output_tokens=20,
        total_tokens=30,
    )
    write(home, {KEY: given})
    store = make_store()
    (entry,) = store.list_sessions()
    assert entry == SessionEntry.from_dict(given)
    assert store.get_or_create_session(ALICE).session_id == given["session_id"]
    assert store._db is not None
    session = store._db.get_session(given["session_id"])
    assert session is not None
    assert (session["owner"], session["source"]) == ("telegram:7", "telegram")


def test_file_is_not_imported_a_second_time(make_store: MakeStore, home: Path, time: Time) -> None:
    time.now = datetime(2026, 2, 1).timestamp()  # noqa: DTZ001
    write(home, {KEY: row(KEY, origin=ALICE.to_dict())})
    store = make_store()
    assert len(store.list_sessions()) == 1
    store.prune_old_entries(1)
    store.close()
    write(home, {KEY: row(KEY, origin=ALICE.to_dict())})
    assert make_store().list_sessions() == []


def test_existing_session_stays_as_it_is(make_store: MakeStore, home: Path, database: Database) -> None:
    db = database.open()
    db.create_session("20260101_000000_00000001", "telegram", user_id="7")
    db.append_message("20260101_000000_00000001", "user", "before")
    before = db.get_session("20260101_000000_00000001")
    db.close()
    write(home, {KEY: row(KEY, origin=ALICE.to_dict())})
    store = make_store()
    (entry,) = store.list_sessions()
    assert store.load_transcript(entry.session_id)[0]["content"] == "before"
    assert store._db is not None
    assert store._db.get_session(entry.session_id) == before


def test_private_lane_does_not_get_the_session_of_another_user(
    make_store: MakeStore, home: Path, database: Database
) -> None:
    db = database.open()
    db.create_session("20260101_000000_00000001", "telegram", user_id="99")
    db.close()
    write(home, {KEY: row(KEY, origin=ALICE.to_dict())})
    assert make_store().list_sessions() == []
    (rejected,) = (home / "sessions").glob("sessions-rejected-*.json")
    assert "belongs to another owner" in json.loads(rejected.read_text())[KEY]["reason"]


def test_session_of_a_user_is_found_by_the_second_id_of_the_platform(
    make_store: MakeStore, home: Path, database: Database
) -> None:
    person = SessionSource(Platform.SIGNAL, "+1555", user_id="+1555", user_id_alt="uuid-1")
    db = database.open()
    db.create_session("20260101_000000_00000001", "signal", user_id="+1555")
    db.close()
    write(home, {"old": row("old", origin=person.to_dict())})
    (entry,) = make_store().list_sessions()
    assert entry.session_id == "20260101_000000_00000001"


def test_session_that_two_lanes_of_the_file_name_stays_with_the_newer_one(make_store: MakeStore, home: Path) -> None:
    bob = SessionSource(Platform.TELEGRAM, "2", user_id="8")
    older = row(KEY, "s1", origin=ALICE.to_dict())
    newer = row("b", "s1", origin=bob.to_dict(), updated_at="2026-01-03T00:00:00")
    write(home, {KEY: older, "b": newer, "c": row("c", "s2")})
    assert sorted(each.session_key for each in make_store().list_sessions()) == ["agent:main:telegram:dm:2", "c"]
    (rejected,) = (home / "sessions").glob("sessions-rejected-*.json")
    assert list(json.loads(rejected.read_text())) == [KEY]


def test_every_row_that_is_set_aside_is_in_the_file(make_store: MakeStore, home: Path) -> None:
    times = ["2026-01-01T00:00:00", "2026-01-02T00:00:00", "2026-01-03T00:00:00"]
    write(home, {f"r{day}": row(KEY, f"s{day}", updated_at=at) for day, at in enumerate(times)})
    assert [each.session_id for each in make_store().list_sessions()] == ["s2"]
    (rejected,) = (home / "sessions").glob("sessions-rejected-*.json")
    assert sorted(json.loads(rejected.read_text())) == ["r0", "r1"]


def test_rows_get_the_key_of_their_origin(make_store: MakeStore, home: Path) -> None:
    room = SessionSource(Platform.MATRIX, "!room:server", chat_type="group", user_id="@a:server")
    old = "agent:main:matrix:group:!room:server:@a:server"
    write(home, {old: row(old, origin=room.to_dict())})
    store = make_store()
    (entry,) = store.list_sessions()
    assert entry.session_key == "agent:main:matrix:group:!room%3Aserver:@a%3Aserver"


BAD_ROWS: dict[str, Any] = {
    "no-times": {"session_key": "no-times", "session_id": "x"},
    "null-time": row("null-time", created_at=None),
    "not-a-row": 5,
    "huge-number": row("huge-number", last_prompt_tokens=10**30),
    "name-of-a-wrong-type": row("name-of-a-wrong-type", display_name=["x"]),
    "reason-of-a-wrong-type": row("reason-of-a-wrong-type", resume_reason=7),
    "type-of-a-wrong-type": row("type-of-a-wrong-type", chat_type=5),
    "nul-in-session": row("nul-in-session", "a\0b"),
    "surrogate-in-session": row("surrogate-in-session", "\ud800"),
    "long-session": row("long-session", "x" * 10_240),
    "nul-in-key": row("a\0b"),
    "huge-origin": row("huge-origin", origin={"platform": "slack", "chat_id": "9", "chat_topic": "x" * 2_000_000}),
    "text": "text",
    "no-id": row("no-id", session_id=""),
    "year-one": row("year-one", created_at="0001-01-01T00:00:00"),
    "bad-origin": row("bad-origin", origin={"platform": "", "chat_id": "1"}),
    "list": [1, 2],
}


@pytest.mark.parametrize("name", sorted(BAD_ROWS))
def test_bad_row_is_set_aside_and_the_others_live(
    make_store: MakeStore, home: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(home, {"good-1": row("good-1"), name: BAD_ROWS[name], "good-2": row("good-2", "20260101_000000_00000002")})
    store = make_store()
    assert {entry.session_key for entry in store.list_sessions()} == {"good-1", "good-2"}
    store.update_session("good-1")
    store.close()
    (aside,) = (home / "sessions").glob("sessions-rejected-*.json")
    rejected = json.loads(aside.read_text())
    assert rejected[name]["reason"]
    expected = BAD_ROWS[name]
    assert rejected[name]["row"] == expected
    assert f"{name!r}" in caplog.text
    assert aside.name in caplog.text


def test_comment_in_the_file_is_no_row(make_store: MakeStore, home: Path) -> None:
    write(home, {"_README": "written by another program", "good": row("good")})
    assert [entry.session_key for entry in make_store().list_sessions()] == ["good"]
    assert not list((home / "sessions").glob("sessions-rejected-*"))


def test_row_of_an_absent_plugin_is_imported_and_exported(make_store: MakeStore, home: Path) -> None:
    origin = {"platform": "lost_plugin", "chat_id": "9"}
    write(home, {"k": row("k", origin=origin, platform="lost_plugin")})
    store = make_store()
    (entry,) = store.list_sessions()
    assert entry.session_key == "agent:main:lost_plugin:dm:9"
    store.update_session(entry.session_key)
    store.close()
    assert read(home)["agent:main:lost_plugin:dm:9"]["platform"] == "lost_plugin"


def test_two_rows_of_one_lane_leave_the_newer_one(make_store: MakeStore, home: Path) -> None:
    number = SessionSource(Platform.WHATSAPP, "15551234567@s.whatsapp.net").to_dict()
    other = SessionSource(Platform.WHATSAPP, "15551234567").to_dict()
    write(
        home,
        {
            "a": row("a", "20260101_000000_0000000a", origin=number, updated_at="2026-01-03T00:00:00"),
            "b": row("b", "20260101_000000_0000000b", origin=other),
        },
    )
    (entry,) = make_store().list_sessions()
    assert entry.session_id == "20260101_000000_0000000a"
    (aside,) = (home / "sessions").glob("sessions-rejected-*.json")
    assert json.loads(aside.read_text())["b"]["row"]["session_id"] == "20260101_000000_0000000b"


@pytest.mark.parametrize("content", ["", "{", "[]", "5", '{"a": ', "\x00", "[" * 100_000, '"text"'])
def test_malformed_file_is_copied_before_it_is_replaced(
    make_store: MakeStore, home: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(home, content)
    store = make_store()
    store.get_or_create_session(ALICE)
    store.close()
    (copy,) = (home / "sessions").glob("sessions-unreadable-*.json")
    assert copy.read_text() == content
    assert copy.name in caplog.text
    assert list(read(home)) == [KEY]


@pytest.mark.parametrize("name", ["restart_counts.json", ".restart_failure_counts"])
def test_restart_counts_are_imported_and_exported(make_store: MakeStore, home: Path, name: str) -> None:
    write(home, {KEY: row(KEY, origin=ALICE.to_dict())})
    (home / name).write_text(json.dumps({KEY: 2, "other": "x"}))
    store = make_store()
    store.update_session(KEY)
    store.flush()
    assert json.loads((home / "restart_counts.json").read_text()) == {KEY: 2}
    assert store.count_restart(KEY) == 3
    store.close()
    assert json.loads((home / "restart_counts.json").read_text()) == {}
    assert read(home)[KEY]["suspended"] is True


IMPORT = """
import sys
from pathlib import Path
from hermes.gateway import GatewayConfig, SessionStore
config = GatewayConfig()
sys.stdin.read(1)
with SessionStore(config.sessions_dir, config) as store:
    print(len(store.list_sessions()))
"""


@pytest.mark.parametrize("kind", ["directory", "loop", "pipe"])
@pytest.mark.parametrize("is_down", [False, True])
def test_something_else_with_the_name_of_the_file_is_not_read(
    make_store: MakeStore, database: Database, home: Path, kind: str, is_down: bool
) -> None:
    path = home / "sessions" / "sessions.json"
    path.parent.mkdir()
    if kind == "directory":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    else:
        os.mkfifo(path)
    database.is_down = is_down
    assert make_store().get_or_create_session(ALICE).session_key == KEY


def test_failed_flush_is_repeated(make_store: MakeStore, home: Path) -> None:
    store = make_store()
    store.flush()
    (home / "sessions" / "sessions.json").mkdir(parents=True)
    store.get_or_create_session(ALICE)
    with pytest.raises(IsADirectoryError):
        store.flush()
    (home / "sessions" / "sessions.json").rmdir()
    store.flush()
    assert list(read(home)) == [KEY]


def test_two_processes_import_the_same_file_once(home: Path) -> None:
    rows = {f"k{number}": row(f"k{number}", f"20260101_000000_{number:08x}") for number in range(200)}
    write(home, {**rows, "bad": 5})
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", IMPORT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"x")
        process.stdin.flush()
    results = [process.communicate(timeout=60) for process in processes]
    assert [out.strip() for out, _ in results] == [b"200", b"200"], results
    assert len(list((home / "sessions").glob("sessions-rejected-*.json"))) == 1
    config = GatewayConfig()
    assert config.sessions_dir == home / "sessions"
