"""Connections break and servers stop: every acknowledged message is stored once, and the store keeps working."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql  # type: ignore[import-untyped]
import pytest

from hermes.config import SessionDBConfig
from hermes.errors import StoreUnavailable
from hermes.state.mysql.connection import pool
from hermes.state.mysql.connection.address import Address
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.mysql.conftest import plain, rows_of
from tests.mysql.middleman import Cut, Middleman, middleman
from tests.support.conversations import contents
from tests.support.mysql import in_database
from tests.support.servers import Server
from tests.support.stores import engine_of
from tests.support.waiting import LIMIT_S, wait_until


def kill_all(connection: pymysql.Connection) -> None:
    """Let the server close all other connections to the test's database."""
    others = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
    for (number,) in rows_of(connection, others):
        with contextlib.suppress(pymysql.err.OperationalError):  # it is closed already
            rows_of(connection, f"KILL {number}")
    wait_until(lambda: not rows_of(connection, others), "connections to be gone")


@pytest.fixture
def line(dsn: str) -> Iterator[tuple[Middleman, str]]:
    """A proxy to the run's server that can cut connections, and the DSN of the proxy."""
    server = Address.of(dsn).unix_socket
    assert server is not None
    with tempfile.TemporaryDirectory(prefix="hermes-") as place:
        end = Path(place) / "socket"
        with middleman(end, server) as between:
            yield between, dsn.replace(server, str(end))


@pytest.fixture
def far(line: tuple[Middleman, str], settings: SessionDBConfig) -> Iterator[MySQLSessionDBProvider]:
    """A store behind that proxy, with a session `s`."""
    with MySQLSessionDBProvider(line[1], settings=settings) as opened:
        opened.create_session("s", "cli")
        opened.append_message("s", "user", "first")
        yield opened


@pytest.mark.parametrize("idle_s", [0.0, pool.IDLE_S])
def test_connections_that_died_while_idle_are_replaced(
    store: MySQLSessionDBProvider, connection: pymysql.Connection, monkeypatch: pytest.MonkeyPatch, idle_s: float
) -> None:
    monkeypatch.setattr(pool, "IDLE_S", idle_s)
    store.create_session("s", "cli")
    for turn in range(3):
        kill_all(connection)
        store.append_message("s", "user", f"turn {turn}")
        kill_all(connection)
        assert len(store.get_messages("s")) == turn + 1


def test_a_write_whose_connection_dies_in_the_middle_is_done_once(
    store: MySQLSessionDBProvider, connection: pymysql.Connection
) -> None:
    store.create_session("s", "cli")
    attempts: list[int] = []

    def work(tx: Any) -> None:
        attempts.append(tx.run("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = 's'"))
        if len(attempts) == 1:
            kill_all(connection)
        tx.run("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = 's'")

    engine_of(store).write(work)
    assert len(attempts) == 2
    assert engine_of(store).read(lambda tx: tx.value("SELECT rewind_count FROM sessions")) == 2


class TestCommitWithoutResponse:
    """A commit whose response is lost."""

    @pytest.mark.parametrize("is_answer", [False, True], ids=["not done", "done"])
    def test_message_is_stored_once(
        self, line: tuple[Middleman, str], far: MySQLSessionDBProvider, is_answer: bool
    ) -> None:
        line[0].cut = cut = Cut(b"COMMIT", is_answer)
        far.append_message("s", "user", "second")
        assert cut.is_done.is_set()
        assert contents(far.get_messages("s")) == ["first", "second"]
        assert far.message_count("s") == 2

    @pytest.mark.parametrize("is_answer", [False, True], ids=["not done", "done"])
    def test_several_messages_are_stored_once(
        self, line: tuple[Middleman, str], far: MySQLSessionDBProvider, is_answer: bool
    ) -> None:
        line[0].cut = Cut(b"COMMIT", is_answer)
        messages = [{"role": "user", "content": f"{number}"} for number in range(5)]
        assert len(far.append_messages("s", messages)) == 5
        assert contents(far.get_messages("s")) == ["first", *"01234"]

    @pytest.mark.parametrize("is_answer", [False, True], ids=["not done", "done"])
    def test_other_write_is_an_error(
        self, line: tuple[Middleman, str], far: MySQLSessionDBProvider, is_answer: bool
    ) -> None:
        line[0].cut = Cut(b"COMMIT", is_answer)
        with pytest.raises(StoreUnavailable, match="it is not known whether") as caught:
            far.set_session_title("s", "A title")
        assert "check the data before" in caught.value.hint
        assert far.get_session_title("s") in (None, "A title")


def test_connection_that_breaks_while_a_result_is_read_is_replaced(
    line: tuple[Middleman, str], far: MySQLSessionDBProvider
) -> None:
    line[0].cut = cut = Cut(b"FROM messages", is_answer=True)
    assert contents(far.get_messages("s")) == ["first"]
    assert cut.is_done.is_set()


class TestServer:
    @pytest.fixture
    def place(self, private: Server) -> str:
        """A database on a server that may be stopped."""
        return in_database(private.dsn, "hermes")

    def test_server_restarted_between_two_calls_is_used_again(self, private: Server, place: str) -> None:
        with MySQLSessionDBProvider(place) as store:
            store.create_session("again", "cli")
            store.append_message("again", "user", "before")
            private.stop()
            private.start()
            store.append_message("again", "user", "after")
            assert contents(store.get_messages("again")) == ["before", "after"]

    def test_store_waits_for_a_server_that_restarts(self, private: Server, place: str) -> None:
        with MySQLSessionDBProvider(place) as store:
            store.create_session("away", "cli")
            private.stop()
            coming = threading.Timer(0.5, private.start)
            coming.start()
            store.append_message("away", "user", "hello")
            coming.join(timeout=LIMIT_S)
            assert store.message_count("away") == 1

    def test_server_that_stays_down_is_an_error(self, private: Server, place: str) -> None:
        settings = SessionDBConfig(provider="mysql", write_timeout_s=0.3, connect_timeout_s=1)
        with MySQLSessionDBProvider(place, settings=settings) as store:
            store.create_session("gone", "cli")
            private.stop()
            try:
                with pytest.raises(StoreUnavailable) as caught:
                    store.append_message("gone", "user", "hello")
                assert caught.value.retryable
                with pytest.raises(StoreUnavailable):
                    MySQLSessionDBProvider(place, settings=settings)
            finally:
                private.start()
            store.append_message("gone", "user", "hello again")
            assert contents(store.get_messages("gone")) == ["hello again"]

    def test_killed_server_loses_and_doubles_nothing(self, private: Server, place: str) -> None:
        acknowledged: list[str] = []
        with MySQLSessionDBProvider(place) as store:
            store.create_session("kill", "cli")

            def append() -> None:
                for number in range(150):
                    store.append_message("kill", "user", f"{number}")
                    acknowledged.append(f"{number}")

            speaking = threading.Thread(target=append)
            speaking.start()
            for count in (20, 70):
                wait_until(lambda: len(acknowledged) >= count, "some messages to be stored")  # noqa: B023 - at once
                private.stop(signal.SIGKILL)
                private.start()
            speaking.join(timeout=4 * LIMIT_S)
            assert len(acknowledged) == 150
            assert contents(store.get_messages("kill")) == acknowledged


def test_forked_process_has_its_own_connections(store: MySQLSessionDBProvider) -> None:
    store.create_session("s", "cli")
    store.append_message("s", "user", "before")
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        done = 1
        try:
            store.append_message("s", "user", "child")
            done = 0
        finally:
            os._exit(done)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.append_message("s", "user", "after")
    assert contents(store.get_messages("s")) == ["before", "child", "after"]


def test_wait_for_a_silent_server_ends(
    line: tuple[Middleman, str], settings: SessionDBConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "SILENCE_S", 0.5)
    with MySQLSessionDBProvider(line[1], settings=replace(settings, write_timeout_s=0.2)) as store:
        with pytest.raises(StoreUnavailable):
            engine_of(store).write(lambda tx: tx.value("SELECT SLEEP(30)"))
        assert store.session_count() == 0


def test_closing_a_store_does_not_affect_others(
    dsn: str, settings: SessionDBConfig, store: MySQLSessionDBProvider
) -> None:
    with plain(dsn) as other:
        MySQLSessionDBProvider(dsn, settings=settings).close()
        assert rows_of(other, "SELECT 1") == [(1,)]
    assert store.session_count() == 0
