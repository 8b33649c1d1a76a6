"""Detection of file formats by content, and search for session files in directories."""

from __future__ import annotations

import json
import os
from pathlib import Path

import apsw
import pytest

from hermes.errors import NotFound
from hermes.interop.detection import find, identity_of, recognize
from hermes.interop.exported import Exported
from hermes.interop.other_agents.claude_code import ClaudeCode
from hermes.interop.other_agents.codex import Codex
from hermes.state.import_export.session_writer import ImportOutcome
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.interop.files import Entry, claude_conversation, codex_conversation, failure_of, import_files, write
from tests.support.clock import FakeClock
from tests.support.conversations import contents, session_of
from tests.support.plainsql import change
from tests.upgrade.oldfiles import REAL_VERSIONS, real

EXPORTED: Entry = {"id": "s", "messages": []}


@pytest.mark.parametrize(
    ("lines", "form"),
    [
        ([EXPORTED], Exported),
        ([], Exported),
        (claude_conversation(), ClaudeCode),
        (claude_conversation()[1:], ClaudeCode),
        (claude_conversation()[-1:], ClaudeCode),
        ([{"type": "permission-mode", "sessionId": "x"}], ClaudeCode),
        ([{"type": "news of tomorrow"}, *claude_conversation()], ClaudeCode),
        (codex_conversation(), Codex),
        (codex_conversation()[3:], Codex),
        ([{"id": "x", "timestamp": "2025-05-20T08:00:00.000Z", "instructions": None}], Codex),
    ],
)
@pytest.mark.parametrize("name", ["x.jsonl", "x.db", "noname"])
def test_format_is_detected_by_the_lines(tmp_path: Path, lines: list[Entry], form: type, name: str) -> None:
    assert type(recognize(write(tmp_path / name, lines))) is form


@pytest.mark.parametrize(
    "lines",
    [
        [{"some": "object"}],
        [{"type": "user", "text": "hello"}],
        [{"type": "system"}],
        [{"type": "session_meta"}],
        [{"id": "x"}],
        [{"messages": []}],
        [{"id": 5, "messages": []}],
        [{"some": "object"}] * 101 + claude_conversation(),
    ],
    ids=str,
)
def test_unknown_format_is_not_detected(tmp_path: Path, lines: list[Entry]) -> None:
    path = write(tmp_path / "x.jsonl", lines)
    assert recognize(path) is None
    (found,) = find([path])
    assert isinstance(found.source, NotFound)


def test_directory_is_searched_for_session_files(store: SessionDBProvider, tmp_path: Path) -> None:
    place = tmp_path / "projects"
    write(place / "-home-ada-wiki" / "talk.jsonl", claude_conversation())
    write(place / "2026" / "03" / "rollout.jsonl", codex_conversation())
    write(place / "notes.txt", ["no sessions"])
    write(place / "settings.json", ["{", "}"])
    write(place / "other.jsonl", [{"some": "object"}])
    write(place / "empty.jsonl", [])
    os.symlink(place, place / "loop")
    os.mkfifo(place / "pipe.jsonl")
    tally = import_files(store, place)
    assert tally.failures == {}
    assert dict(tally.sessions) == {ImportOutcome.NEW: 2}


def test_unreadable_session_file_in_a_directory_is_reported(store: SessionDBProvider, tmp_path: Path) -> None:
    write(tmp_path / "x" / "talk.jsonl", ['{"type": "user", "sess'])
    assert "talk.jsonl:1: not JSON" in failure_of(import_files(store, tmp_path / "x"))


def test_database_in_a_directory_must_be_given_by_name(store: SessionDBProvider, tmp_path: Path) -> None:
    path = tmp_path / "x" / "old.db"
    with SessionDB(path) as other:
        other.create_session("s", "cli")
    assert import_files(store, path.parent).files == 0
    assert dict(import_files(store, path).sessions) == {ImportOutcome.NEW: 1}


def test_files_of_the_store_itself_are_not_opened(tmp_path: Path) -> None:
    path = write(tmp_path / "state.db", [EXPORTED])
    own = identity_of(path)
    assert own is not None
    os.link(path, tmp_path / "link.jsonl")
    assert list(find([tmp_path], {own})) == []
    (found,) = find([path], {own})
    assert "belongs to the store itself" in str(found.source)


class TestDatabases:
    @pytest.fixture
    def other(self, tmp_path: Path) -> Path:
        """Another store, with a too long title and more messages than one group."""
        path = tmp_path / "other.db"
        with SessionDB(path, clock=FakeClock()) as db:
            db.create_session("s", "telegram", user_id="7")
            db.append_messages("s", [{"role": "user", "content": f"message {n}"} for n in range(1_200)])
            db.rewind_to_message("s", 1_100)
            db.update_token_counts("s", 10, 20, model="m")
        change(path, f"UPDATE sessions SET title = '{'T' * 130}'")
        return path

    def test_database_is_imported_whole(self, store: SessionDBProvider, other: Path) -> None:
        tally = import_files(store, other, keeps_owners=True)
        assert (tally.messages, dict(tally.sessions)) == (1_200, {ImportOutcome.NEW: 1})
        row = session_of(store, "s")
        assert (row["title"], row["owner"], row["message_count"]) == ("T" * 100, "telegram:7", 1_099)
        assert [each["kind"] for each in store.list_usage_events("s")] == ["delta"]
        (rewound,) = store.list_rewinds("s")
        assert store.restore_rewound("s", rewound["target_message_id"]) == 101

    def test_importing_a_database_again_adds_only_new_messages(self, store: SessionDBProvider, other: Path) -> None:
        import_files(store, other)
        with SessionDB(other) as db:
            db.append_message("s", "user", "more")
        assert (import_files(store, other, is_dry_run=True).messages, import_files(store, other).messages) == (1, 1)
        assert contents(store.get_messages("s"))[-1] == "more"

    @pytest.mark.parametrize("version", REAL_VERSIONS)
    def test_database_of_upstream_is_imported_unchanged(
        self, store: SessionDBProvider, tmp_path: Path, version: int
    ) -> None:
        path = tmp_path / "upstream.db"
        expected = real(version, path)
        before = path.read_bytes()
        tally = import_files(store, path)
        assert tally.failures == {}
        assert tally.messages == len(list(expected.all_messages()))
        assert import_files(store, path).messages == 0
        assert path.read_bytes() == before
        for session in expected.sessions:
            row = session_of(store, session.id)
            assert (row["source"], row["title"]) == (session.source, session.title)

    def test_damaged_database_is_reported_and_leaves_the_store_unchanged(
        self, store: SessionDBProvider, other: Path
    ) -> None:
        data = bytearray(other.read_bytes())
        data[len(data) // 3 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 3)
        other.write_bytes(data)
        tally = import_files(store, other)
        assert "other.db" in failure_of(tally) or "cannot be read" in failure_of(tally)
        assert store.session_count() == 0
        store.create_session("mine", "cli")

    def test_database_without_sessions_is_refused(self, store: SessionDBProvider, tmp_path: Path) -> None:
        path = tmp_path / "cookies.db"
        connection = apsw.Connection(str(path))
        connection.execute("CREATE TABLE cookies (name TEXT)")
        connection.close()
        assert "not one of sessions" in failure_of(import_files(store, path))


def test_export_of_upstream_is_imported(store: SessionDBProvider, tmp_path: Path) -> None:
    """A line of upstream has no schema and no uids, and some of its columns are JSON text."""
    message = {
        "id": 7,
        "session_id": "old",
        "role": "assistant",
        "content": "hi",
        "tool_calls": [{"id": "c"}],
        "reasoning_details": json.dumps([{"a": 1}]),
        "timestamp": 6.0,
    }
    line = {"id": "old", "source": "cli", "started_at": 5.0, "messages": [message]}
    path = write(tmp_path / "export.jsonl", [line])
    import_files(store, path)
    (stored,) = store.get_messages_as_conversation("old")
    assert stored["reasoning_details"] == [{"a": 1}]
    assert import_files(store, path).messages == 0
