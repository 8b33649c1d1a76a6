"""A DSN with several hosts: the primary is found, and a replaced primary is not written to."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack
from dataclasses import replace

from hermes.config import SessionDBConfig
from hermes.errors import StoreBusy, StoreUnavailable
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from tests.support.conversations import at_once
from tests.support.replication import pair, query
from tests.support.servers import server_or_skip
from tests.support.waiting import LIMIT_S, wait_until

WRITERS, BEFORE, AFTER = 4, 40, 20
CONTENTS = "SELECT content FROM messages ORDER BY id"


def test_with_synchronous_replication_every_acknowledged_message_survives_the_primary(
    settings: SessionDBConfig,
) -> None:
    with ExitStack() as stack:
        servers = server_or_skip(lambda: stack.enter_context(pair(is_synchronous=True)))
        patient = replace(settings, schema=None, write_timeout_s=2 * LIMIT_S, connect_timeout_s=2)
        store = stack.enter_context(PostgreSQLSessionDBProvider(servers.dsn, settings=patient))
        for number in range(WRITERS):
            store.create_session(f"s{number}", "cli")
        stored_texts: list[str] = []
        is_over = threading.Event()

        def write(number: int) -> None:
            turn = 0
            while not is_over.is_set():
                store.append_message(f"s{number}", "user", f"{number}-{turn}")
                stored_texts.append(f"{number}-{turn}")
                turn += 1

        def fail_over() -> None:
            try:
                wait_until(lambda: len(stored_texts) > BEFORE, "some messages")
                servers.first.stop(signal.SIGKILL)
                servers.promote()
                there = len(stored_texts)
                wait_until(
                    lambda: len(stored_texts) > there + AFTER, "messages on the server that took over", 2 * LIMIT_S
                )
            finally:
                is_over.set()

        at_once(WRITERS + 1, lambda number: fail_over() if number == WRITERS else write(number))
        stored = [str(row[0]) for row in query(servers.second, CONTENTS)]
        assert sorted(stored) == sorted(stored_texts)


def test_replaced_primary_is_not_written_when_it_wakes(
    settings: SessionDBConfig,
) -> None:
    with ExitStack() as stack:
        servers = server_or_skip(lambda: stack.enter_context(pair(is_synchronous=False)))
        brief = replace(settings, schema=None, write_timeout_s=1, connect_timeout_s=2)
        store = stack.enter_context(PostgreSQLSessionDBProvider(servers.dsn, settings=brief))
        store.create_session("s", "cli")
        store.append_message("s", "user", "before")
        servers.let_standby_catch_up()
        servers.signal_first(signal.SIGSTOP)
        servers.promote()

        def is_stored(text: str) -> bool:
            try:
                store.append_message("s", "user", text, uid=text)
            except (StoreBusy, StoreUnavailable):
                return False
            return True

        wait_until(lambda: is_stored("meanwhile"), "the server that took over to be found", 3 * LIMIT_S)
        servers.signal_first(signal.SIGCONT)
        query(
            servers.second, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hermes'"
        )
        wait_until(lambda: is_stored("after"), "the server that took over to be found again", 3 * LIMIT_S)
        assert query(servers.second, CONTENTS) == [("before",), ("meanwhile",), ("after",)]
        assert query(servers.first, CONTENTS) == [("before",)]
