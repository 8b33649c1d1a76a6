"""Old files are opened and upgraded, and lose nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.state.sqlite.schema.definitions import ledger
from hermes_state import SCHEMA_VERSION, SessionDB
from tests.support.plainsql import change, rows
from tests.support.waiting import wait_until
from tests.upgrade import checks, oldfiles
from tests.upgrade.build_files import build
from tests.upgrade.checks import FTS_TABLES, assert_nothing_lost, assert_sound, backups, schema_of
from tests.upgrade.corpus import Expected

COMPRESSED, TIP = "20250301_090000_a1b2c3d4", "20250301_091001_b2c3d4e5"
TELEGRAM = "20250302_101500_0c0ffee3"
KINDS = {
    TIP: "compression",
    "20250302_120000_d4e5f607": "branch",
    "20250302_130000_e5f60718": "delegate",
    "20250305_060031_30415263": "branch",
}
PREVIEWS = {
    COMPRESSED: "Please deploy the docker image to staging.",
    TIP: "[Summary of the earlier conversation] The image alpha:1.5.0 ...",
    TELEGRAM: "東京の天気はどうですか？明日は雨が降りますか。",
    "20250302_120000_d4e5f607": "What if we roll back instead?",
    "20250302_130000_e5f60718": "Find every TODO in src.",
    "20250303_080000_f6071829": "Write a haiku about SQLite.",
    "20250304_070000_07182930": "これは古い会話です",
    "20250304_090000_18293041": "",
    "20250305_060000_29304152": "Compare parser A with parser B.",
    "20250305_060031_30415263": "Then take B, with getUserById and snake_case_names.",
}

Make = Callable[[Path], Expected]


def built(version: int) -> Make:
    """Return a function that builds a file of a version from the published table."""
    return lambda path: build(version, path, sessions=10)


def released(version: int) -> Make:
    """Return a function that unpacks the file of a release."""
    return lambda path: oldfiles.real(version, path)


OLD_FILES = [pytest.param(built(n), n, id=f"built-{n}") for n in range(1, 12)]
OLD_FILES.append(pytest.param(released(11), 11, id="released-11"))

DAMAGED: dict[str, Callable[[Path], oldfiles.DamagedFile]] = {
    "duplicate-titles": oldfiles.with_duplicate_titles,
    "broken-json": oldfiles.with_broken_json,
    "no-fts": oldfiles.without_fts,
    "no-fts-no-triggers": lambda path: oldfiles.without_fts(path, keeps_triggers=False),
    "no-fts-at-5": lambda path: oldfiles.without_fts(path, version=5),
    "no-column": oldfiles.without_column,
    "half-trigger": oldfiles.half_trigger,
    "orphan-message": oldfiles.orphan_message,
    "two-version-rows": oldfiles.two_version_rows,
    "no-version-row": oldfiles.no_version_row,
    "no-version-row-at-4": lambda path: oldfiles.no_version_row(path, version=4),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the test's file."""
    return tmp_path / "state.db"


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A new, empty store."""
    path = tmp_path / "fresh" / "state.db"
    SessionDB(path).close()
    return path


def upgrade(path: Path) -> None:
    """Open a file once, like any program."""
    with SessionDB(path) as db:
        assert not db.read_only


@pytest.mark.parametrize(("make", "version"), OLD_FILES)
class TestEveryVersion:
    """What holds for each version from 1 to 11."""

    def test_upgrade_loses_nothing(self, path: Path, make: Make, version: int) -> None:
        expected = make(path)
        upgrade(path)
        assert_nothing_lost(path, expected)
        assert_sound(path)

    def test_upgraded_file_is_marked_as_version_11_and_as_ours(self, path: Path, make: Make, version: int) -> None:
        make(path)
        upgrade(path)
        assert rows(path, "SELECT version FROM schema_version") == [(SCHEMA_VERSION,)]
        assert dict(rows(path, "SELECT name, checksum FROM hermes_ledger")) == ledger()

    def test_upgrade_leaves_a_complete_backup(self, path: Path, make: Make, version: int) -> None:
        expected = make(path)
        upgrade(path)
        (backup,) = backups(path)
        assert backup.name.startswith(f"state.db.pre-{version}-2")
        assert oldfiles.read_plainly(backup) == expected
        assert rows(backup, "SELECT count(*) FROM sqlite_schema WHERE name = 'hermes_ledger'") == [(0,)]

    def test_second_open_changes_nothing(self, path: Path, make: Make, version: int) -> None:
        make(path)
        upgrade(path)
        upgrade(path)
        kept, schema = checks.digest(path), rows(path, "SELECT * FROM sqlite_schema")
        upgrade(path)
        assert len(backups(path)) == 1
        assert rows(path, "SELECT * FROM sqlite_schema") == schema
        assert checks.digest(path) == kept

    def test_upgraded_file_has_the_schema_of_a_new_file(
        self, path: Path, fresh: Path, make: Make, version: int
    ) -> None:
        make(path)
        upgrade(path)
        wanted, found = schema_of(fresh), schema_of(path)
        # A release leaves the tables of its Telegram topics in the file; they are not ours to drop.
        assert {name: found.get(name) for name in wanted} == wanted
        assert all("telegram" in name for name in found.keys() - wanted.keys())

    def test_upgrade_counts_messages_calls_and_activity(self, path: Path, make: Make, version: int) -> None:
        expected = make(path)
        with SessionDB(path) as db:
            for session in expected.sessions:
                row = db.get_session(session.id)
                assert row is not None
                count = (row["message_count"], row["tool_call_count"], row["last_active"])
                assert count == checks.expected_counters(expected, session)
                assert row["listed"] == (session.id not in KINDS or KINDS[session.id] == "branch")

    def test_upgrade_sets_kinds_chains_and_previews(self, path: Path, make: Make, version: int) -> None:
        make(path)
        with SessionDB(path) as db:
            found = {session: {**(db.get_session(session) or {})} for session in PREVIEWS}
            assert {session: row["preview"] or "" for session, row in found.items()} == PREVIEWS
            assert {session: row["child_kind"] for session, row in found.items() if row["child_kind"]} == KINDS
            assert {session: row["chain_root"] for session, row in found.items() if row["chain_root"]} == {
                TIP: COMPRESSED
            }
            assert found[COMPRESSED]["chain_active"] == found[TIP]["last_active"]
            assert found[TELEGRAM]["owner"] == "telegram:tg-100"

    def test_upgrade_adds_one_usage_event_for_each_session_with_usage(
        self, path: Path, make: Make, version: int
    ) -> None:
        expected = make(path)
        with SessionDB(path) as db:
            for session in expected.sessions:
                counters = {
                    "input_tokens": session.input_tokens,
                    "output_tokens": session.output_tokens,
                    "cache_read_tokens": session.cache_read_tokens,
                    "cache_write_tokens": session.cache_write_tokens,
                    "reasoning_tokens": session.reasoning_tokens,
                    "api_call_count": session.api_call_count,
                    "estimated_cost_usd": session.estimated_cost_usd or 0,
                    "actual_cost_usd": session.actual_cost_usd or 0,
                }
                events = [dict[str, Any](event) for event in db.list_usage_events(session.id)]
                assert [event["kind"] for event in events] == (["opening"] if any(counters.values()) else [])
                assert all(event[name] == value for event in events for name, value in counters.items())

    def test_both_indexes_are_complete_after_the_first_close(self, path: Path, make: Make, version: int) -> None:
        expected = make(path)
        upgrade(path)
        ids = [message.id for message in expected.all_messages()]
        docker = [m.id for m in expected.all_messages() if "docker" in f"{m.content} {m.tool_calls}".lower()]
        assert docker
        for table in FTS_TABLES:
            assert checks.indexed(path, table) == ids
            assert checks.matching(path, table, "docker") == docker
        assert rows(path, "SELECT value FROM state_meta WHERE key = 'indexed_upto'") == [(str(ids[-1]),)]
        assert rows(path, "SELECT * FROM stale_index") == []

    def test_upgraded_session_can_be_continued(self, path: Path, make: Make, version: int) -> None:
        expected = make(path)
        with SessionDB(path) as db:
            new = db.append_message(TIP, "user", "and on it goes")
            assert new == len(expected.all_messages()) + 1
            assert [message["content"] for message in db.get_messages(TIP)][-1] == "and on it goes"
            assert db.list_sessions_rich(order_by_last_active=True)[0]["id"] == TIP

    def test_old_file_reads_the_same_without_an_upgrade(self, path: Path, make: Make, version: int) -> None:
        expected = make(path)
        before = checks.digest(path)
        with SessionDB(path, read_only=True) as db:
            assert db.read_only
            seen = everything(db, expected)
        assert checks.digest(path) == before
        assert backups(path) == []
        with SessionDB(path) as db:
            assert seen == everything(db, expected)


def everything(db: SessionDB, expected: Expected) -> dict[str, Any]:
    """What the reading operations return for the sessions of an old file."""
    ids = [session.id for session in expected.sessions]
    kept_for_lists = {"chain_root", "chain_active", "preview"}
    return {
        "lists": [
            [(row["id"], row["preview"], row["last_active"]) for row in listed]
            for listed in (
                db.list_sessions_rich(limit=-1, project_compression_tips=False),
                db.list_sessions_rich(limit=-1, include_children=True),
                db.list_sessions_rich(limit=3, order_by_last_active=True, owner="telegram:tg-100"),
            )
        ],
        "sessions": [
            {k: v for k, v in (db.get_session(each) or {}).items() if k not in kept_for_lists} for each in ids
        ],
        "messages": [db.get_messages(each) for each in ids],
        "conversations": [db.get_messages_as_conversation(each, include_ancestors=True) for each in ids],
        "titles": [db.resolve_session_by_title(s.title) for s in expected.sessions if s.title],
        "tips": [db.get_compression_tip(each) for each in ids],
        "families": [(db.get_ancestors(each), db.get_descendants(each)) for each in ids],
        "by id": [db.resolve_session_id(each[:17]) for each in ids],
        "windows": [db.get_anchored_view(m.session_id, m.id) for m in expected.all_messages()],
        "counts": (db.session_count(), db.message_count(), db.count_by_source(), db.usage_by_model()),
        "exports": [
            {k: v for k, v in session.items() if k not in kept_for_lists}
            for session in db.iter_export(include_inactive=True)
        ],
    }


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_file_opens_and_keeps_its_content(path: Path, damage: Callable[[Path], oldfiles.DamagedFile]) -> None:
    damaged = damage(path)
    with SessionDB(path) as db:
        for session_id, messages in damaged.expected.messages.items():
            assert [row["id"] for row in db.get_messages(session_id)] == [message.id for message in messages]
            assert db.get_messages_as_conversation(session_id)
        assert db.list_sessions_rich(limit=-1, include_children=True)
        db.append_message(damaged.expected.sessions[0].id, "user", "still writable")
    now = oldfiles.read_plainly(path)
    kept = {session: messages[: len(damaged.expected.messages[session])] for session, messages in now.messages.items()}
    assert kept == damaged.expected.messages
    assert {session.id for session in damaged.expected.sessions} <= {session.id for session in now.sessions}
    assert_sound(path)
    assert len(backups(path)) == 1


def test_second_session_with_a_title_gets_a_suffix(path: Path) -> None:
    damaged = oldfiles.with_duplicate_titles(path)
    kept, renamed = damaged.sessions
    with SessionDB(path) as db:
        assert db.get_session_title(kept) == "Deploy pipeline"
        # `#2` is the continuation, and this session is not part of its lineage.
        assert db.get_session_title(renamed) == "Deploy pipeline (2)"


def test_orphans_get_a_session_of_their_own(path: Path) -> None:
    oldfiles.orphan_message(path)
    with SessionDB(path) as db:
        row = db.get_session(oldfiles.MISSING_SESSION)
        assert row is not None
        assert (row["source"], row["message_count"], row["preview"]) == ("unknown", 1, "Nobody knows where I belong.")
        assert db.append_message(oldfiles.MISSING_SESSION, "user", "the session exists now")


def test_broken_json_is_shown_as_text_or_nothing(path: Path) -> None:
    caller, multimodal = oldfiles.with_broken_json(path).messages
    with SessionDB(path) as db:
        shown = {row["id"]: row for session in PREVIEWS for row in db.get_messages(session)}
        assert shown[caller]["tool_calls"] == []
        assert shown[multimodal]["content"] == oldfiles.BROKEN_CONTENT


def test_message_that_was_never_indexed_is_found_after_the_upgrade(path: Path) -> None:
    (unindexed,) = oldfiles.half_trigger(path).messages
    upgrade(path)
    for table in FTS_TABLES:
        assert checks.matching(path, table, oldfiles.UNINDEXED_WORD) == [unindexed]


def test_values_of_unexpected_types_do_not_stop_the_upgrade(path: Path) -> None:
    build(11, path)
    change(
        path,
        "DROP TRIGGER messages_fts_insert",
        "DROP TRIGGER messages_fts_trigram_insert",
        f"INSERT INTO messages (session_id, role, content, timestamp) VALUES ('{TIP}', 'user', x'00ff6a', 1740820300)",
        f"INSERT INTO messages (session_id, role, content, timestamp) VALUES ('{TIP}', 'user', 42, 1740820301)",
        f"""INSERT INTO messages (session_id, role, content, tool_name, tool_calls, timestamp)
            VALUES ('{TIP}', 'tool', 'x', 7, '{{"name": "alone"}}', 1740820302)""",
    )
    with SessionDB(path) as db:
        assert len(db.get_messages(TIP)) == len(db.get_messages_as_conversation(TIP)) == 9
    assert len(checks.indexed(path, "messages_fts")) == rows(path, "SELECT count(*) FROM messages")[0][0]


def test_large_file_is_indexed_after_the_open(path: Path) -> None:
    expected = build(11, path, sessions=300)
    assert len(expected.all_messages()) > 2 * 512
    newest = str(expected.all_messages()[-1].id)
    with SessionDB(path) as db:
        wait_until(lambda: db.get_meta("indexed_upto") == newest, "the index to be filled")
    assert_nothing_lost(path, expected)
    for table in FTS_TABLES:
        assert checks.indexed(path, table) == [message.id for message in expected.all_messages()]


def test_clock_that_stepped_back_does_not_hide_a_continuation(path: Path) -> None:
    build(11, path, sessions=10)
    change(path, f"UPDATE sessions SET started_at = 1740819000 WHERE id = '{TIP}'")
    with SessionDB(path) as db:
        assert db.get_compression_tip(COMPRESSED) == TIP


def test_chat_marked_as_a_delegate_by_an_older_program_stays_in_the_list(path: Path) -> None:
    build(11, path, sessions=10)
    change(
        path, f"""UPDATE sessions SET model_config = '{{"_delegate_from": "__orphaned__"}}' WHERE id = '{TELEGRAM}'"""
    )
    with SessionDB(path) as db:
        assert TELEGRAM in [row["id"] for row in db.list_sessions_rich(limit=-1)]


def test_two_processes_upgrade_once(path: Path) -> None:
    expected = build(2, path, sessions=100)
    program = f"from hermes_state import SessionDB\nwith SessionDB({str(path)!r}) as db: print(db.session_count())"
    both = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=checks.environment())
        for _ in range(2)
    ]
    assert [process.communicate(timeout=60)[0] for process in both] == ["100\n", "100\n"]
    assert len(backups(path)) == 1
    assert_nothing_lost(path, expected)


@pytest.mark.parametrize(("unit", "stride"), [("statements", 6), ("steps", 7)])
def test_upgrade_killed_anywhere_leaves_the_old_file_or_the_new_one(tmp_path: Path, unit: str, stride: int) -> None:
    old = tmp_path / "old.db"
    expected = build(4, old, sessions=10)
    driver = [
        sys.executable,
        "-m",
        "tests.upgrade.kill_upgrades",
        str(old),
        str(tmp_path / "killed"),
        unit,
        str(stride),
    ]
    subprocess.run(driver, check=True, timeout=60, env=checks.environment(), cwd=checks.ROOT)
    killed = sorted((tmp_path / "killed").glob("*/state.db"))
    assert len(killed) > 20
    for path in killed:
        assert_sound(path)
        found = oldfiles.read_plainly(path)
        assert found.version in (4, 11)
        assert (found.sessions, found.messages) == (expected.sessions, expected.messages)
        upgrade(path)
        assert_nothing_lost(path, expected)
        assert_sound(path)
        assert all(oldfiles.read_plainly(backup) == expected for backup in backups(path))


def test_upgrade_reports_progress_once(path: Path) -> None:
    expected = build(9, path)
    upgrade(path)
    with SessionDB(path) as db:
        db.append_message(COMPRESSED, "user", "later")
    assert oldfiles.read_plainly(backups(path)[0]) == expected
    assert replace(oldfiles.read_plainly(path), version=9) != expected
