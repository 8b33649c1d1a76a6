"""Hostile database files are refused or imported safely, and within a short time."""

from __future__ import annotations

import sqlite3
import struct
import time
from itertools import pairwise
from pathlib import Path

import pytest

from hermes.errors import HermesError, StoreCorrupt
from hermes.interop.jsonl import lines
from hermes.state.provider import SessionDBProvider
from hermes.state.sqlite.schema import foreign_file
from tests.interop.files import Claude, failure_of, import_files, write
from tests.support.conversations import contents, only_message, session_of

SESSIONS = """CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, user_id TEXT, model TEXT, model_config TEXT,
    system_prompt TEXT, parent_session_id TEXT, started_at REAL, ended_at REAL, end_reason TEXT, title TEXT)"""
MESSAGES = """CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT,
    tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, token_count INTEGER, finish_reason TEXT)"""
ONE_SESSION = "INSERT INTO sessions (id, source, started_at) VALUES ('s', 'cli', 1.0)"
ONE_MESSAGE = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'hello', 1.0)"
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
DEEP = "[" * 100_000


def database(path: Path, *statements: str) -> Path:
    """Create a database file with arbitrary statements."""
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


REFUSED = {
    "endless messages": (
        SESSIONS,
        ONE_SESSION,
        f"""CREATE VIEW messages AS {ENDLESS} SELECT n AS id, 's' AS session_id, 'user' AS role, 'x' AS content,
            NULL AS tool_call_id, NULL AS tool_calls, NULL AS tool_name, 1.0 AS timestamp FROM c""",
    ),
    "endless sessions": (
        MESSAGES,
        f"CREATE VIEW sessions AS {ENDLESS} SELECT 's' || n AS id, 'cli' AS source, 1.0 AS started_at FROM c",
    ),
    "endless versions": (
        *(SESSIONS, MESSAGES, ONE_SESSION),
        f"CREATE VIEW schema_version AS {ENDLESS} SELECT n AS version FROM c",
    ),
    "endless bookings": (
        *(SESSIONS, MESSAGES, ONE_SESSION),
        f"CREATE VIEW usage_events AS {ENDLESS} SELECT n AS id, 's' AS session_id FROM c",
    ),
    "gigabytes in a generated column": (
        SESSIONS,
        ONE_SESSION,
        MESSAGES.replace("content TEXT", "content TEXT GENERATED ALWAYS AS (hex(zeroblob(300000000))) VIRTUAL"),
        "INSERT INTO messages (session_id, role, timestamp) VALUES ('s', 'user', 1.0)",
    ),
    "a virtual table": (
        *(SESSIONS, ONE_SESSION),
        "CREATE VIRTUAL TABLE messages USING fts5(id, session_id, role, content, tool_calls, timestamp)",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_table_that_is_not_a_plain_table_is_refused(store: SessionDBProvider, tmp_path: Path, kind: str) -> None:
    path = database(tmp_path / "evil.db", *REFUSED[kind])
    tally = import_files(store, path)
    assert "evil.db" in failure_of(tally)
    with pytest.raises(HermesError):
        store.import_database(path)
    assert store.session_count() == 0


def endless(path: Path, table: str) -> Path:
    """Create a small database whose table has 40**12 rows, because its pages refer to each other many times."""
    small = f"CREATE TABLE schema_version (version INTEGER); INSERT INTO schema_version VALUES (11); {ONE_SESSION}"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.executescript(f"{SESSIONS}; {MESSAGES}; {small}; {ONE_MESSAGE}; CREATE TABLE unused (bytes BLOB)")
        connection.executemany("INSERT INTO unused VALUES (zeroblob(460))", [()] * 15)
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchall()
        ((count,),) = connection.execute("PRAGMA page_count").fetchall()
    connection.close()
    pages = [bytearray(path.read_bytes()[start : start + 512]) for start in range(0, 512 * count, 512)]
    levels = [root, *range(count - 11, count + 1)]
    pages[levels[-1] - 1] = pages[root - 1]
    for number, below in pairwise(levels):
        offsets = [512 - 5 * each for each in range(1, 41)]
        page = bytearray(struct.pack(">BHHHBI", 5, 0, 40, offsets[-1], 0, below)).ljust(512, b"\0")
        struct.pack_into(">40H", page, 12, *offsets)
        for offset in offsets:
            struct.pack_into(">IB", page, offset, below, 1)
        pages[number - 1] = page
    path.write_bytes(b"".join(pages))
    return path


@pytest.mark.parametrize("table", ["messages", "sessions", "schema_version"])
def test_table_that_reuses_its_pages_is_refused(store: SessionDBProvider, tmp_path: Path, table: str) -> None:
    path = endless(tmp_path / "evil.db", table)
    assert table in failure_of(import_files(store, path))
    with pytest.raises(StoreCorrupt, match=table):
        store.import_database(path)
    assert store.session_count() == 0


def test_file_that_cannot_be_checked_in_time_is_refused(
    store: SessionDBProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_file, "LEAST_S", 0.0)
    monkeypatch.setattr(foreign_file, "BYTES_PER_SECOND", 10**12)
    monkeypatch.setattr(foreign_file, "STEPS_BETWEEN_LOOKS", 1)
    path = database(tmp_path / "slow.db", SESSIONS, MESSAGES, ONE_SESSION, ONE_MESSAGE)
    assert "in a reasonable time" in failure_of(import_files(store, path))
    with pytest.raises(StoreCorrupt, match="in a reasonable time"):
        store.import_database(path)
    assert store.session_count() == 0


def test_trigger_in_an_imported_file_is_not_run(store: SessionDBProvider, tmp_path: Path) -> None:
    trigger = "CREATE TRIGGER t AFTER INSERT ON messages BEGIN DELETE FROM sessions; END"
    path = database(tmp_path / "evil.db", SESSIONS, MESSAGES, ONE_SESSION, ONE_MESSAGE, trigger)
    before = path.read_bytes()
    assert import_files(store, path).messages == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        f"UPDATE messages SET tool_calls = '{DEEP}'",
        f"UPDATE messages SET content = char(1) || 'json:{DEEP}'",
        f"""UPDATE sessions SET model_config = '{{"_branched_from":{DEEP}'""",
        f"UPDATE sessions SET system_prompt = char(1) || 'json:{DEEP}'",
    ],
    ids=["tool calls", "content", "configuration", "prompt"],
)
def test_too_deeply_nested_json_is_imported_as_text(store: SessionDBProvider, tmp_path: Path, change: str) -> None:
    path = database(tmp_path / "deep.db", SESSIONS, MESSAGES, ONE_SESSION, ONE_MESSAGE, change)
    tally = import_files(store, path)
    assert (tally.failures, tally.messages) == ({}, 1)
    assert len(store.get_messages("s")) == 1


def test_long_chain_is_imported(store: SessionDBProvider, tmp_path: Path) -> None:
    chain = """INSERT INTO sessions (id, source, started_at, ended_at, end_reason, parent_session_id)
               WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1500)
               SELECT 's' || n, 'cli', 1, 1, 'compression', 's' || (n - 1) FROM c"""
    path = database(tmp_path / "chain.db", SESSIONS, MESSAGES, ONE_SESSION, ONE_MESSAGE, chain)
    assert import_files(store, path).failures == {}


class TestLines:
    def test_text_that_looks_like_nested_json_is_imported(self, store: SessionDBProvider, tmp_path: Path) -> None:
        message = {"role": "user", "content": "hello", "tool_calls": DEEP, "reasoning_details": DEEP}
        session = {"id": "s", "source": "cli", "model_config": f'{{"_branched_from":{DEEP}', "messages": [message]}
        assert import_files(store, write(tmp_path / "deep.jsonl", [session])).messages == 1
        assert only_message(store, "s")["content"] == "hello"

    def test_unclosed_command_tags_are_text(self, store: SessionDBProvider, tmp_path: Path) -> None:
        text = "<command-name>" * 200_000
        began = time.monotonic()
        import_files(store, write(tmp_path / "claude.jsonl", [Claude("s").user(text)]))
        assert time.monotonic() - began < 10
        assert contents(store.get_messages("claude-code_s")) == [text]

    @pytest.mark.parametrize("padding", [0, 2 << 20], ids=["short", "long"])
    def test_lists_that_would_fill_the_memory_are_refused(
        self, store: SessionDBProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, padding: int
    ) -> None:
        monkeypatch.setattr(lines, "MOST_PARTS", 1_000)
        monkeypatch.setattr("hermes.interop.jsonl.long_line.MOST_PARTS", 1_000)
        session = {"id": "s", "messages": [{"role": "user", "content": [[]] * 1_001}], "model": "x" * padding}
        assert "lists and dicts in one message" in failure_of(
            import_files(store, write(tmp_path / "wide.jsonl", [session]))
        )

    @pytest.mark.parametrize("number", ["9" * 10_000, "1e400", "NaN"])
    def test_huge_numbers_are_refused_or_ignored(self, store: SessionDBProvider, tmp_path: Path, number: str) -> None:
        line = f'{{"id": "s", "started_at": {number}, "messages": [{{"role": "user", "content": "x"}}]}}'
        tally = import_files(store, write(tmp_path / "odd.jsonl", [line]))
        assert tally.failures or session_of(store, "s")["started_at"] > 0
