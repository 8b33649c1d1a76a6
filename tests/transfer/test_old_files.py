"""Files of older versions and of other programs are migrated without being upgraded."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.support.conversations import session_of
from tests.support.plainsql import change
from tests.transfer.contents import differences, migrate
from tests.upgrade import oldfiles
from tests.upgrade.build_files import NEWEST, build
from tests.upgrade.checks import digest
from tests.upgrade.corpus import Expected

VERSIONS = (1, 5, 9, NEWEST)


def migrated(path: Path, target: SessionDBProvider) -> None:
    """Migrate a file and check that not a byte of it has changed."""
    before = digest(path)
    with SessionDB(path, read_only=True) as origin:
        migrate(origin, target)
        assert differences(origin, target) == []
    assert digest(path) == before


def assert_same_messages(target: SessionDBProvider, expected: Expected) -> None:
    """Check that every message exists with its id, session and content."""
    wanted = [(each.id, each.session_id, each.role, each.content) for each in expected.all_messages()]
    found = [
        (message["id"], message["session_id"], message["role"], message["content"])
        for session in target.iter_export(include_inactive=True)
        for message in session["messages"]
    ]
    assert sorted(found, key=lambda row: row[0]) == sorted(wanted, key=lambda row: row[0])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_of_any_version_is_migrated(target: SessionDBProvider, tmp_path: Path, version: int) -> None:
    expected = build(version, tmp_path / "old.db")
    migrated(tmp_path / "old.db", target)
    assert_same_messages(target, expected)


@pytest.mark.parametrize("version", oldfiles.REAL_VERSIONS)
def test_a_file_of_another_program_is_migrated(target: SessionDBProvider, tmp_path: Path, version: int) -> None:
    expected = oldfiles.real(version, tmp_path / "real.db")
    migrated(tmp_path / "real.db", target)
    assert_same_messages(target, expected)


def test_tokens_without_events_get_an_opening_event(target: SessionDBProvider, tmp_path: Path) -> None:
    build(NEWEST, tmp_path / "old.db")
    migrated(tmp_path / "old.db", target)
    with SessionDB(tmp_path / "old.db") as upgraded:
        assert target.usage_by_model() == upgraded.usage_by_model()


def test_tool_calls_of_old_files_are_counted(target: SessionDBProvider, tmp_path: Path) -> None:
    build(NEWEST, tmp_path / "old.db")
    migrated(tmp_path / "old.db", target)
    with SessionDB(tmp_path / "old.db") as upgraded:
        sessions = [row["id"] for row in upgraded.search_sessions(limit=-1)]
        tools = {each: upgraded.get_session_tools(each) for each in sessions}
    assert any(tools.values())
    assert {each: target.get_session_tools(each) for each in sessions} == tools


def test_titles_that_two_sessions_share_are_numbered(target: SessionDBProvider, tmp_path: Path) -> None:
    damaged = oldfiles.with_duplicate_titles(tmp_path / "old.db")
    migrated(damaged.path, target)
    titles = [session_of(target, each)["title"] for each in damaged.sessions]
    with SessionDB(damaged.path) as upgraded:
        assert titles == [session_of(upgraded, each)["title"] for each in damaged.sessions]
    assert len(set(titles)) == 2


def test_messages_without_a_session_get_one(target: SessionDBProvider, tmp_path: Path) -> None:
    damaged = oldfiles.orphan_message(tmp_path / "old.db")
    migrated(damaged.path, target)
    assert_same_messages(target, damaged.expected)
    orphan = session_of(target, oldfiles.MISSING_SESSION)
    assert (orphan["source"], orphan["message_count"]) == ("unknown", 1)
    assert orphan["preview"] == "Nobody knows where I belong."


def test_broken_json_is_migrated_unchanged(target: SessionDBProvider, tmp_path: Path) -> None:
    damaged = oldfiles.with_broken_json(tmp_path / "old.db")
    migrated(damaged.path, target)
    assert_same_messages(target, damaged.expected)


def test_values_of_the_wrong_type_do_not_stop_a_migration(target: SessionDBProvider, tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    build(NEWEST, path)
    change(
        path,
        "UPDATE messages SET timestamp = 'yesterday', token_count = 'many' WHERE id = 1",
        "UPDATE messages SET content = x'ff00', tool_name = 7 WHERE id = 2",
        "UPDATE sessions SET input_tokens = 'x', ended_at = 'never', model = x'c328'",
    )
    migrated(path, target)
    assert target.message_count() > 0


def test_messages_that_another_program_has_just_added_are_counted(target: SessionDBProvider, source: Path) -> None:
    change(
        source,
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('empty', 'user', 'by hand', 9e9)",
        "INSERT INTO sessions (id, source, started_at) VALUES ('by-hand', 'cli', 5)",
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('by-hand', 'user', 'all of it', 7)",
    )
    migrated(source, target)
    found = [session_of(target, each) for each in ("empty", "by-hand")]
    assert [each["message_count"] for each in found] == [1, 1]
    assert [each["last_active"] for each in found] == [9e9, 7.0]
    assert [each["preview"] for each in found] == ["by hand", "all of it"]
