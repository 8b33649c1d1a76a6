"""Connections break and servers stop: every acknowledged message is stored once, and the store keeps working."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from hermes.config import SessionDBConfig
from hermes.errors import StoreUnavailable
from hermes.state.postgres.backend import PostgresBackend
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from tests.postgres.middleman import Cut, Middleman, middleman
from tests.support.conversations import contents
from tests.support.servers import Server
from tests.support.stores import engine_of
from tests.support.waiting import LIMIT_S, wait_until

COMMIT = b"\0COMMIT\0"
"""The statement, and not a word that begins like it."""


def terminate_all(connection: psycopg.Connection[Any], name: str) -> None:
    """Let the server close all connections with this application name; other tests use the server too."""
    connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", [name])


@pytest.fixture
def store(dsn: str, settings: SessionDBConfig, schema: str) -> Iterator[PostgreSQLSessionDBProvider]:
    """An empty store whose connections have the name of its schema."""
    with PostgreSQLSessionDBProvider(make_conninfo(dsn, application_name=schema), settings=settings) as opened:
        yield opened


@pytest.fixture
def line(dsn: str) -> Iterator[Middleman]:
    """A proxy to the run's server that can cut connections."""
    with psycopg.connect(dsn) as connection:
        server = f"{connection.info.host}/.s.PGSQL.{connection.info.port}"
    with tempfile.TemporaryDirectory(prefix="hermes-") as place, middleman(Path(place), server, 4) as between:
        yield between


@pytest.fixture
def far(line: Middleman, settings: SessionDBConfig) -> Iterator[PostgreSQLSessionDBProvider]:
    """A store behind that proxy, with a session `s`."""
    with PostgreSQLSessionDBProvider(line.dsn, settings=settings) as opened:
        opened.create_session("s", "cli")
        opened.append_message("s", "user", "first")
        yield opened


def test_connections_that_died_while_idle_are_replaced(
    store: PostgreSQLSessionDBProvider, connection: psycopg.Connection[Any], schema: str
) -> None:
    store.create_session("s", "cli")
    for turn in range(3):
        terminate_all(connection, schema)
        store.append_message("s", "user", f"turn {turn}")
        terminate_all(connection, schema)
        assert len(store.get_messages("s")) == turn + 1


def test_a_write_whose_connection_dies_in_the_middle_is_done_once(
    store: PostgreSQLSessionDBProvider, connection: psycopg.Connection[Any], schema: str
) -> None:
    store.create_session("s", "cli")
    attempts: list[int] = []

    def work(tx: Any) -> None:
        attempts.append(tx.run("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = 's'"))
        if len(attempts) == 1:
            terminate_all(connection, schema)
        tx.run("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = 's'")

    engine_of(store).write(work)
    session = store.get_session("s")
    assert session is not None
    assert (len(attempts), session["rewind_count"]) == (2, 2)


@pytest.mark.parametrize("is_answer", [False, True], ids=["the commit is lost", "its response is lost"])
class TestCommitWithoutResponse:
    """The server is asked whether the transaction was committed."""

    def test_message_is_stored_once(self, far: PostgreSQLSessionDBProvider, line: Middleman, is_answer: bool) -> None:
        line.cut = cut = Cut(COMMIT, is_answer)
        message_id = far.append_message("s", "user", "second")
        assert cut.is_done.is_set()
        messages = far.get_messages("s")
        assert contents(messages) == ["first", "second"]
        assert messages[-1]["id"] == message_id

    def test_tokens_are_counted_once(self, far: PostgreSQLSessionDBProvider, line: Middleman, is_answer: bool) -> None:
        line.cut = cut = Cut(COMMIT, is_answer)
        far.update_token_counts("s", input_tokens=5)
        assert cut.is_done.is_set()
        session = far.get_session("s")
        assert session is not None
        assert session["input_tokens"] == 5

    def test_session_is_handed_over_once(
        self, far: PostgreSQLSessionDBProvider, line: Middleman, is_answer: bool
    ) -> None:
        far.request_handoff("s", "telegram")
        line.cut = cut = Cut(COMMIT, is_answer)
        assert far.claim_handoff("s")
        assert cut.is_done.is_set()

    def test_message_is_stored_once_even_if_the_server_does_not_know(
        self, far: PostgreSQLSessionDBProvider, line: Middleman, is_answer: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(PostgresBackend, "is_committed", lambda *_: None)
        line.cut = cut = Cut(COMMIT, is_answer)
        far.append_messages("s", [{"role": "user", "content": "second"}, {"role": "user", "content": "third"}])
        assert cut.is_done.is_set()
        assert contents(far.get_messages("s")) == ["first", "second", "third"]

    def test_other_write_is_an_error_if_the_server_does_not_know(
        self, far: PostgreSQLSessionDBProvider, line: Middleman, is_answer: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(PostgresBackend, "is_committed", lambda *_: None)
        line.cut = Cut(COMMIT, is_answer)
        with pytest.raises(StoreUnavailable, match="it is not known whether"):
            far.update_token_counts("s", input_tokens=5)


@pytest.mark.parametrize("text", [b"SELECT message_count", b"INSERT INTO messages"])
def test_a_statement_that_is_cut_off_is_sent_again(
    far: PostgreSQLSessionDBProvider, line: Middleman, text: bytes
) -> None:
    far.append_message("s", "user", "second")
    line.cut = cut = Cut(text, is_answer=True)
    # Prepared statements have other names; there are none behind this proxy.
    far.append_message("s", "user", "third")
    assert cut.is_done.is_set()
    assert contents(far.get_messages("s")) == ["first", "second", "third"]


class TestRestart:
    """A server that is stopped, in order or by a kill, and starts again."""

    @pytest.fixture
    def store(self, private: Server) -> Iterator[PostgreSQLSessionDBProvider]:
        settings = SessionDBConfig(provider="postgresql", write_timeout_s=LIMIT_S)
        with PostgreSQLSessionDBProvider(private.dsn, settings=settings) as opened:
            yield opened

    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["in order", "all of a sudden"])
    def test_restart_loses_and_doubles_nothing(
        self, private: Server, store: PostgreSQLSessionDBProvider, how: signal.Signals
    ) -> None:
        session_id = store.create_session(f"s{how}", "cli")
        stored_texts: list[str] = []
        is_over = threading.Event()

        def talk() -> None:
            while not is_over.is_set():
                text = f"word{len(stored_texts)}"
                store.append_message(session_id, "user", text)
                stored_texts.append(text)

        talking = threading.Thread(target=talk)
        talking.start()
        try:
            for _ in range(2):
                before = len(stored_texts)
                wait_until(lambda: len(stored_texts) > before + 20, "messages to be stored")  # noqa: B023 - waited for at once
                private.stop(how)
                private.start()
        finally:
            is_over.set()
            talking.join(timeout=LIMIT_S)
        assert not talking.is_alive()
        assert contents(store.get_messages(session_id)) == stored_texts

    def test_server_that_stays_down_is_an_error(self, private: Server) -> None:
        settings = SessionDBConfig(provider="postgresql", write_timeout_s=0.5, pool_timeout_s=0.5)
        with PostgreSQLSessionDBProvider(private.dsn, settings=settings) as store:
            store.create_session("gone", "cli")
            private.stop()
            try:
                with pytest.raises(StoreUnavailable) as caught:
                    store.append_message("gone", "user", "hello")
                assert caught.value.retryable
                assert store.health()["ok"] is False
            finally:
                private.start()
            store.append_message("gone", "user", "hello")
            assert len(store.get_messages("gone")) == 1


def test_an_interrupt_in_the_middle_of_a_wait_leaves_the_store_usable(
    store: PostgreSQLSessionDBProvider, connection: psycopg.Connection[Any], schema: str
) -> None:
    store.create_session("s", "cli")
    with connection.transaction():
        connection.execute(f"SELECT 1 FROM {schema}.sessions WHERE id = 's' FOR UPDATE".encode())
        interrupting = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
        interrupting.start()
        with pytest.raises(KeyboardInterrupt):
            store.append_message("s", "user", "never")
        interrupting.join()
    store.append_message("s", "user", "after")
    assert contents(store.get_messages("s")) == ["after"]


def in_child(work: Callable[[], object]) -> int:
    """Run `work` in a forked process and return its exit code."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - this is the end of the process, whatever it was
            os._exit(1)
        os._exit(0)
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the forked process hangs")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking with threads is what is tested
def test_forked_process_has_its_own_connections(store: PostgreSQLSessionDBProvider) -> None:
    store.create_session("s", "cli")
    store.append_message("s", "user", "parent")
    assert in_child(lambda: store.append_message("s", "user", "child")) == 0
    store.append_message("s", "user", "parent again")
    assert contents(store.get_messages("s")) == ["parent", "child", "parent again"]


def test_unreachable_server_is_an_error_at_once(settings: SessionDBConfig, tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        PostgreSQLSessionDBProvider(
            f"postgresql://hermes:s3cret@/none?host={tmp_path}", settings=replace(settings, pool_timeout_s=LIMIT_S)
        )
    assert time.monotonic() - started < LIMIT_S
