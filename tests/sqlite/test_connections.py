"""What a connection lets a file do: nothing that the file itself requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

import hermes.state.sqlite
from hermes.state.sqlite.connection import connect, open_foreign, open_reader, open_writer
from hermes_state import SessionDB
from tests.support.plainsql import change


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with one message, and a view, a trigger and a table of another program."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "walrus")
    change(
        path,
        "CREATE TABLE taken (content TEXT)",
        "CREATE VIEW shown AS SELECT content FROM messages",
        "CREATE TRIGGER take AFTER INSERT ON messages BEGIN INSERT INTO taken VALUES (new.content); END",
    )
    return path


@pytest.fixture
def foreign(path: Path) -> Iterator[apsw.Connection]:
    """A connection that treats the file as unknown."""
    connection = open_foreign(path)
    yield connection
    connection.close()


def options(connection: apsw.Connection) -> dict[str, int]:
    """The security settings of a connection."""
    names = (
        *("TRUSTED_SCHEMA", "DEFENSIVE", "ENABLE_VIEW", "ENABLE_TRIGGER"),
        *("ENABLE_LOAD_EXTENSION", "DQS_DML", "DQS_DDL"),
    )
    return {name: connection.config(getattr(apsw, f"SQLITE_DBCONFIG_{name}"), -1) for name in names}


@pytest.mark.parametrize("opened", [open_reader, open_foreign])
def test_reader_trusts_nothing_in_the_file(path: Path, opened: Callable[[Path], apsw.Connection]) -> None:
    connection = opened(path)
    found = options(connection)
    connection.close()
    assert found.pop("DEFENSIVE") == 1
    assert set(found.values()) == {0}


def test_writer_runs_triggers_and_trusts_nothing_else(path: Path) -> None:
    connection = open_writer(path)
    found = options(connection)
    connection.close()
    assert (found.pop("DEFENSIVE"), found.pop("ENABLE_TRIGGER")) == (1, 1)
    assert set(found.values()) == {0}


def test_every_connection_of_the_engine_is_made_in_one_place() -> None:
    package = Path(hermes.state.sqlite.__file__).parent
    makers = {file.name for file in package.rglob("*.py") if re.search(r"\bapsw\.Connection\(", file.read_text())}
    assert makers == {"connection.py"}


def test_view_of_a_file_is_never_read(path: Path) -> None:
    reader = open_reader(path)
    with pytest.raises(apsw.SQLError, match="access to view"):
        reader.execute("SELECT * FROM shown").fetchall()
    reader.close()


def test_trigger_of_a_file_runs_only_on_request(path: Path) -> None:
    connection = connect(path, apsw.SQLITE_OPEN_READWRITE)
    connection.execute("INSERT INTO messages (session_id, role, timestamp) VALUES ('s', 'user', 1)").fetchall()
    taken = connection.execute("SELECT count(*) FROM taken").fetchall()
    connection.close()
    assert taken == [(0,)]


def test_foreign_file_can_be_read_and_described(foreign: apsw.Connection) -> None:
    assert foreign.execute("SELECT content FROM messages").fetchall() == [("walrus",)]
    assert foreign.execute("SELECT count(*) FROM pragma_table_info('messages')").fetchall() > [(0,)]
    assert foreign.execute("PRAGMA page_count").fetchall() > [(0,)]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TEMP TABLE t (x)",
        "CREATE TEMP VIEW v AS SELECT 1",
        "ATTACH DATABASE ':memory:' AS other",
        "PRAGMA writable_schema = ON",
        "PRAGMA trusted_schema = ON",
        "PRAGMA journal_mode = delete",
        "DELETE FROM messages",
        "INSERT INTO messages_fts(messages_fts) VALUES ('optimize')",
    ],
)
def test_foreign_file_allows_nothing_but_reading(foreign: apsw.Connection, statement: str) -> None:
    with pytest.raises(apsw.AuthError):
        foreign.execute(statement).fetchall()
