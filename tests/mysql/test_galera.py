"""A Galera cluster in which all nodes accept writes: what one of them acknowledges is stored on all of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pymysql  # type: ignore[import-untyped]
import pytest
from pymysql.constants import CLIENT  # type: ignore[import-untyped]

from hermes.config import SessionDBConfig
from hermes.errors import StaleLease, StoreError, StoreUnavailable
from hermes.state.mysql.connection import cluster_lock
from hermes.state.mysql.provider import MySQLSessionDBProvider
from hermes.state.owner import EVERYBODY
from hermes.state.server.faults import ServerError
from tests.mysql.conftest import plain, rows_of
from tests.support.conversations import at_once
from tests.support.galera import NODES, Cluster, cluster
from tests.support.servers import server_or_skip
from tests.support.stores import engine_of
from tests.support.waiting import LIMIT_S, wait_until

WRITERS, SESSIONS, APPENDS = 6, 4, 150
"""Few sessions, so that writers on different nodes collide in them."""
CHANGED, SLOW, ADDED = "UPDATE counter SET n = n + 1", "DO SLEEP(1.5)", "INSERT INTO steps (step) VALUES (1)"
"""A transaction that is open long enough for another node to roll it back."""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """A cluster for these tests."""
    with ExitStack() as stack:
        yield server_or_skip(lambda: stack.enter_context(cluster()))


@pytest.fixture
def place(nodes: Cluster) -> Iterator[Cluster]:
    """The cluster with an empty database."""
    with plain(nodes.dsn(0, "mysql")) as outside:
        rows_of(outside, "CREATE DATABASE hermes")
        for node in range(NODES):
            wait_until(partial(_has_database, nodes, node), f"node {node} to have the database")
        yield nodes
        rows_of(outside, "DROP DATABASE hermes")


def _has_database(nodes: Cluster, node: int) -> bool:
    with plain(nodes.dsn(node, "mysql")) as outside:
        rows_of(outside, "SET SESSION wsrep_sync_wait = 1")  # so that a database of an earlier test is not found
        return rows_of(outside, "SHOW DATABASES LIKE 'hermes'") != []


@pytest.fixture
def stores(place: Cluster, settings: SessionDBConfig) -> Iterator[list[MySQLSessionDBProvider]]:
    """One store, opened through each of the nodes."""
    with ExitStack() as stack:
        yield [stack.enter_context(MySQLSessionDBProvider(place.dsn(node), settings=settings)) for node in range(NODES)]


def rows_on(place: Cluster, node: int, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a statement on a node once all changes have arrived there."""
    with plain(place.dsn(node)) as connection:
        rows_of(connection, "SET SESSION wsrep_sync_wait = 1")
        return rows_of(connection, sql)


def make_counter(place: Cluster) -> None:
    """Create a counter, and a table with as many rows as the counter says."""
    with plain(place.dsn(0)) as connection:
        rows_of(connection, "CREATE TABLE counter (id INT PRIMARY KEY, n INT)")
        rows_of(connection, "CREATE TABLE steps (id INT PRIMARY KEY AUTO_INCREMENT, step INT)")
        rows_of(connection, "INSERT INTO counter VALUES (1, 0)")


def undo_from_another_node(place: Cluster) -> None:
    """Change the counter through another node while a transaction that has changed it is open."""
    with plain(place.dsn(0)) as watching, plain(place.dsn(1)) as other:
        question = (
            f"SELECT 1 FROM information_schema.processlist WHERE info LIKE '{SLOW[:8]}%' AND state = 'User sleep'"
        )
        wait_until(lambda: bool(rows_of(watching, question)), "the transaction to be open")
        rows_of(other, "UPDATE counter SET n = n + 100")


class TestTransactionRolledBackByAnotherNode:
    def test_transaction_sent_together_is_kept_in_part(self, place: Cluster) -> None:
        # This happens with any driver, and shows that the next test is needed.
        make_counter(place)
        with plain(place.dsn(0), client_flag=CLIENT.MULTI_STATEMENTS) as connection:

            def send() -> None:
                with connection.cursor() as cursor, suppress(pymysql.Error):
                    cursor.execute("; ".join(["START TRANSACTION", CHANGED, SLOW, ADDED, "COMMIT"]))
                    while cursor.nextset():
                        pass

            thread = threading.Thread(target=send)
            thread.start()
            undo_from_another_node(place)
            thread.join()
        ((n,),) = rows_on(place, 2, "SELECT n FROM counter")
        ((steps,),) = rows_on(place, 2, "SELECT COUNT(*) FROM steps")
        assert n == 100
        assert steps > 0

    def test_transaction_is_repeated_as_a_whole(self, place: Cluster, stores: list[MySQLSessionDBProvider]) -> None:
        make_counter(place)
        attempts: list[int] = []

        def work(tx: Any) -> None:
            attempts.append(1)
            tx.send(CHANGED)
            if len(attempts) == 1:
                tx.send(SLOW)
            tx.send(ADDED)

        thread = threading.Thread(target=engine_of(stores[0]).write, args=(work,))
        thread.start()
        undo_from_another_node(place)
        thread.join()
        assert len(attempts) == 2
        for node in range(NODES):
            assert rows_on(place, node, "SELECT n, (SELECT COUNT(*) FROM steps) FROM counter") == [(101, 1)]


def test_acknowledged_messages_of_all_nodes_are_stored_on_every_node(
    place: Cluster, stores: list[MySQLSessionDBProvider]
) -> None:
    for number in range(SESSIONS):
        stores[0].create_session(f"s{number}", "cli")

    def write(number: int) -> list[str]:
        uids = [f"{number}-{turn}" for turn in range(APPENDS)]
        for turn, uid in enumerate(uids):
            session_id = f"s{(number + turn) % SESSIONS}"
            stores[number % NODES].append_message(session_id, "user", f"hello word{turn}", uid=uid)
        return uids

    written_uids = sorted(uid for uids in at_once(WRITERS, write) for uid in uids)
    for node in range(NODES):
        assert sorted(row[0] for row in rows_on(place, node, "SELECT uid FROM messages")) == written_uids
        stored = "SELECT COUNT(*) FROM messages m WHERE m.session_id = s.id"
        counted = f"SELECT SUM(message_count), SUM(message_count <> ({stored})) FROM sessions s"
        assert rows_on(place, node, counted) == [(WRITERS * APPENDS, 0)]
        found = stores[node].search_messages(f"word{APPENDS - 1}", limit=100)
        assert len(found) == WRITERS


@pytest.mark.parametrize(("rights", "is_stored"), [("ALL", True), ("SELECT, INSERT, UPDATE, DELETE", False)])
def test_table_that_a_node_has_opened_with_broken_triggers_is_opened_again(
    place: Cluster, settings: SessionDBConfig, rights: str, is_stored: bool
) -> None:
    # A node parses triggers when it opens a table. Here they are broken at that moment; usually another node rolls back
    # the transaction meanwhile.
    MySQLSessionDBProvider(place.dsn(1), settings=settings).close()
    triggers = place.nodes[1].place / "data" / "hermes" / "messages.TRG"
    with plain(place.dsn(1)) as outside, ExitStack() as stack:
        rows_of(outside, f"GRANT {rights} ON hermes.* TO 'writer'@'localhost' IDENTIFIED BY 'secret'")
        stack.callback(rows_of, outside, "DROP USER 'writer'@'localhost'")
        address = place.dsn(1).replace("root@", "writer:secret@")
        store = stack.enter_context(MySQLSessionDBProvider(address, settings=settings))
        store.create_session("s", "cli")
        whole = triggers.read_bytes()
        triggers.write_bytes(whole.replace(b"(message_id) VALUES", b"(message_id VALUES"))
        rows_of(outside, "FLUSH LOCAL TABLES")
        for _ in range(2):
            with pytest.raises(pymysql.err.ProgrammingError, match="has an error in its body"):
                rows_of(outside, "INSERT INTO messages (session_id, role, timestamp) VALUES ('s', 'user', 1)")
            triggers.write_bytes(whole)
        if is_stored:
            store.append_message("s", "user", "hello")
        else:
            with pytest.raises(StoreError, match="has an error in its body") as caught:
                store.append_message("s", "user", "hello")
            assert "FLUSH TABLES" in caught.value.hint
        assert len(store.get_messages("s")) == is_stored


def test_stores_opened_on_an_empty_database_through_different_nodes_all_work(
    place: Cluster, settings: SessionDBConfig
) -> None:
    def start(number: int) -> None:
        with MySQLSessionDBProvider(place.dsn(number), settings=settings) as store:
            store.create_session(f"s{number}", "cli")
            store.append_message(f"s{number}", "user", "hello")

    at_once(8, start)
    for node in range(NODES):
        assert rows_on(place, node, "SELECT COUNT(*) FROM messages") == [(8,)]
        assert rows_on(place, node, "SELECT COUNT(*) FROM stale_index") in ([(8,)], [(0,)])
        assert rows_on(place, node, f"SELECT 1 FROM state_meta WHERE `key` = '{cluster_lock.KEY}'") == []


def test_lock_of_a_process_that_died_while_creating_tables_expires(
    place: Cluster, settings: SessionDBConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    MySQLSessionDBProvider(place.dsn(0), settings=settings).close()
    with plain(place.dsn(0)) as outside:
        rows_of(outside, "DELETE FROM hermes_ledger WHERE name <> '0001_store'")
        rows_of(outside, f"INSERT INTO state_meta (`key`, value) VALUES ('{cluster_lock.KEY}', 'the dead 3')")
    monkeypatch.setattr(cluster_lock, "STALE_S", 0.2)
    with MySQLSessionDBProvider(place.dsn(1), settings=settings) as store:
        assert store.session_count() == 0


def test_lock_is_released_after_a_renewal_that_failed(place: Cluster, stores: list[MySQLSessionDBProvider]) -> None:
    row = f"SELECT value FROM state_meta WHERE `key` = '{cluster_lock.KEY}'"
    backend = engine_of(stores[0]).backend  # type: ignore[attr-defined]
    connection = backend.pool.connect()
    connection.run("SET SESSION innodb_lock_wait_timeout = 1")
    lock = cluster_lock.ClusterLock(connection, "here")
    lock.acquire(LIMIT_S)
    with plain(place.dsn(0)) as other:
        rows_of(other, "START TRANSACTION")
        assert rows_of(other, f"{row} FOR UPDATE") != []
        with pytest.raises(ServerError):
            lock.renew()
        rows_of(other, "ROLLBACK")
    lock.release()
    connection.close()
    assert rows_on(place, 1, row) == []


def test_message_stored_through_one_node_is_read_through_another_at_once(
    stores: list[MySQLSessionDBProvider],
) -> None:
    stores[0].create_session("s", "cli")
    for number in range(150):
        stores[number % NODES].append_message("s", "user", f"message {number}")
        assert stores[(number + 1) % NODES].get_messages("s")[-1]["content"] == f"message {number}"


def test_node_without_the_others_is_unavailable_until_it_rejoins(place: Cluster, settings: SessionDBConfig) -> None:
    with (
        plain(place.dsn(2)) as outside,
        MySQLSessionDBProvider(place.dsn(2), settings=replace(settings, write_timeout_s=1)) as store,
    ):
        store.create_session("s", "cli")
        rows_of(outside, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'")
        try:
            wait_until(lambda: _status(outside, "wsrep_ready") == "OFF", "the node to be alone")
            with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
                store.create_session("t", "cli")
            assert caught.value.retryable
            assert "another node" in caught.value.hint
        finally:
            rows_of(outside, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'")
        wait_until(lambda: _status(outside, "wsrep_ready") == "ON", "the node to be back")
        store.create_session("t", "cli")
        assert store.session_count() == 2


def _status(connection: pymysql.Connection, name: str) -> str:
    return str(rows_of(connection, f"SHOW STATUS LIKE '{name}'")[0][1])


class TestFencedWrites:
    def test_a_lane_taken_through_another_node_before_the_commit_undoes_the_write(
        self, stores: list[MySQLSessionDBProvider]
    ) -> None:
        stores[0].create_session("s", "cli")
        taken = stores[0].turns.acquire("lane", "n1", 0)
        assert taken is not None
        fenced = stores[0].for_owner(EVERYBODY).fenced(taken.lease)
        fenced.append_message("s", "user", "in time")
        attempts: list[int] = []

        def work(tx: Any) -> None:
            attempts.append(1)
            tx.run("UPDATE sessions SET title = 'late' WHERE id = 's'")
            if len(attempts) == 1:  # the lock of this transaction holds on its own node only
                assert stores[1].turns.acquire("lane", "n2") is not None

        with pytest.raises(StaleLease):
            fenced._engine.write(work)
        assert len(attempts) == 1
        assert stores[2].get_session_title("s") is None
        assert [row["content"] for row in stores[2].get_messages("s")] == ["in time"]

    def test_no_message_is_stored_after_another_node_has_the_lane(self, stores: list[MySQLSessionDBProvider]) -> None:
        late: list[str] = []
        for number in range(60):
            session = f"s{number}"
            stores[0].create_session(session, "cli")
            taken = stores[0].turns.acquire(f"lane {number}", "n1", 0)
            assert taken is not None
            fenced = stores[0].for_owner(EVERYBODY).fenced(taken.lease)
            stored: list[int] = []

            def append(fenced: Any = fenced, session: str = session, stored: list[int] = stored) -> None:
                with suppress(StaleLease):
                    for _ in range(200):
                        stored.append(fenced.append_message(session, "user", "x"))

            thread = threading.Thread(target=append)
            thread.start()
            assert stores[1].turns.acquire(f"lane {number}", "n2") is not None
            seen = len(stores[1].get_messages(session))
            thread.join(LIMIT_S)
            after = len(stores[1].get_messages(session))
            late += [f"{session}: {seen} of {after}"] if after != seen or after != len(stored) else []
        assert late == []
