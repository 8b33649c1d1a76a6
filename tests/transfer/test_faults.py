"""A migration that is killed, interrupted or run twice loses and doubles nothing, and can be continued."""

from __future__ import annotations

import random
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, cast

import pytest

from hermes.errors import StoreFull, StoreUnavailable
from hermes.state.import_export import message_pages
from hermes.state.mysql.connection.address import Address
from hermes.state.provider import SessionDBProvider
from hermes.state.server.search import background_index
from hermes.state.sqlite.engine import SqliteEngine
from hermes.state.transfer.counts import count
from hermes.state.transfer.migration import Migration
from hermes_state import SessionDB
from tests.mysql.middleman import Cut, middleman
from tests.support.clock import FakeClock
from tests.support.stores import engine_of
from tests.transfer.contents import differences, fill, migrate, snapshot, talk
from tests.transfer.processes import MigrationProcess, open_at
from tests.transfer.servers import Stoppable, empty_place, stoppable

KILLS = 4
ROUTES = [
    *(("sqlite", "sqlite"), ("sqlite", "postgresql"), ("sqlite", "mysql")),
    *(("mysql", "sqlite"), ("mysql", "postgresql"), ("postgresql", "mysql")),
]


class Route(NamedTuple):
    """Two addresses: a store with enough rows for many steps, and an empty store."""

    source: str
    target: str


@pytest.fixture
def large(tmp_path: Path, clock: FakeClock) -> Path:
    """Create a file with enough rows for many steps."""
    path = tmp_path / "large.db"
    with SessionDB(path, clock=clock) as store:
        fill(store, clock)
        talk(store, sessions=12, messages=60)
    return path


@pytest.fixture(params=ROUTES, ids="-to-".join)
def route(request: pytest.FixtureRequest, tmp_path: Path, large: Path) -> Iterator[Route]:
    """Yield the addresses of a migration from one engine to another."""
    source, target = request.param
    with ExitStack() as stack:
        address = stack.enter_context(empty_place(target, tmp_path / "target"))
        if source == "sqlite":
            yield Route(str(large), address)
            return
        filled = stack.enter_context(empty_place(source, tmp_path / "source"))
        with SessionDB(large, read_only=True) as origin, open_at(filled) as store:
            migrate(origin, store)
        yield Route(filled, address)


@pytest.fixture(scope="module", params=["postgresql", "mysql"])
def private(request: pytest.FixtureRequest) -> Iterator[Stoppable]:
    """Start a server that a test may kill."""
    with stoppable(request.param) as running:
        yield running


class TestKilled:
    def test_killed_migration_continues_and_ends_the_same(self, route: Route) -> None:
        chance = random.Random(KILLS)
        for _ in range(KILLS):
            with MigrationProcess("migrate", *route) as process:
                for _ in range(chance.randint(1, 6)):
                    process.line()
                process.kill()
                process.finish()
        with MigrationProcess("migrate", *route) as process:
            assert process.lines()[-1] == "done"
        with open_at(route.source, read_only=True) as origin, open_at(route.target) as target:
            assert snapshot(target) == snapshot(origin)
            assert differences(origin, target) == []
            newest = max(message["id"] for message in origin.get_messages("talk-011"))
            assert target.append_message("alone", "user", "now here") > newest

    def test_migration_killed_before_the_first_step_starts_again(self, route: Route) -> None:
        with MigrationProcess("migrate", *route) as process:
            process.kill()
        with open_at(route.source, read_only=True) as origin, open_at(route.target) as target:
            migrate(origin, target, resume=True)
            assert snapshot(target) == snapshot(origin)


class TestWhileOthersWrite:
    def test_everything_written_to_the_source_meanwhile_arrives(
        self, route: Route, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(message_pages, "PAGE_MESSAGES", 40)
        with MigrationProcess("write", route.source) as writer:
            assert writer.line() == "begun"
            with open_at(route.source, read_only=True) as origin, open_at(route.target) as target:
                migration = Migration(origin, target)
                migration.begin(resume=False)
                changing = migration.copy_all()
            writer.send("enough")
            written = int(writer.line())
        with open_at(route.source, read_only=True) as origin, open_at(route.target) as target:
            assert set(changing) <= {row["id"] for row in origin.search_sessions(limit=-1)}
            migrate(origin, target, resume=True)
            assert differences(origin, target) == []
            assert snapshot(target, with_ids=False) == snapshot(origin, with_ids=False)
            live = [
                message["uid"]
                for session in target.export_all()
                for message in session["messages"]
                if str(message["uid"]).startswith("live-")
            ]
            assert sorted(live) == sorted(f"live-{number}" for number in range(1, written + 1))


class TestTwoAtOnce:
    def test_one_of_two_migrations_finishes_with_the_same_result(self, route: Route) -> None:
        open_at(route.target).close()
        with MigrationProcess("migrate", *route) as one, MigrationProcess("migrate", *route) as other:
            ended = [one.lines()[-1:], other.lines()[-1:]]
            codes = sorted([one.finish(), other.finish()])
        assert ["done"] in ended
        assert codes in ([0, 0], [0, 1])
        with open_at(route.source, read_only=True) as origin, open_at(route.target) as target:
            migrate(origin, target, resume=True)
            assert differences(origin, target) == []
            assert count(target)[:2] == count(origin)[:2]


class TestFullDisk:
    def test_full_disk_raises_and_the_migration_continues_with_space(
        self, large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(message_pages, "PAGE_MESSAGES", 40)
        with SessionDB(large, read_only=True) as origin, SessionDB(tmp_path / "target.db") as target:
            pages = limit_pages(target, extra=30)
            migration = Migration(origin, target)
            migration.begin(resume=False)
            with pytest.raises(StoreFull):
                migration.copy_all()
            assert 0 < count(target).messages < count(origin).messages
            limit_pages(target, extra=pages + 1_000_000)
            migrate(origin, target, resume=True)
            assert snapshot(target) == snapshot(origin)


def limit_pages(store: SessionDBProvider, extra: int) -> int:
    """Limit a file to so many more pages; return how many it has."""
    writer = cast(SqliteEngine, engine_of(store))._shared().file().writer
    assert writer is not None
    pages = int(writer.view.value("PRAGMA page_count"))
    writer.view.rows(f"PRAGMA max_page_count = {pages + extra}")
    return pages


class TestLostServer:
    @pytest.mark.parametrize("how", [None, signal.SIGKILL], ids=["stopped", "killed"])
    def test_lost_server_raises_and_the_migration_continues_when_it_is_back(
        self, large: Path, private: Stoppable, how: signal.Signals | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(message_pages, "PAGE_MESSAGES", 40)
        monkeypatch.setattr(background_index, "READ_TIMEOUT_S", 2.0)
        name = f"gone_{'stopped' if how is None else 'killed'}"
        private.make_room(name)
        with SessionDB(large, read_only=True) as origin:
            with private.open(name, write_timeout_s=2) as target:
                migration = Migration(origin, target, at_step(8, lambda: private.server.stop(how)))
                migration.begin(resume=False)
                with pytest.raises(StoreUnavailable):
                    migration.copy_all()
            private.server.start()
            with private.open(name, write_timeout_s=30) as target:
                migrate(origin, target, resume=True)
                assert snapshot(target) == snapshot(origin)
                assert differences(origin, target) == []

    @pytest.mark.parametrize("how", [None, signal.SIGKILL], ids=["stopped", "killed"])
    @pytest.mark.parametrize("is_origin", [False, True], ids=["target", "origin"])
    def test_short_outage_of_a_server_only_delays_the_migration(
        self,
        large: Path,
        private: Stoppable,
        how: signal.Signals | None,
        is_origin: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def restart() -> None:
            private.server.stop(how)
            private.server.start()

        name = f"pause_{'origin' if is_origin else 'target'}_{'stopped' if how is None else 'killed'}"
        interrupted(large, private, name, restart, monkeypatch, is_origin=is_origin)


class TestBrokenConnections:
    @pytest.mark.parametrize("is_origin", [False, True], ids=["target", "origin"])
    def test_broken_connections_are_replaced(
        self, large: Path, private: Stoppable, is_origin: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = f"broken_{'origin' if is_origin else 'target'}"
        interrupted(large, private, name, private.hang_up, monkeypatch, is_origin=is_origin)

    @pytest.mark.parametrize("is_answer", [False, True], ids=["unheard", "unanswered"])
    def test_connection_lost_during_a_mysql_commit_raises_and_the_migration_continues(
        self, large: Path, tmp_path: Path, is_answer: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(message_pages, "PAGE_MESSAGES", 40)
        with (
            empty_place("mysql", tmp_path / "target") as address,
            tempfile.TemporaryDirectory(prefix="hermes-") as place,
            SessionDB(large, read_only=True) as origin,
        ):
            server = Address.of(address).unix_socket
            assert server is not None
            end = Path(place) / "socket"
            cut = Cut(b"COMMIT", is_answer=is_answer)
            with middleman(end, server) as between, open_at(address.replace(server, str(end))) as target:
                migration = Migration(origin, target, at_step(8, lambda: setattr(between, "cut", cut)))
                migration.begin(resume=False)
                with pytest.raises(StoreUnavailable, match="during a commit"):
                    migration.copy_all()
            assert cut.is_done.is_set()
            with open_at(address) as target:
                assert 0 < count(target).messages < count(origin).messages
                migrate(origin, target, resume=True)
                assert snapshot(target) == snapshot(origin)
                assert differences(origin, target) == []


def interrupted(
    large: Path,
    private: Stoppable,
    name: str,
    interrupt: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_origin: bool,
) -> None:
    """Migrate to or from a server that is interrupted in the middle; nothing may be lost or raised."""
    monkeypatch.setattr(message_pages, "PAGE_MESSAGES", 40)
    private.make_room(name)
    with SessionDB(large, read_only=True) as file, private.open(name, write_timeout_s=30) as store:
        if is_origin:
            migrate(file, store)
        with SessionDB(large.with_name("back.db")) as back:
            origin, target = (store, back) if is_origin else (file, store)
            migration = Migration(origin, target, at_step(8, interrupt))
            migration.begin(resume=False)
            assert migration.copy_all() == []
            migration.finish()
            assert snapshot(target) == snapshot(file)
            assert differences(file, target) == []


def at_step(step: int, act: Callable[[], None]) -> Callable[..., None]:
    """Return a progress function that runs `work` at one step of a migration."""
    reports = []

    def note_progress(*progress: object) -> None:
        reports.append(progress)
        if len(reports) == step:
            act()

    return note_progress
