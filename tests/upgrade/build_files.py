"""Build database files of the versions 1 to 11 from the published table of schema changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import apsw

from tests.upgrade.corpus import FILES, Event, Expected, Json, Ledger, Message, Session, events, limited, meta

NEWEST = 11
JSON_COLUMNS = frozenset(
    {"model_config", "tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items"}
)
CONTENT_SENTINEL = "\x00json:"
_HAS_META = "SELECT 1 FROM sqlite_schema WHERE name = 'state_meta'"


def build(version: int, path: Path, *, sessions: int = 6) -> Expected:
    """Write a file of that version with that many sessions, and return what it holds.

    Lists and objects as content carry the sentinel of the later releases in every version: the harder case.
    """
    connection = apsw.Connection(str(path))
    try:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA foreign_keys = ON")
        for number in range(1, version + 1):
            run_script(connection, FILES / "schema" / f"v{number:02}.sql")
        return _fill(connection, version, sessions)
    finally:
        connection.close()


def run_script(connection: apsw.Connection, script: Path) -> None:
    """Run every statement of a file, one at a time."""
    for statement in statements(script.read_text(encoding="utf-8")):
        connection.execute(statement)


def statements(text: str) -> Iterator[str]:
    """The statements of a script; a trigger is one statement."""
    pending = ""
    for line in text.splitlines(keepends=True):
        pending += line
        if apsw.complete(pending):
            yield pending
            pending = ""
    if pending.strip():
        raise ValueError(f"the script ends in an unfinished statement: {pending!r}")


def columns(connection: apsw.Connection, table: str) -> set[str]:
    """The columns that a table of this file has; none when there is no such table."""
    return {str(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def insert(connection: apsw.Connection, row: Session | Message) -> None:
    """Write a row, as far as its table has the columns."""
    table = "sessions" if isinstance(row, Session) else "messages"
    present = columns(connection, table)
    values = {name: encoded(name, value) for name, value in asdict(row).items() if name in present}
    names = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)


def encoded(column: str, value: Json) -> bool | int | float | str | None:
    """The value as an old program stores it in that column."""
    if column in JSON_COLUMNS:
        return json.dumps(value) if value else None
    if isinstance(value, list | dict):
        return CONTENT_SENTINEL + json.dumps(value)
    return value


def _fill(connection: apsw.Connection, version: int, sessions: int) -> Expected:
    """Write the corpus into an empty file of that version."""
    has_meta = bool(connection.execute(_HAS_META).fetchall())
    everything = _expected(version, sessions)
    expected = limited(everything, columns(connection, "sessions"), columns(connection, "messages"))
    expected = replace(expected, meta=meta() if has_meta else {})
    with connection:
        for session in expected.sessions:
            insert(connection, session)
        for message in expected.all_messages():
            insert(connection, message)
        for pair in expected.meta.items():
            connection.execute("INSERT INTO state_meta (key, value) VALUES (?, ?)", pair)
    return expected


def _expected(version: int, sessions: int) -> Expected:
    """What a program of the last documented version would have stored."""
    ledger = Ledger()
    for event in events(sessions=sessions):
        _record(ledger, event)
    return ledger.close(version, meta={}, topics=())


def _record(ledger: Ledger, event: Event) -> None:
    """Record one event; undo, archiving and the like came after the last documented version."""
    if event.kind == "create":
        ledger.create(event.at, event.session_id, event.payload)
    elif event.kind == "append":
        ledger.append(event.at, event.session_id, event.payload)
    elif event.kind == "tokens":
        ledger.count_tokens(event.session_id, event.payload)
    elif event.kind == "title":
        ledger.change(event.session_id, title=event.payload["title"])
    elif event.kind == "end":
        ledger.change(event.session_id, ended_at=event.at, end_reason=event.payload["end_reason"])
