"""A migration that is killed, starved, cut off or doubled: nothing is lost, nothing is doubled, and it goes on."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest

from hermes.config import SessionDBConfig
from hermes.errors import StoreFull, StoreUnavailable
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes.state.provider import SessionDBProvider
from hermes.state.sqlite.engine import SqliteEngine
from hermes.state.transfer import reading
from hermes.state.transfer.migration import Migration
from hermes.state.transfer.standing import count
from hermes_state import SessionDB
from tests.support.clock import FakeClock
from tests.support.schemas import empty_schema, server_or_skip
from tests.support.servers import Server, private_server
from tests.transfer.child import Other, open_at
from tests.transfer.contents import answers, carry, differences, fill, talk

KILLS = 6


@pytest.fixture
def large(tmp_path: Path, clock: FakeClock) -> Path:
    """A file with enough in it for many steps."""
    path = tmp_path / "large.db"
    with SessionDB(path, clock=clock) as store:
        fill(store, clock)
        talk(store, sessions=12, messages=60)
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where there is no store yet, but can be one."""
    if request.param == "sqlite":
        yield str(tmp_path / "target.db")
        return
    with empty_schema(tmp_path) as dsn:
        yield dsn


@pytest.fixture(scope="module")
def private() -> Iterator[Server]:
    """A server that a test may kill."""
    with ExitStack() as stack:
        running = private_server("postgresql", fsync="on", full_page_writes="on")
        yield server_or_skip(lambda: stack.enter_context(running))


class TestKilled:
    def test_at_any_moment_it_goes_on_and_ends_the_same(self, large: Path, address: str) -> None:
        chance = random.Random(address.startswith("postgresql"))
        for _ in range(KILLS):
            with Other("migrate", large, address) as process:
                for _ in range(chance.randint(1, 6)):
                    process.line()
                process.kill()
                process.finish()
        with Other("migrate", large, address) as process:
            assert process.lines()[-1] == "done"
        with SessionDB(large, read_only=True) as origin, open_at(address) as target:
            assert answers(target) == answers(origin)
            assert differences(origin, target) == []
            newest = max(message["id"] for message in origin.get_messages("talk-011"))
            assert target.append_message("alone", "user", "now here") > newest

    def test_before_anything_was_carried_it_begins(self, large: Path, address: str) -> None:
        with Other("migrate", large, address) as process:
            process.kill()
        with SessionDB(large, read_only=True) as origin, open_at(address) as target:
            carry(origin, target, resume=True)
            assert answers(target) == answers(origin)


class TestWhileOthersWrite:
    def test_all_that_was_written_in_the_origin_arrives(
        self, large: Path, address: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "PAGE_MESSAGES", 40)
        with Other("write", large) as writer:
            assert writer.line() == "begun"
            with SessionDB(large, read_only=True) as origin, open_at(address) as target:
                migration = Migration(origin, target)
                migration.begin(resume=False)
                changing = migration.carry()
            writer.tell("enough")
            written = int(writer.line())
        with SessionDB(large, read_only=True) as origin, open_at(address) as target:
            assert set(changing) <= {row["id"] for row in origin.search_sessions(limit=-1)}
            carry(origin, target, resume=True)
            assert differences(origin, target) == []
            assert answers(target, with_ids=False) == answers(origin, with_ids=False)
            live = [
                message["uid"]
                for session in target.export_all()
                for message in session["messages"]
                if str(message["uid"]).startswith("live-")
            ]
            assert sorted(live) == sorted(f"live-{number}" for number in range(1, written + 1))


class TestTwoAtOnce:
    def test_one_of_them_ends_and_the_result_is_the_same(self, large: Path, address: str) -> None:
        open_at(address).close()
        with Other("migrate", large, address) as one, Other("migrate", large, address) as other:
            ended = [one.lines()[-1:], other.lines()[-1:]]
            codes = sorted([one.finish(), other.finish()])
        assert ["done"] in ended
        assert codes in ([0, 0], [0, 1])
        with SessionDB(large, read_only=True) as origin, open_at(address) as target:
            carry(origin, target, resume=True)
            assert differences(origin, target) == []
            assert count(target)[:2] == count(origin)[:2]


class TestAFullDisk:
    def test_is_told_of_and_it_goes_on_when_there_is_room(
        self, large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "PAGE_MESSAGES", 40)
        with SessionDB(large, read_only=True) as origin, SessionDB(tmp_path / "target.db") as target:
            pages = limit_pages(target, extra=30)
            migration = Migration(origin, target)
            migration.begin(resume=False)
            with pytest.raises(StoreFull):
                migration.carry()
            assert 0 < count(target).messages < count(origin).messages
            limit_pages(target, extra=pages + 1_000_000)
            carry(origin, target, resume=True)
            assert answers(target) == answers(origin)


def limit_pages(store: SessionDBProvider, extra: int) -> int:
    """Leave a file room for so many more pages; answers how many it has."""
    writer = cast(SqliteEngine, store._engine)._opened().opened().writer
    assert writer is not None
    pages = int(writer.view.value("PRAGMA page_count"))
    writer.view.rows(f"PRAGMA max_page_count = {pages + extra}")
    return pages


class TestAServerThatGoesAway:
    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
    def test_is_told_of_and_it_goes_on_when_it_is_back(
        self, large: Path, private: Server, how: signal.Signals, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "PAGE_MESSAGES", 40)
        schema = f"gone_{how.name.lower()}"
        settings = SessionDBConfig(provider="postgresql", schema=schema, write_timeout_s=2, pool_timeout_s=2)
        heard = []

        def stop(*told: object) -> None:
            heard.append(told)
            if len(heard) == 8:
                private.stop(how)

        with SessionDB(large, read_only=True) as origin:
            with PostgreSQLSessionDBProvider(private.dsn, settings=settings) as target:
                migration = Migration(origin, target, stop)
                migration.begin(resume=False)
                with pytest.raises(StoreUnavailable):
                    migration.carry()
            private.start()
            with PostgreSQLSessionDBProvider(private.dsn, settings=settings) as target:
                carry(origin, target, resume=True)
                assert answers(target) == answers(origin)
                assert differences(origin, target) == []
