"""Changes that other programs make to a file, and how a search sees them at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from hermes.query import analyze
from hermes.state.engine import Values
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.search.index import SqliteIndex
from hermes_state import SessionDB
from tests.support.plainsql import change


@pytest.fixture
def db(tmp_path: Path) -> SessionDB:
    """A store of 3 000 indexed messages."""
    db = SessionDB(tmp_path / "state.db")
    db.create_session("s", "cli")
    messages = [{"role": "user", "content": f"lantern {i}", "timestamp": 1000.0 + i} for i in range(3000)]
    db.append_messages("s", messages)
    return db


def test_search_is_incomplete_with_too_many_changed_rows(db: SessionDB) -> None:
    change(db.db_path, "UPDATE messages SET content = 'newt ' || id")
    found = db.search_messages("newt", limit=10_000)
    assert found.degraded
    assert not found.complete


def test_a_message_with_a_changed_time_is_sorted_by_it_at_once(db: SessionDB) -> None:
    change(
        db.db_path,
        "UPDATE messages SET timestamp = 99999 WHERE id = 5",
        "UPDATE messages SET timestamp = 1 WHERE id = 9",
    )
    assert [hit["id"] for hit in db.search_messages("lantern", sort="newest", limit=2)] == [5, 3000]
    assert [hit["id"] for hit in db.search_messages("lantern", sort="oldest", limit=2)] == [9, 1]


def test_a_row_inserted_among_indexed_ones_is_found_at_once(db: SessionDB) -> None:
    change(
        db.db_path,
        "DELETE FROM messages WHERE id = 7",
        "INSERT INTO messages (id, session_id, role, content, timestamp) VALUES (7, 's', 'user', 'a newt', 5)",
        "INSERT INTO messages (id, session_id, role, content, timestamp) VALUES (-3, 's', 'user', 'a newt', 5)",
    )
    assert [hit["id"] for hit in db.search_messages("newt")] == [7, -3]


def test_long_texts_of_identifiers_and_marks_are_parsed_quickly() -> None:
    # Each of these took minutes when the work grew with the square of the length.
    assert analyze.stream(" ".join(f"user{i}. x" for i in range(100_000))).count(" user ") == analyze.MAX_IDENTIFIERS
    assert analyze.fold("a" + "\u0301\u0323" * 400_000) == "a"


def test_stale_messages_are_found_without_reading_all_messages(db: SessionDB) -> None:
    plans: list[str] = []

    class Watched(View):
        def rows(self, sql: str, /, **values: Any) -> list[Values]:
            plans.extend(str(row[3]) for row in super().rows(f"EXPLAIN QUERY PLAN {sql}", **values))
            return super().rows(sql, **values)

    connection = apsw.Connection(str(db.db_path))
    SqliteIndex().coverage(Watched(connection), 10)
    connection.close()
    about_messages = [plan for plan in plans if " messages" in plan]
    assert about_messages
    assert all("idx_messages_foreign" in plan for plan in about_messages)
