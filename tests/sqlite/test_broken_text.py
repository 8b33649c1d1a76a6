"""Rows whose text is not UTF-8: they are read, searched and kept like all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_state import SessionDB
from tests.fault.processes import assert_sound
from tests.support.plainsql import change

BROKEN = "CAST(x'68656c6c6f20ff20776f726c64' AS TEXT)"
"""`hello`, a byte that is not valid in UTF-8, `world`."""
SHOWN = "hello \ufffd world"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store in which another program has left broken text."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "before")
    change(path, f"INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', {BROKEN}, 2.0)")
    return path


def test_invalid_byte_is_read_as_a_replacement_character(path: Path) -> None:
    with SessionDB(path) as db:
        assert [message["content"] for message in db.get_messages("s")] == ["before", SHOWN]
        assert [message["content"] for message in db.get_messages_as_conversation("s")] == ["before", SHOWN]


def test_message_with_invalid_text_keeps_its_uid(path: Path) -> None:
    with SessionDB(path, read_only=True) as db:
        first = db.get_messages("s")[1]["uid"]
    with SessionDB(path) as db:
        assert db.get_messages("s")[1]["uid"] == first


@pytest.mark.parametrize("read_only", [False, True])
def test_message_with_invalid_text_is_found(path: Path, read_only: bool) -> None:
    with SessionDB(path, read_only=read_only) as db:
        assert [each["session_id"] for each in db.search_messages("world")] == ["s"]


def test_message_with_invalid_text_is_found_through_the_index(path: Path) -> None:
    with SessionDB(path) as db:
        db.append_messages("s", [{"role": "user", "content": f"more {number}"} for number in range(600)])
    with SessionDB(path) as db:
        assert [each["snippet"] for each in db.search_messages("world")] == ["hello \ufffd >>>world<<<"]
        assert len(db.search_messages("more", limit=1000)) == 600


def test_other_messages_are_still_stored(path: Path) -> None:
    with SessionDB(path) as db:
        db.append_message("s", "user", "after")
        assert db.message_count("s") == 3
    assert_sound(path)


def test_invalid_text_in_a_session_hides_nothing(path: Path) -> None:
    change(path, f"UPDATE sessions SET model = {BROKEN}, cwd = {BROKEN}, preview = {BROKEN}, title = {BROKEN}")
    with SessionDB(path) as db:
        (row,) = db.list_sessions_rich()
        assert (row["model"], row["cwd"], row["title"]) == (SHOWN, SHOWN, SHOWN)
        assert row["message_count"] == 2


def test_session_with_invalid_text_is_exported_and_deleted(path: Path) -> None:
    with SessionDB(path) as db:
        exported = db.export_session("s")
        assert exported is not None
        assert exported["messages"][1]["content"] == SHOWN
        assert db.delete_session("s")
    assert_sound(path)
