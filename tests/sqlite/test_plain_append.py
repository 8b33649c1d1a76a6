"""Plain messages are stored without reading their session first, and with the same effects as any others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from hermes.errors import NotFound
from hermes.state.owner import owner_of
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.message_rows import MAX_ROWS, insert_messages
from hermes_state import SessionDB
from tests.sqlite.statements import Record
from tests.support.conversations import CALLS, contents, say, session_of, start

MOMENT = 4e9
NEVER_SAME = ("id", "uid", "session_id")


def plain_columns(rows: list[Any]) -> list[dict[str, Any]]:
    """Rows without the columns that differ between two stores of the same messages."""
    return [{name: value for name, value in row.items() if name not in NEVER_SAME} for row in rows]


def fill(store: SessionDB, session_id: str) -> None:
    """Store messages of every kind: first ones, plain ones, in several ticks, out of order, several at once."""
    start(store, session_id, started_at=1_000.0)
    store.append_message(session_id, "assistant", "hello", timestamp=MOMENT)
    for number in range(4):
        store.append_message(session_id, "user", f"text {number}", timestamp=MOMENT + number / 300)
    store.append_message(session_id, "assistant", None, tool_calls=CALLS, timestamp=MOMENT + 1)
    store.append_message(session_id, "user", "earlier", timestamp=MOMENT - 60)
    store.append_message(session_id, "user", "a\0b \ud800 ü", observed=True, token_count=3, timestamp=MOMENT + 2)
    store.append_messages(
        session_id,
        [
            {"role": "user", "content": "one", "timestamp": MOMENT + 5, "observed": True},
            {"role": "assistant", "tool_calls": CALLS, "timestamp": MOMENT + 4},
            {"role": "tool", "content": "ok", "tool_name": "terminal", "timestamp": MOMENT + 3},
        ],
    )
    store.append_message(session_id, "user", "given", uid=f"uid of {session_id}", timestamp=MOMENT + 6)


def test_effects_are_those_of_the_general_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SessionDB(db_path=tmp_path / "state.db") as store:
        fill(store, "plain")
        monkeypatch.setattr(View, "add_plain", lambda *_: None)
        fill(store, "general")
        plain, general = (plain_columns(store.get_messages(each)) for each in ("plain", "general"))
        assert plain == general
        one, other = ({**session_of(store, each), "id": None} for each in ("plain", "general"))
        assert one == other
        assert (one["message_count"], one["tool_call_count"], one["preview"]) == (12, 4, "text 0")


def test_active_tick_follows_every_message(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with SessionDB(db_path=path) as store:
        start(store, "s", started_at=1_000.0)
        for moment in (MOMENT, MOMENT + 0.004, MOMENT + 0.5, MOMENT + 0.2, MOMENT + 7):
            store.append_message("s", "user", "text", timestamp=moment)
        reader = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        found = reader.execute("SELECT last_active, chain_active, active_tick FROM sessions").fetchall()
        reader.close()
    assert found == [(MOMENT + 7, MOMENT + 7, int((MOMENT + 7) * 100))]


def test_plain_message_needs_two_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record()
    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, record.watch])
    with SessionDB(db_path=tmp_path / "state.db") as store:
        say(store, start(store, "s"), "first")
        store.append_message("s", "user", "second", timestamp=MOMENT)
        with record.listening() as statements:
            store.append_message("s", "user", "third", timestamp=MOMENT)
    texts = [each.sql.split(maxsplit=1)[0] for each in statements]
    assert texts == ["BEGIN", "UPDATE", "INSERT", "COMMIT"]


def test_later_part_of_a_chain_makes_the_first_one_active(tmp_path: Path) -> None:
    with SessionDB(db_path=tmp_path / "state.db") as store:
        say(store, start(store, "s"), "first")
        store.compress_session("s", "t", "a summary", tail_from=1_000_000)
        store.append_message("t", "user", "second", timestamp=MOMENT)
        store.append_message("t", "user", "third", timestamp=MOMENT + 1)
        (listed,) = store.list_sessions_rich(order_by_last_active=True)
        assert listed["last_active"] == MOMENT + 1


def test_session_of_another_owner_is_unknown(tmp_path: Path) -> None:
    with SessionDB(db_path=tmp_path / "state.db") as store:
        start(store, "s", source="telegram", user_id="1")
        store.append_message("s", "user", "first")
        with pytest.raises(NotFound):
            store.for_owner(owner_of("telegram", "2")).append_message("s", "user", "second")
        store.for_owner(owner_of("telegram", "1")).append_message("s", "user", "third")
        assert contents(store.get_messages("s")) == ["first", "third"]


@pytest.mark.parametrize("count", [1, 2, 3, MAX_ROWS - 1, MAX_ROWS, 2 * MAX_ROWS + 5])
def test_ids_are_those_of_the_rows_in_their_order(count: int) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(
        """CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT, tool_name TEXT,
               active INTEGER NOT NULL DEFAULT 1, observed INTEGER DEFAULT 0);
           INSERT INTO messages (id, content) VALUES (40, 'before')"""
    )
    rows: list[dict[str, Any]] = [{"content": f"text {number}"} for number in range(count)]
    rows[-1] |= {"tool_name": "terminal", "active": 0, "observed": 1}
    ids = insert_messages(connection, rows)
    stored = connection.execute(
        "SELECT id, content, tool_name, active, observed FROM messages WHERE id > 40"
    ).fetchall()
    plain = [(41 + number, f"text {number}", None, 1, 0) for number in range(count - 1)]
    assert stored == [*plain, (40 + count, f"text {count - 1}", "terminal", 0, 1)]
    assert ids == [row[0] for row in stored]
