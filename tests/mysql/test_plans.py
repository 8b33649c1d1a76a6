"""How the server reads the messages of a session: from the requested position, however long the session is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hermes.state.engine import Reading
from hermes.state.mysql.connection.transaction import MySQLTransaction
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.support.conversations import start
from tests.support.stores import engine_of

MESSAGES = 600
MIDDLE = MESSAGES // 2


@pytest.mark.parametrize(
    "ask",
    [
        lambda store, ids: store.search_messages(f"number{MIDDLE}"),
        lambda store, ids: store.get_messages("s", after_id=ids[MIDDLE], limit=5),
        lambda store, ids: store.get_messages("s", before_id=ids[MIDDLE], limit=5),
        lambda store, ids: store.get_messages_around("s", ids[MIDDLE], 5)["window"],
    ],
    ids=["context of a hit", "after", "before", "around"],
)
def test_messages_are_read_from_the_requested_position(
    store: MySQLSessionDBProvider,
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[MySQLSessionDBProvider, list[int]], Any],
) -> None:
    start(store, "s")
    ids = store.append_messages("s", [{"role": "user", "content": f"number{n}"} for n in range(MESSAGES)])
    asked: list[tuple[str, dict[str, Any]]] = []
    through, through_tables = MySQLTransaction._query, MySQLTransaction.tables

    def noting(session: MySQLTransaction, sql: str, values: dict[str, Any]) -> Any:
        asked.append((sql, values))
        return through(session, sql, values)

    def noting_all(session: MySQLTransaction, queries: Sequence[tuple[str, dict[str, Any]]]) -> Any:
        asked.extend(queries)
        return through_tables(session, queries)

    with monkeypatch.context() as patch:
        patch.setattr(MySQLTransaction, "_query", noting)
        patch.setattr(MySQLTransaction, "tables", noting_all)
        assert ask(store, ids)
    walks = [each for each in asked if "ORDER BY" in each[0] and "session_id = :" in each[0]]
    plans = [step for sql, values in walks for step in _plan(store, sql, values) if step["key"] is not None]
    assert plans
    assert {(step["type"], step["key"]) for step in plans} == {("range", "idx_messages_order")}


def _plan(store: MySQLSessionDBProvider, sql: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    def explain(tx: Reading) -> list[dict[str, Any]]:
        columns, rows = tx.table(f"EXPLAIN FORMAT=TRADITIONAL {sql}", **values)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    return engine_of(store).read(explain)
