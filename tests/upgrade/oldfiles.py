"""Old files for the upgrade tests: written by real releases, and damaged in ways that happen."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import apsw

from tests.upgrade.build_files import CONTENT_SENTINEL, JSON_COLUMNS, NEWEST, build, columns, insert
from tests.upgrade.corpus import FILES, Expected, Message, Session, Topic, by_session

REAL_VERSIONS = (11, 14, 17, 22)
MISSING_SESSION = "20240101_000000_deadbeef"
UNINDEXED_WORD = "quokka"
BROKEN_JSON = '{"max_iterations": 60, '
BROKEN_CALLS = '[{"id": "call_1", "function": {"name": "termi'
BROKEN_CONTENT = CONTENT_SENTINEL + '[{"type": "text", "text": "cut'

_BOOLEANS = frozenset({"observed", "active", "archived"})


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A damaged file, its remaining content, and which rows were damaged.

    A value that cannot be decoded is in `expected` as raw text.
    """

    path: Path
    expected: Expected
    sessions: tuple[str, ...] = ()
    messages: tuple[int, ...] = ()


def real(version: int, path: Path) -> Expected:
    """Unpack the file that a release with that schema version wrote, and return its input."""
    path.write_bytes(gzip.decompress((FILES / f"v{version}.db.gz").read_bytes()))
    return Expected.from_json((FILES / f"v{version}.json").read_text(encoding="utf-8"))


def with_duplicate_titles(path: Path) -> DamagedFile:
    """A version 3 file in which two sessions have the same title, which was not forbidden yet."""
    expected = build(3, path)
    kept, taken = expected.sessions[0], expected.sessions[3]
    with _editing(path) as connection:
        connection.execute("UPDATE sessions SET title = ? WHERE id = ?", (kept.title, taken.id))
    changed = _with_session(expected, replace(taken, title=kept.title))
    return DamagedFile(path, changed, sessions=(kept.id, taken.id))


def with_broken_json(path: Path) -> DamagedFile:
    """A file with a model_config, tool_calls and list content that were cut off."""
    expected = build(NEWEST, path)
    session = expected.sessions[0]
    caller = next(message for message in expected.all_messages() if message.tool_calls)
    multimodal = next(message for message in expected.all_messages() if isinstance(message.content, list))
    with _editing(path) as connection:
        connection.execute("UPDATE sessions SET model_config = ? WHERE id = ?", (BROKEN_JSON, session.id))
        connection.execute("UPDATE messages SET tool_calls = ? WHERE id = ?", (BROKEN_CALLS, caller.id))
        connection.execute("UPDATE messages SET content = ? WHERE id = ?", (BROKEN_CONTENT, multimodal.id))
    expected = _with_session(expected, replace(session, model_config=BROKEN_JSON))
    expected = _with_message(expected, replace(caller, tool_calls=BROKEN_CALLS))
    expected = _with_message(expected, replace(multimodal, content=BROKEN_CONTENT))
    return DamagedFile(path, expected, sessions=(session.id,), messages=(caller.id, multimodal.id))


def without_fts(path: Path, *, version: int = NEWEST, keeps_triggers: bool = True) -> DamagedFile:
    """A file whose full-text tables are gone; the triggers that stayed make every insert fail."""
    expected = build(version, path)
    with _editing(path) as connection:
        if not keeps_triggers:
            for name in _names_of(connection, "trigger"):
                connection.execute(f"DROP TRIGGER {name}")
        for name in ("messages_fts", "messages_fts_trigram"):
            connection.execute(f"DROP TABLE IF EXISTS {name}")
    return DamagedFile(path, expected)


def without_column(path: Path) -> DamagedFile:
    """A version 11 file whose messages lack reasoning_content, whatever its version number is."""
    expected = build(NEWEST, path)
    with _editing(path) as connection:
        connection.execute("ALTER TABLE messages DROP COLUMN reasoning_content")
    emptied = [replace(message, reasoning_content=None) for message in expected.all_messages()]
    lost = tuple(message.id for message in expected.all_messages() if message.reasoning_content is not None)
    return DamagedFile(path, replace(expected, messages=by_session(emptied)), messages=lost)


def half_trigger(path: Path) -> DamagedFile:
    """A file that lost one of its six triggers, and a message with `UNINDEXED_WORD` written since."""
    expected = build(NEWEST, path)
    unindexed = _next_message(expected, expected.sessions[1].id, f"The {UNINDEXED_WORD} was never indexed.")
    with _editing(path) as connection:
        connection.execute("DROP TRIGGER messages_fts_insert")
        insert(connection, unindexed)
        connection.execute(
            "UPDATE sessions SET message_count = message_count + 1 WHERE id = ?", (unindexed.session_id,)
        )
    session = expected.session(unindexed.session_id)
    expected = _with_session(expected, replace(session, message_count=session.message_count + 1))
    return DamagedFile(path, _with_message(expected, unindexed), messages=(unindexed.id,))


def orphan_message(path: Path) -> DamagedFile:
    """A file with a message whose session does not exist."""
    expected = build(NEWEST, path)
    orphan = _next_message(expected, MISSING_SESSION, "Nobody knows where I belong.")
    with _editing(path) as connection:
        insert(connection, orphan)
    return DamagedFile(path, _with_message(expected, orphan), sessions=(MISSING_SESSION,), messages=(orphan.id,))


def two_version_rows(path: Path) -> DamagedFile:
    """A version 11 file whose schema_version has two rows, the older one first."""
    expected = build(NEWEST, path)
    with _editing(path) as connection:
        connection.execute("UPDATE schema_version SET version = 9")
        connection.execute("INSERT INTO schema_version (version) VALUES (11)")
    return DamagedFile(path, expected)


def no_version_row(path: Path, *, version: int = NEWEST) -> DamagedFile:
    """A file whose schema_version is empty; `expected` has version 0."""
    expected = build(version, path)
    with _editing(path) as connection:
        connection.execute("DELETE FROM schema_version")
    return DamagedFile(path, replace(expected, version=0))


def read_plainly(path: Path) -> Expected:
    """The content of an old file, read from a copy and without any code of the project."""
    with tempfile.TemporaryDirectory() as scratch:
        for part in (path, path.with_name(f"{path.name}-wal")):
            if part.exists():
                shutil.copy(part, scratch)
        with _editing(Path(scratch) / path.name) as connection:
            return _content(connection)


def _content(connection: apsw.Connection) -> Expected:
    """The content of an open file."""
    ((version,),) = connection.execute("SELECT MAX(version) FROM schema_version")
    pairs = connection.execute("SELECT key, value FROM state_meta") if columns(connection, "state_meta") else ()
    return Expected(
        version=int(str(version or 0)),
        sessions=tuple(Session(**row) for row in _rows(connection, "sessions", Session, "started_at, id")),
        messages=by_session([Message(**row) for row in _rows(connection, "messages", Message, "id")]),
        meta={str(key): str(value) for key, value in pairs},
        topics=tuple(Topic(**row) for row in _rows(connection, "telegram_dm_topic_bindings", Topic, "linked_at")),
    )


@contextmanager
def _editing(path: Path) -> Iterator[apsw.Connection]:
    """A connection that checks nothing, closed so that everything is in one file."""
    connection = apsw.Connection(str(path))
    try:
        yield connection
    finally:
        connection.close()


def _names_of(connection: apsw.Connection, kind: str) -> list[str]:
    """The names of all objects of that kind."""
    return [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = ?", (kind,))]


def _next_message(expected: Expected, session_id: str, text: str) -> Message:
    """A message of the user after all others."""
    newest = max(expected.all_messages(), key=lambda message: message.timestamp)
    return Message(len(expected.all_messages()) + 1, session_id, "user", newest.timestamp + 60, content=text)


def _with_session(expected: Expected, changed: Session) -> Expected:
    """The same with one session changed."""
    return replace(expected, sessions=tuple(changed if s.id == changed.id else s for s in expected.sessions))


def _with_message(expected: Expected, changed: Message) -> Expected:
    """The same with one message changed or added."""
    others = [message for message in expected.all_messages() if message.id != changed.id]
    return replace(expected, messages=by_session(sorted([*others, changed], key=lambda message: message.id)))


def _rows(connection: apsw.Connection, table: str, shape: type, order: str) -> list[dict[str, Any]]:
    """The rows of a table as keyword arguments of a dataclass, as far as the table has the columns."""
    present = columns(connection, table)
    names = [field.name for field in fields(shape) if field.name in present]
    if not names:
        return []
    query = f"SELECT {', '.join(names)} FROM {table} ORDER BY {order}"
    return [
        {name: _decoded(name, value) for name, value in zip(names, row, strict=True)}
        for row in connection.execute(query)
    ]


def _decoded(column: str, value: Any) -> Any:
    """The decoded value; raw text if it cannot be decoded."""
    if column in _BOOLEANS:
        return bool(value)
    if not isinstance(value, str):
        return value
    is_marked = column == "content" and value.startswith(CONTENT_SENTINEL)
    if column not in JSON_COLUMNS and not is_marked:
        return value
    try:
        return json.loads(value.removeprefix(CONTENT_SENTINEL) if is_marked else value)
    except json.JSONDecodeError:
        return value
