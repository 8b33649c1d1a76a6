"""Two PostgreSQL servers: a primary, and a streaming standby that can take over from it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg

from tests.support.privileges import unprivileged
from tests.support.servers import KINDS, Server, give_to_server
from tests.support.waiting import wait_until


class Pair:
    """A primary and its standby."""

    def __init__(self, place: Path, *, is_synchronous: bool) -> None:
        first, second = place / "first", place / "second"
        for each in (first, second):
            each.mkdir()
        follow = f"host={first} user=postgres application_name=second"
        waits = {"synchronous_standby_names": "second"} if is_synchronous else {}
        self.first = Server(KINDS["postgresql"], first, waits)
        self.second = Server(KINDS["postgresql"], second, {"primary_conninfo": follow})

    @property
    def dsn(self) -> str:
        """The DSN of the server that can be written."""
        hosts = f"{self.first.place},{self.second.place}"
        return f"host={hosts} user=postgres dbname=postgres target_session_attrs=read-write"

    def start(self) -> None:
        """Start both, and wait until the standby follows."""
        self.first.prepare()
        give_to_server(self.second.place)
        shutil.copytree(self.first.place / "data", self.second.place / "data")
        (self.second.place / "data" / "standby.signal").touch()
        if owner := unprivileged():
            for path in (self.second.place / "data", *(self.second.place / "data").rglob("*")):
                os.chown(path, owner["user"], owner["group"])
        self.second.prepare()
        self.first.start()
        self.second.start()
        wait_until(lambda: bool(query(self.first, "SELECT 1 FROM pg_stat_replication")), "the standby to follow")

    def let_standby_catch_up(self) -> None:
        """Wait until the standby has everything that the primary has."""
        ((written,),) = query(self.first, "SELECT pg_current_wal_lsn()")
        question = f"SELECT 1 WHERE pg_last_wal_replay_lsn() >= '{written}'"
        wait_until(lambda: bool(query(self.second, question)), "the standby to catch up")

    def promote(self) -> None:
        """Let the standby take over."""
        query(self.second, "SELECT pg_promote()")

    def signal_first(self, number: signal.Signals) -> None:
        """Send all processes of the primary a signal."""
        children = Path(f"/proc/{self.first.pid}/task/{self.first.pid}/children").read_text().split()
        for pid in (self.first.pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def query(server: Server, sql: str) -> list[tuple[object, ...]]:
    """The rows of a query on a server."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        return connection.execute(sql.encode()).fetchall()


@contextlib.contextmanager
def pair(*, is_synchronous: bool) -> Iterator[Pair]:
    """A primary and a standby for one test."""
    place = Path(tempfile.mkdtemp(prefix="hermes-"))
    give_to_server(place)
    made = Pair(place, is_synchronous=is_synchronous)
    try:
        made.start()
        yield made
    finally:
        for each in (made.second, made.first):
            each.stop(signal.SIGKILL)
        shutil.rmtree(place, ignore_errors=True)
