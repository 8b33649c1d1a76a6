"""The measurements on PostgreSQL: appends next to raw psycopg on the same server, and search at several sizes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench import questions
from bench.built import fingerprint
from bench.carrying import migrate
from bench.job import Job, Result
from bench.postgresstore import DATABASE, SERVER, database
from bench.postgrestable import INDEXED, OURS, RAW, PostgresReport
from bench.processes import Processes
from bench.remarks import without_places
from bench.rounds import Rounds
from bench.row import OURS as SQLITE
from bench.scale import Scale
from bench.sizes import label
from hermes.state.server.search.background_index import MANY
from tests.support.servers import KINDS, NoServer, Server, private_server

DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
LARGE = {"shared_buffers": "1GB", "max_wal_size": "8GB", "autovacuum_naptime": "60s"}
ARCHIVE = "archive"
_STAMP = "built.json"


@dataclass(frozen=True, slots=True)
class Postgres:
    """Measures appends, then search."""

    processes: Processes
    archives: Path
    scale: Scale
    sizes: tuple[int, ...]
    round_count: int
    report: Callable[[str], None]
    raw_results: dict[str, dict[str, list[Result]]]

    def measure(self) -> PostgresReport:
        """Measure everything; without a server the report says why."""
        report = PostgresReport(self.sizes, questions.kinds())
        try:
            with private_server("postgresql", **DURABLE) as server, _reachable(server):
                report.appends = self._appends()
                report.migrations = self._migrations()
            for size in self.sizes:
                report.searches[size], report.builds[size] = self._search(size, report.kinds)
        except NoServer as exc:
            report.missing = without_places(str(exc))
        return report

    def _appends(self) -> dict[str, Rounds]:
        """Appends by store; indexing runs meanwhile only when too many messages wait."""
        many = self.scale.processes
        alone = Job("append", "", messages=self.scale.append_messages)
        return {
            "one client": self._rounds("append on PostgreSQL", lambda store: self.processes.run(store, alone)),
            f"{many} clients": self._together(many, MANY // many - 1),
            f"{many} clients, the index follows": self._together(many, 2 * MANY // many),
        }

    def _together(self, clients: int, messages: int) -> Rounds:
        share = Job("member", "", messages=messages)
        return self._rounds(
            f"append on PostgreSQL, {clients} clients, {messages} messages each",
            lambda store: self.processes.run_together(store, share, clients),
        )

    def _rounds(self, name: str, measure: Callable[[str], Result], stores: tuple[str, ...] = (RAW, OURS)) -> Rounds:
        rounds = Rounds()
        for number in range(self.round_count):
            for store in stores:
                self.report(f"{name}: {store} (round {number + 1} of {self.round_count})")
                rounds.add(store, measure(store))
        self.raw_results[name] = rounds.results
        return rounds

    def _migrations(self) -> Rounds:
        """Copy a file of ours to an empty database, like the command does."""
        scale = self.scale
        with tempfile.TemporaryDirectory(dir=self.processes.directory) as name:
            job = Job("fill", "", messages=scale.size_messages, sessions=scale.size_sessions)
            filled = self.processes.run_in(Path(name), SQLITE, job)
            return self._rounds(
                "migration to PostgreSQL",
                lambda _: filled if "error" in filled else self._migrate(Path(name)),
                (OURS,),
            )

    def _migrate(self, home: Path) -> Result:
        with tempfile.TemporaryDirectory(dir=home) as empty:
            return migrate(self.processes, home / "state.db", database(Path(empty)))

    def _search(self, size: int, kinds: list[questions.Kind]) -> tuple[Rounds, Result]:
        """Search an archive, which is filled first if necessary."""
        place = self.archives / f"postgresql-{label(size)}-{fingerprint(OURS)}"
        asked = self.processes.directory / "questions-postgresql.json"
        questions.write(asked, kinds)
        with _archive(place) as server, _reachable(server, ARCHIVE):
            built = self._built(place, size)
            job = Job("ask", "", messages=size, repeats=self.scale.search_repeats, questions=str(asked))
            if "rate" not in built:
                return Rounds({OURS: [built]}), built
            found = self._rounds(
                f"search on PostgreSQL, {label(size)}", lambda store: self.processes.run_in(place, store, job), (OURS,)
            )
        return found, built

    def _built(self, place: Path, size: int) -> Result:
        stamp = place / _STAMP
        if not stamp.exists():
            self.report(f"search: filling PostgreSQL with {label(size)} messages (once)")
            result = self.processes.run_in(place, INDEXED, Job("build", "", messages=size))
            if "rate" not in result:
                return result
            with psycopg.connect(os.environ[SERVER], autocommit=True) as connection:
                connection.execute("CHECKPOINT")  # otherwise the server would take long to stop
            stamp.write_text(json.dumps(result))
        built: Result = json.loads(stamp.read_text())
        return built


@contextlib.contextmanager
def _archive(place: Path) -> Iterator[Server]:
    """The server of an archive; one that was not filled completely starts again."""
    server = Server(KINDS["postgresql"], place, LARGE)
    if not (place / _STAMP).exists():
        for outdated in place.parent.glob(f"{place.name.rsplit('-', 1)[0]}-*"):
            shutil.rmtree(outdated)
        place.mkdir(parents=True)
    server.prepare()
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def _reachable(server: Server, database: str | None = None) -> Iterator[None]:
    """Let workers find a server, and the one database that they all use."""
    os.environ[SERVER] = server.dsn
    if database is not None:
        os.environ[DATABASE] = database
    try:
        yield
    finally:
        del os.environ[SERVER]
        os.environ.pop(DATABASE, None)
