"""Many rows are sent in few statements: all or none, in their order, and never more than the server accepts."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import HermesError, InvalidValue
from hermes.state.indexing.index_backlog import index_backlog
from hermes.state.mysql.connection.bulk_insert import MANY_ROWS, parse_insert, statements
from hermes.state.mysql.connection.server_info import Server
from hermes.state.mysql.connection.statements import MOST_TOGETHER, DriverConnection
from hermes.state.mysql.connection.transaction import DIALECT
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.support.conversations import at_once, session_of, start
from tests.support.mysql import in_database
from tests.support.servers import Server as Running
from tests.support.stores import engine_of

NOTE = 'INSERT INTO state_meta ("key", value) VALUES (:key, :value)'
NOTES = 'SELECT "key", value FROM state_meta WHERE "key" LIKE \'mine%\' ORDER BY "key"'
BOOKING = "INSERT INTO usage_events (session_id, at, kind) VALUES (:session, :at, :kind)"


class CountedStatements:
    """Counts the statements that contain a text."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        self.count = 0
        execute_all = DriverConnection.execute_all

        def counting(connection: DriverConnection, statements: list[str]) -> Any:
            self.count += sum(text in each for each in statements)
            return execute_all(connection, statements)

        monkeypatch.setattr(DriverConnection, "execute_all", counting)


class TestForms:
    def test_insert_of_parameters_can_have_more_rows(self) -> None:
        assert parse_insert("INSERT INTO t (a, b) VALUES (:a, :b)") == ("INSERT INTO t (a, b) ", ("a", "b"), "")

    def test_upsert_can_have_more_rows(self) -> None:
        form = parse_insert(DIALECT.upsert("state_meta", ["key"], ["value"]))
        assert form is not None
        assert form.names == ("key", "value")
        assert form.end.startswith(" ON DUPLICATE KEY UPDATE")

    @pytest.mark.parametrize(
        "sql",
        [
            "INSERT INTO t (a) VALUES (1)",
            "INSERT INTO t (a, b) VALUES (:a, :b + 1)",
            "INSERT INTO t (a, b) VALUES (:a, 'b, :c')",
            "INSERT INTO t (a) SELECT :a",
            "INSERT INTO t (a) VALUES (:a) ON DUPLICATE KEY UPDATE a = :b",
            "UPDATE t SET a = :a WHERE b = :b",
        ],
    )
    def test_other_statements_are_not_split(self, sql: str) -> None:
        assert parse_insert(sql) is None


class TestStatements:
    def test_statements_have_a_limited_number_of_rows(self) -> None:
        counts = [count for _, count in statements("INSERT INTO t", [["1"]] * (2 * MANY_ROWS + 1))]
        assert counts == [MANY_ROWS, MANY_ROWS, 1]

    def test_statements_have_a_limited_length_except_for_one_long_row(self) -> None:
        half, long = "x" * (MOST_TOGETHER // 2), "x" * (MOST_TOGETHER + 1)
        counts = [count for _, count in statements("INSERT INTO t", [["1"], [half], [half], [long], ["2"]])]
        assert counts == [2, 1, 1, 1]

    def test_no_rows_give_no_statements(self) -> None:
        assert list(statements("INSERT INTO t", [])) == []


class TestManyRows:
    def test_rows_are_stored_in_order_with_few_statements(
        self, store: MySQLSessionDBProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        start(store, "s")
        rows = [{"session": "s", "at": float(number), "kind": "delta"} for number in range(MANY_ROWS + 100)]
        sent = CountedStatements(monkeypatch, "INSERT INTO usage_events")
        engine_of(store).write(lambda tx: tx.run_many(BOOKING, rows))
        assert sent.count == 2
        found = engine_of(store).read(lambda tx: tx.rows("SELECT at FROM usage_events ORDER BY id"))
        assert [at for (at,) in found] == [row["at"] for row in rows]

    def test_rows_keep_every_character(self, store: MySQLSessionDBProvider) -> None:
        texts = ["it's", "back\\slash", "), (1, '", ":key ::", "%s", "世界 😀", ""]
        rows = [{"key": f"mine {number}", "value": value} for number, value in enumerate(texts)]
        engine_of(store).write(lambda tx: tx.run_many(NOTE, [*rows, {"key": "mine none", "value": None}]))
        assert [value for _, value in engine_of(store).read(lambda tx: tx.rows(NOTES))] == [*texts, None]

    def test_rows_that_exist_are_handled_one_by_one(self, store: MySQLSessionDBProvider) -> None:
        upsert = DIALECT.upsert("state_meta", ["key"], ["value"])
        rows = [{"key": f"mine {number % 2}", "value": str(number)} for number in range(5)]
        engine_of(store).write(lambda tx: tx.run_many(upsert, rows))
        assert engine_of(store).read(lambda tx: tx.rows(NOTES)) == [("mine 0", "4"), ("mine 1", "3")]

    @pytest.mark.parametrize("bad", [{"key": "mine 1", "value": "again"}, {"key": "m" * 701, "value": "too long"}])
    def test_all_rows_are_rolled_back_if_one_fails(self, store: MySQLSessionDBProvider, bad: dict[str, str]) -> None:
        rows = [{"key": f"mine {number}", "value": "x"} for number in range(3)]
        with pytest.raises(HermesError):
            engine_of(store).write(lambda tx: tx.run_many(NOTE, [*rows, bad]))
        assert engine_of(store).read(lambda tx: tx.rows(NOTES)) == []

    def test_all_rows_are_rolled_back_if_one_cannot_be_bound(self, store: MySQLSessionDBProvider) -> None:
        rows: list[dict[str, Any]] = [{"key": "mine", "value": "x"}, {"key": "mine too", "value": 2**70}]
        with pytest.raises(InvalidValue, match="too large"):
            engine_of(store).write(lambda tx: tx.run_many(NOTE, rows))
        assert engine_of(store).read(lambda tx: tx.rows(NOTES)) == []

    def test_rows_may_be_larger_than_a_packet(self, private: Running) -> None:
        with MySQLSessionDBProvider(in_database(private.dsn, "hermes")) as store:
            rows = [{"key": f"mine {number}", "value": "世" * 300_000} for number in range(8)]
            engine_of(store).write(lambda tx: tx.run_many(NOTE, rows))
            assert len(engine_of(store).read(lambda tx: tx.rows(NOTES))) == len(rows)


MIXED: list[dict[str, Any]] = [
    {"role": "user", "content": "hello", "uid": "one"},
    {
        "role": "assistant",
        "content": "calls",
        "tool_calls": [{"id": "c", "function": {"name": "ls", "arguments": "{}"}}],
    },
    {"role": "tool", "content": "it's", "tool_name": "ls", "tool_call_id": "c", "observed": True},
    {"role": "user", "content": "hello again", "uid": "one"},
    {"role": "assistant", "content": None, "token_count": 7, "uid": "two"},
]
"""Messages with different columns, one of them twice."""


class TestManyMessages:
    def test_messages_are_stored_like_single_ones(self, store: MySQLSessionDBProvider) -> None:
        start(store, "together", "apart")
        made = store.append_messages("together", MIXED)
        for message in MIXED:
            store.append_message("apart", **message)
        assert made[3] == made[0]
        assert [row["id"] for row in store.get_messages("together")] == [*made[:3], made[4]]
        own = ("id", "uid", "session_id", "timestamp")
        stored = [
            [{name: value for name, value in row.items() if name not in own} for row in store.get_messages(each)]
            for each in ("together", "apart")
        ]
        assert stored[0] == stored[1]

    def test_returned_ids_are_correct_if_the_server_leaves_gaps(
        self, store: MySQLSessionDBProvider, dsn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        start(store, "s")
        opening = Server.setup_statements
        monkeypatch.setattr(
            Server, "setup_statements", lambda *args: (*opening(*args), "SET SESSION auto_increment_increment = 3")
        )
        with MySQLSessionDBProvider(dsn) as gaps:
            made = gaps.append_messages("s", [{"role": "user", "content": str(number)} for number in range(1_200)])
            assert {row["id"]: row["content"] for row in gaps.get_messages("s")} == {
                message_id: str(number) for number, message_id in enumerate(made)
            }

    def test_all_messages_are_rolled_back_if_one_fails(self, private: Running) -> None:
        with MySQLSessionDBProvider(in_database(private.dsn, "hermes")) as store:
            start(store, "undone")
            messages = [{"role": "user", "content": each} for each in ("short", "x" * 5_000_000, "short too")]
            with pytest.raises(InvalidValue, match="max_allowed_packet"):
                store.append_messages("undone", messages)
            assert store.get_messages("undone") == []
            assert session_of(store, "undone")["message_count"] == 0

    def test_threads_get_the_ids_of_their_own_messages(self, store: MySQLSessionDBProvider) -> None:
        start(store, *(f"s{number}" for number in range(4)))

        def add(number: int) -> dict[int, str]:
            texts = [f"{number} {each}" for each in range(300)]
            made = store.append_messages(f"s{number}", [{"role": "user", "content": each} for each in texts])
            return dict(zip(made, texts, strict=True))

        for number, stored in enumerate(at_once(4, add)):
            assert {row["id"]: row["content"] for row in store.get_messages(f"s{number}")} == stored


def test_messages_with_more_words_than_a_packet_are_indexed(private: Running) -> None:
    words = " ".join(f"w{number}" for number in range(6_000))
    with MySQLSessionDBProvider(in_database(private.dsn, "hermes")) as store:
        start(store, "long")
        store.append_messages("long", [{"role": "user", "content": f"{words} {number}"} for number in range(200)])
        assert index_backlog(store) == 0
        assert engine_of(store).read(lambda tx: tx.value("SELECT COUNT(*) FROM stale_index")) == 0
        assert session_of(store, "long")["message_count"] == 200
