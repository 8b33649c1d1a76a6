"""Files of later versions of another program are read, imported, and never altered."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from hermes.state.rows import AnyRow
from hermes_state import SessionDB, StoreReadOnly
from tests.support.plainsql import change
from tests.upgrade import checks, oldfiles
from tests.upgrade.build_files import JSON_COLUMNS, build
from tests.upgrade.corpus import Expected, Message, Session

UPSTREAM_VERSIONS = (14, 17, 22)
COMPRESSED, TIP = "20250301_090000_a1b2c3d4", "20250301_091001_b2c3d4e5"
BRANCH, DELEGATE = "20250302_120000_d4e5f607", "20250302_130000_e5f60718"
REWOUND = "20250303_080000_f6071829"
# A handoff belongs to the machine that requested it; counters are computed again.
NOT_CARRIED = {"handoff_state", "handoff_platform", "message_count", "tool_call_count"}


@pytest.fixture(params=UPSTREAM_VERSIONS)
def upstream(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Expected]:
    """A file of a release, and its input."""
    path = tmp_path / "upstream" / "state.db"
    path.parent.mkdir()
    return path, oldfiles.real(request.param, path)


@pytest.fixture
def db(tmp_path: Path) -> SessionDB:
    """A new, empty store."""
    return SessionDB(tmp_path / "ours" / "state.db")


def message_of(row: AnyRow) -> dict[str, Any]:
    """A stored message in the form of the expected one, without our own columns."""
    found = {name: row[name] for name in asdict(Message(0, "", "", 0.0)) if name != "id"}
    for name in JSON_COLUMNS & found.keys():
        if isinstance(found[name], str):
            found[name] = json.loads(found[name])
    return {**found, "observed": bool(found["observed"]), "active": bool(found["active"])}


def session_of(row: AnyRow) -> dict[str, Any]:
    """A stored session in the form of the expected one, as far as an import copies it."""
    found = {name: row[name] for name in asdict(Session("", "", 0.0)) if name not in NOT_CARRIED}
    if isinstance(found["model_config"], str):
        found["model_config"] = json.loads(found["model_config"])
    return {**found, "archived": bool(found["archived"])}


def assert_holds(db: SessionDB, expected: Expected) -> None:
    """Assert that every session and message is there, value by value, in the same order."""
    for session in expected.sessions:
        row = db.get_session(session.id)
        assert row is not None
        wanted = {name: value for name, value in asdict(session).items() if name not in NOT_CARRIED}
        assert session_of(row) == wanted
        messages = db.get_messages(session.id, include_inactive=True)
        account = [asdict(message) for message in expected.messages.get(session.id, ())]
        assert [message_of(message) for message in messages] == [
            {name: value for name, value in message.items() if name != "id"} for message in account
        ]


def test_opens_for_reading_only_and_no_byte_changes(upstream: tuple[Path, Expected]) -> None:
    path, expected = upstream
    before = checks.digest(path)
    with SessionDB(path) as db:
        assert db.read_only
        assert_holds(db, expected)
    assert checks.digest(path) == before
    assert checks.backups(path) == []


def test_write_is_refused_with_a_hint_to_import(upstream: tuple[Path, Expected]) -> None:
    path, _ = upstream
    before = checks.digest(path)
    with SessionDB(path) as db:
        for write in (
            lambda: db.append_message(TIP, "user", "no"),
            lambda: db.create_session("new", "cli"),
            lambda: db.set_session_title(TIP, "No"),
            lambda: db.delete_session(TIP),
        ):
            with pytest.raises(StoreReadOnly) as refused:
                write()
            assert "hermes sessions import" in refused.value.hint
            assert str(path) in refused.value.hint
    assert checks.digest(path) == before


def test_every_reading_operation_works(upstream: tuple[Path, Expected]) -> None:
    path, expected = upstream
    with SessionDB(path) as db:
        for session in expected.sessions:
            active = [m for m in expected.messages.get(session.id, ()) if m.active]
            assert [row["id"] for row in db.get_messages(session.id)] == [message.id for message in active]
            assert len(db.get_messages_as_conversation(session.id)) == len(active)
            assert db.resolve_session_id(session.id[:16]) == session.id
            assert session.title is None or db.get_session_by_title(session.title) == db.get_session(session.id)
            assert db.get_session_tools(session.id) is not None
            assert db.export_session(session.id) is not None
        for message in expected.all_messages():
            shown = db.get_messages_around(message.session_id, message.id, include_inactive=True)["window"]
            assert message.id in [row["id"] for row in shown]
        assert db.get_compression_tip(COMPRESSED) == TIP
        assert [row["id"] for row in db.get_descendants(TIP)] == [TIP, BRANCH, DELEGATE]
        assert [row["id"] for row in db.get_ancestors(BRANCH)] == [BRANCH, TIP, COMPRESSED]
        assert db.session_count(include_archived=True) == len(expected.sessions)
        assert db.list_pending_handoffs()[0]["handoff_platform"] == "discord"
        assert db.get_meta("note") == expected.meta["note"]
        assert db.search_sessions(limit=-1)[0]["id"] == "20250305_060031_30415263"
        assert db.top_sessions()[0]["id"] == TIP
        assert db.list_prunable(1)
        assert db.count_empty_sessions() == 1


def test_list_shows_a_compressed_conversation_as_its_newest_session(upstream: tuple[Path, Expected]) -> None:
    path, _ = upstream
    with SessionDB(path) as db:
        for by_activity in (False, True):
            shown = [row["id"] for row in db.list_sessions_rich(limit=-1, order_by_last_active=by_activity)]
            assert TIP in shown
            assert COMPRESSED not in shown


def test_undone_messages_do_not_count(upstream: tuple[Path, Expected]) -> None:
    path, expected = upstream
    active = [message for message in expected.messages[REWOUND] if message.active]
    with SessionDB(path) as db:
        assert db.message_count(REWOUND) == len(active)


def test_session_row_has_a_short_preview(upstream: tuple[Path, Expected]) -> None:
    path, _ = upstream
    with SessionDB(path) as db:
        row = db.get_session(TIP)
        assert row is not None
        assert row["preview"] == "[Summary of the earlier conversation] The image alpha:1.5.0 ..."


def test_import_copies_everything(upstream: tuple[Path, Expected], db: SessionDB) -> None:
    path, expected = upstream
    before = checks.digest(path)
    with db:
        counts = db.import_database(path)
        assert counts == {
            "sessions": len(expected.sessions),
            "messages": len(expected.all_messages()),
            "sessions_seen": len(expected.sessions),
        }
        assert_holds(db, expected)
        for session in expected.sessions:
            row = db.get_session(session.id)
            assert row is not None
            assert (row["message_count"], row["tool_call_count"], row["last_active"]) == checks.expected_counters(
                expected, session
            )
    assert checks.digest(path) == before


def test_import_keeps_the_lineage(upstream: tuple[Path, Expected], db: SessionDB) -> None:
    path, _ = upstream
    with db:
        db.import_database(path)
        kinds = {row["id"]: row["child_kind"] for row in db.search_sessions(limit=-1)}
        assert {name: kind for name, kind in kinds.items() if kind} == {
            TIP: "compression",
            BRANCH: "branch",
            DELEGATE: "delegate",
            "20250305_060031_30415263": "branch",
        }
        shown = [row["id"] for row in db.list_sessions_rich(limit=-1)]
        assert TIP in shown
        assert COMPRESSED not in shown
        assert DELEGATE not in shown
        root = db.get_session(COMPRESSED)
        tip = db.get_session(TIP)
        assert root is not None
        assert tip is not None
        assert root["chain_active"] == tip["last_active"]


def test_second_import_adds_nothing(upstream: tuple[Path, Expected], db: SessionDB) -> None:
    path, expected = upstream
    with db:
        db.import_database(path)
        before = list(db.iter_export(include_inactive=True))
        counts = db.import_database(path)
        assert counts == {"sessions": 0, "messages": 0, "sessions_seen": len(expected.sessions)}
        assert list(db.iter_export(include_inactive=True)) == before


def test_import_of_the_old_file_after_its_upgrade_adds_nothing(tmp_path: Path) -> None:
    ours, copy = tmp_path / "ours.db", tmp_path / "copy.db"
    oldfiles.real(11, ours)
    oldfiles.real(11, copy)
    with SessionDB(ours) as db:
        before = db.message_count()
        counts = db.import_database(copy)
        assert counts["sessions"] == counts["messages"] == 0
        assert db.message_count() == before


def test_import_of_a_diverged_copy_keeps_the_messages_of_both(tmp_path: Path) -> None:
    ours, copy = tmp_path / "ours.db", tmp_path / "copy.db"
    for path, moment in ((ours, 5.0), (copy, 6.0)):
        build(9, path)
        change(
            path,
            "INSERT INTO sessions (id, source, started_at) VALUES ('s', 'cli', 1.0)",
            f"INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'yes', {moment})",
        )
    with SessionDB(ours) as db:
        assert db.import_database(copy, add_to_own=True)["messages"] == 1
        assert [message["timestamp"] for message in db.get_messages("s")] == [5.0, 6.0]


@pytest.mark.parametrize("version", range(1, 12))
def test_import_accepts_files_of_every_version(tmp_path: Path, db: SessionDB, version: int) -> None:
    path = tmp_path / "old.db"
    expected = build(version, path, sessions=10)
    before = checks.digest(path)
    with db:
        counts = db.import_database(path)
        assert (counts["sessions"], counts["messages"]) == (len(expected.sessions), len(expected.all_messages()))
        assert_holds(db, expected)
    assert checks.digest(path) == before
