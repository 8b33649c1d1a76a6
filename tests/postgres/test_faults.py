"""Servers crash, connections break and run out: acknowledged messages are stored once, and the store keeps working."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from hermes.config import SessionDBConfig
from hermes.errors import NotFound, StoreBusy, StoreUnavailable
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes_state import SessionDB
from tests.postgres.flakyline import FlakyLine, flaky_line
from tests.support.calls import READS, WRITES, fill
from tests.support.conversations import at_once, contents, session_of, start
from tests.support.pgbouncer import PgBouncer
from tests.support.servers import Server, skip_or_fail
from tests.support.stores import engine_of
from tests.support.waiting import LIMIT_S, wait_until
from tests.upgrade.checks import environment

TALKERS, CRASHES = 3, 2
LINES = 3
MESSAGES = 40
PATIENT = SessionDBConfig(provider="postgresql", write_timeout_s=2 * LIMIT_S, pool_timeout_s=2 * LIMIT_S)


def socket_of(dsn: str) -> str:
    """The socket of a server."""
    with psycopg.connect(dsn) as connection:
        return f"{connection.info.host}/.s.PGSQL.{connection.info.port}"


class Talker:
    """A process that stores messages, and the messages that were acknowledged."""

    def __init__(self, dsn: str, session_id: str, home: Path) -> None:
        self.session_id = session_id
        self.acknowledged: list[int] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.postgres.talker", dsn, session_id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment(), "HERMES_HOME": str(home)},
        )
        self._hearing = threading.Thread(target=self._read)
        self._hearing.start()

    def end(self) -> str:
        """Let it finish; return its stderr."""
        with self.process:
            assert self.process.stdin is not None
            assert self.process.stderr is not None
            self.process.stdin.close()
            self._hearing.join(2 * LIMIT_S)
            return self.process.stderr.read()

    def kill(self) -> None:
        """Kill it."""
        with self.process:
            self.process.kill()
            self._hearing.join(LIMIT_S)

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.acknowledged += map(int, self.process.stdout)


class TestCrash:
    """The server dies while several processes write, again and again."""

    @pytest.fixture
    def talkers(self, private: Server, tmp_path: Path) -> Iterator[list[Talker]]:
        PostgreSQLSessionDBProvider(private.dsn, settings=PATIENT).close()
        talking = [Talker(private.dsn, f"talker {number}", tmp_path) for number in range(TALKERS)]
        yield talking
        for each in talking:
            if each.process.poll() is None:
                each.kill()

    def test_crash_loses_and_doubles_nothing(self, private: Server, talkers: list[Talker]) -> None:
        for _ in range(CRASHES):
            before = [len(each.acknowledged) for each in talkers]
            wait_until(
                lambda: all(len(each.acknowledged) > was + 10 for each, was in zip(talkers, before, strict=True)),  # noqa: B023 - waited for at once
                "every process to talk",
                2 * LIMIT_S,
            )
            private.stop(signal.SIGQUIT)
            private.start()
        killed, *ended = talkers
        killed.kill()
        assert [each.end() for each in ended] == [""] * len(ended)
        with PostgreSQLSessionDBProvider(private.dsn, settings=PATIENT) as store:
            stored = {
                each: [int(content) for content in contents(store.get_messages(each.session_id))] for each in talkers
            }
            for each, numbers in stored.items():
                assert numbers == list(range(len(numbers)))
                assert session_of(store, each.session_id)["message_count"] == len(numbers)
        assert [stored[each] for each in ended] == [each.acknowledged for each in ended]
        # Messages that were being stored when their process was killed may be there or not.
        assert len(killed.acknowledged) <= len(stored[killed]) <= len(killed.acknowledged) + 1


@pytest.mark.parametrize("seed", range(LINES))
class TestLineThatBreaks:
    """The connection breaks after a random number of bytes, also between a commit and its response."""

    @pytest.fixture
    def line(self, private: Server, seed: int) -> Iterator[FlakyLine]:
        with (
            tempfile.TemporaryDirectory(prefix="hermes-") as place,
            flaky_line(Path(place), socket_of(private.dsn), seed, longest=6_000) as between,
        ):
            yield between

    def test_broken_connection_loses_and_doubles_nothing(self, private: Server, line: FlakyLine, seed: int) -> None:
        session_id, settings = f"line {seed}", replace(PATIENT, schema="lines")
        with PostgreSQLSessionDBProvider(private.dsn, settings=settings) as store:
            start(store, session_id)
        counted = unknown = 0
        line.is_flaky = False
        with PostgreSQLSessionDBProvider(line.dsn, settings=settings) as store:
            line.is_flaky = True
            for number in range(MESSAGES):
                store.append_message(session_id, "user", f"{number}", uid=f"{number}" if number % 2 else None)
                try:
                    store.update_token_counts(session_id, input_tokens=1)
                    counted += 1
                except StoreUnavailable as exc:
                    assert "it is not known whether" in exc.message  # noqa: PT017 - only one reason is good enough
                    unknown += 1
            line.is_flaky = False
            assert contents(store.get_messages(session_id)) == [f"{number}" for number in range(MESSAGES)]
            assert counted <= session_of(store, session_id)["input_tokens"] <= counted + unknown
        assert line.cuts > 5


class TestConnectionsRunOut:
    """A server that accepts no more connections."""

    @pytest.fixture
    def few(self, dsn: str, connection: psycopg.Connection[Any], schema: str) -> Iterator[str]:
        """A user who may have two connections."""
        connection.execute("DROP ROLE IF EXISTS hermes_few")
        connection.execute("CREATE ROLE hermes_few LOGIN CONNECTION LIMIT 2")
        connection.execute(f"CREATE SCHEMA {schema} AUTHORIZATION hermes_few".encode())
        yield make_conninfo(dsn, user="hermes_few")
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())
        connection.execute("DROP ROLE hermes_few")

    def test_opening_a_store_is_an_error(self, few: str, settings: SessionDBConfig) -> None:
        with psycopg.connect(few), psycopg.connect(few), pytest.raises(StoreUnavailable, match="too many connections"):
            PostgreSQLSessionDBProvider(few, settings=settings)

    def test_threads_share_the_connections_that_are_left(self, few: str, settings: SessionDBConfig) -> None:
        own = replace(settings, pool_max_size=6, pool_timeout_s=LIMIT_S)
        with PostgreSQLSessionDBProvider(few, settings=own) as store:
            start(store, "s")
            at_once(6, lambda number: [store.append_message("s", "user", f"{number}") for _ in range(10)])
            assert store.message_count("s") == 60


@pytest.mark.parametrize("wait_s", [120, 1])
def test_pooler_without_a_free_server_connection_is_not_reported_as_down(
    dsn: str, settings: SessionDBConfig, wait_s: int
) -> None:
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hermes-")))
        try:
            pooler = PgBouncer(str(Path(socket_of(dsn)).parent), place, mode="session", size=1, wait_s=wait_s)
        except OSError as exc:
            skip_or_fail(str(exc))
        pooler.start()
        stack.callback(pooler.stop)
        few = replace(settings, write_timeout_s=1.5, pool_max_size=2)
        store = stack.enter_context(PostgreSQLSessionDBProvider(pooler.dsn, settings=few))

        def work(tx: Any) -> None:
            tx.value("SELECT 1")  # this connection uses the only one to the server now
            with pytest.raises(StoreBusy, match="no free server connection") as caught:
                at_once(1, lambda _: store.create_session("s", "cli"))
            assert "pool_mode = transaction" in caught.value.hint

        engine_of(store).write(work)


class TestPgBouncer:
    """The real PgBouncer, in transaction mode."""

    @pytest.fixture
    def pooler(self, dsn: str) -> Iterator[PgBouncer]:
        with tempfile.TemporaryDirectory(prefix="hermes-") as place:
            try:
                made = PgBouncer(str(Path(socket_of(dsn)).parent), Path(place))
            except OSError as exc:
                skip_or_fail(str(exc))
            made.start()
            yield made
            made.stop()

    @pytest.fixture
    def store(self, pooler: PgBouncer, settings: SessionDBConfig) -> Iterator[PostgreSQLSessionDBProvider]:
        with PostgreSQLSessionDBProvider(pooler.dsn, settings=replace(settings, write_timeout_s=LIMIT_S)) as opened:
            yield opened

    def test_pooler_is_detected_and_every_operation_works(
        self, store: PostgreSQLSessionDBProvider, tmp_path: Path
    ) -> None:
        assert store.health()["is_behind_pooler"] is True
        with SessionDB(tmp_path / "other.db") as other:
            sample = fill(store, other, tmp_path / "other.db")
        for call in (*READS.values(), *WRITES.values()):
            for _ in range(2):
                with suppress(NotFound):  # some of them delete what others change
                    call(store, sample)

    def test_restarted_pooler_loses_and_doubles_nothing(
        self, store: PostgreSQLSessionDBProvider, pooler: PgBouncer
    ) -> None:
        start(store, *(f"s{number}" for number in range(4)))
        stored_texts: list[list[str]] = [[] for _ in range(4)]
        is_over = threading.Event()

        def talk(number: int) -> None:
            while not is_over.is_set():
                text = f"{len(stored_texts[number])}"
                store.append_message(f"s{number}", "user", text)
                stored_texts[number].append(text)

        def kill(_: int) -> None:
            try:
                for _ in range(2):
                    before = min(map(len, stored_texts))
                    wait_until(lambda: min(map(len, stored_texts)) > before + 5, "everybody to talk")  # noqa: B023 - waited for at once
                    pooler.stop()
                    pooler.start()
            finally:
                is_over.set()

        at_once(5, lambda number: talk(number) if number < 4 else kill(number))
        assert [contents(store.get_messages(f"s{number}")) for number in range(4)] == stored_texts


def test_process_killed_in_a_transaction_does_not_block_others(private: Server, tmp_path: Path) -> None:
    PostgreSQLSessionDBProvider(private.dsn, settings=PATIENT).close()
    talker = Talker(private.dsn, "killed", tmp_path)
    wait_until(lambda: len(talker.acknowledged) > 5, "messages of the process", 2 * LIMIT_S)
    talker.kill()
    with PostgreSQLSessionDBProvider(private.dsn, settings=PATIENT) as store:
        store.append_message("killed", "user", "after")
        assert contents(store.get_messages("killed"))[-1] == "after"
