"""The event loop is never blocked, and a started write always finishes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import InvalidValue, StoreClosed, UnknownSession
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from hermes_state import SessionDB
from tests.support.conversations import contents
from tests.support.plainsql import plain
from tests.support.schemas import empty_schema
from tests.support.waiting import LIMIT_S, wait_until

asker: ContextVar[str] = ContextVar("asker", default="unset")


class GatedStore(SessionDB):
    """A store whose appends wait for a gate."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.askers: list[str] = []

    def append_message(self, *args: Any, **kwargs: Any) -> int:
        """Append when the gate is open."""
        self.begun.set()
        self.askers.append(asker.get())
        assert self.gate.wait(LIMIT_S)
        return super().append_message(*args, **kwargs)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Create a store with a session."""
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli")
    return tmp_path / "state.db"


def stored(path: Path) -> list[str]:
    with SessionDB(path) as db:
        return contents(db.get_messages("s"))


async def until(is_so: Callable[[], bool]) -> int:
    """Yield to the loop until a condition holds; return how often."""
    async with asyncio.timeout(LIMIT_S):
        beats = 0
        while not is_so():
            beats += 1
            await asyncio.sleep(0.001)
        return beats


class TestTheLoop:
    def test_loop_continues_while_a_write_waits_for_a_lock(self, path: Path) -> None:
        async def run() -> None:
            async with await AsyncSessionDB.open(lambda: SessionDB(path)) as db:
                with plain(path) as other:
                    other.execute("BEGIN IMMEDIATE").fetchall()
                    write = asyncio.create_task(db.append_message("s", "user", "waits"))
                    beats = 0
                    async with asyncio.timeout(LIMIT_S):
                        while beats < 200:
                            beats += 1
                            await asyncio.sleep(0)
                            assert not write.done()
                    other.execute("COMMIT").fetchall()
                assert await asyncio.wait_for(write, LIMIT_S) > 0

        asyncio.run(run())
        assert stored(path) == ["waits"]

    def test_reads_run_while_a_write_waits(self, path: Path) -> None:
        store = GatedStore(path)

        async def run() -> None:
            async with AsyncSessionDB(store) as db:
                write = asyncio.create_task(db.append_message("s", "user", "x"))
                await until(store.begun.is_set)
                assert await db.message_count("s") == 0
                store.gate.set()
                await write

        asyncio.run(run())

    def test_reads_run_in_parallel_on_all_threads(self, path: Path) -> None:
        class BarrierStore(SessionDB):
            barrier = threading.Barrier(3)

            def session_count(self, *args: Any, **kwargs: Any) -> int:
                self.barrier.wait(LIMIT_S)
                return super().session_count(*args, **kwargs)

        async def run() -> list[int]:
            async with await AsyncSessionDB.open(lambda: BarrierStore(path), threads=3) as db:
                return await asyncio.gather(*(db.session_count() for _ in range(6)))

        assert asyncio.run(run()) == [1] * 6

    def test_opening_does_not_block_the_loop(self, path: Path) -> None:
        gate = threading.Event()

        def opener() -> SessionDB:
            assert gate.wait(LIMIT_S)
            return SessionDB(path)

        async def run() -> int:
            opening = asyncio.create_task(AsyncSessionDB.open(opener))
            await asyncio.sleep(0)
            gate.set()
            async with await opening as db:
                return await db.session_count()

        assert asyncio.run(run()) == 1

    def test_cancelled_opening_leaves_no_store_open(self, path: Path) -> None:
        gate, opened = threading.Event(), list[SessionDB]()

        def opener() -> SessionDB:
            assert gate.wait(LIMIT_S)
            opened.append(SessionDB(path))
            return opened[0]

        async def run() -> None:
            opening = asyncio.create_task(AsyncSessionDB.open(opener))
            await asyncio.sleep(0.01)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            gate.set()

        asyncio.run(run())
        wait_until(lambda: bool(opened) and is_closed(opened[0]), "the store to be closed")


class TestWrites:
    def test_writes_are_done_in_the_order_of_their_calls(self, path: Path) -> None:
        async def run() -> None:
            async with await AsyncSessionDB.open(lambda: SessionDB(path)) as db:
                await asyncio.gather(*(db.append_message("s", "user", str(number)) for number in range(50)))

        asyncio.run(run())
        assert stored(path) == [str(number) for number in range(50)]

    def test_started_writes_finish_when_their_caller_is_cancelled(self, path: Path) -> None:
        store = GatedStore(path)

        async def run() -> None:
            async with AsyncSessionDB(store) as db:
                write = asyncio.create_task(db.append_message("s", "user", "begun"))
                await until(store.begun.is_set)
                write.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await write
                store.gate.set()

        asyncio.run(run())
        assert stored(path) == ["begun"]

    def test_queued_writes_are_dropped_when_their_caller_is_cancelled(self, path: Path) -> None:
        store = GatedStore(path)

        async def run() -> None:
            async with AsyncSessionDB(store) as db:
                first = asyncio.create_task(db.append_message("s", "user", "first"))
                await until(store.begun.is_set)
                second = asyncio.create_task(db.append_message("s", "user", "second"))
                await asyncio.sleep(0)
                second.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await second
                store.gate.set()
                await first

        asyncio.run(run())
        assert stored(path) == ["first"]

    def test_writes_that_fail_after_cancellation_are_logged(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        store = GatedStore(path)

        async def run() -> None:
            async with AsyncSessionDB(store) as db:
                write = asyncio.create_task(db.append_message("unknown", "user", "x"))
                await until(store.begun.is_set)
                write.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await write
                store.gate.set()

        asyncio.run(run())
        assert "caller was cancelled" in caplog.text

    def test_writes_run_in_the_context_of_their_caller(self, path: Path) -> None:
        store = GatedStore(path)

        async def run() -> list[str]:
            async with AsyncSessionDB(store) as db:
                store.gate.set()
                asker.set("ann")
                await db.append_message("s", "user", "x")
                asker.set("bob")
                await db.append_message("s", "user", "y")
                return store.askers

        assert asyncio.run(run()) == ["ann", "bob"]


class TestClosing:
    def test_close_waits_for_running_calls(self, path: Path) -> None:
        store = GatedStore(path)

        async def run() -> None:
            db = AsyncSessionDB(store)
            writes = [asyncio.create_task(db.append_message("s", "user", str(number))) for number in range(3)]
            await until(store.begun.is_set)
            closing = asyncio.create_task(db.close())
            await asyncio.sleep(0)
            assert not closing.done()
            store.gate.set()
            await closing
            assert all([await write > 0 for write in writes])

        asyncio.run(run())
        assert stored(path) == ["0", "1", "2"]

    def test_close_continues_when_its_caller_is_cancelled(self, path: Path) -> None:
        store = GatedStore(path)

        async def run() -> bool:
            db = AsyncSessionDB(store)
            write = asyncio.create_task(db.append_message("s", "user", "x"))
            await until(store.begun.is_set)
            closing = asyncio.create_task(db.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            store.gate.set()
            await db.close()
            await write
            return await asyncio.to_thread(is_closed, store)

        assert asyncio.run(run())

    def test_calls_after_close_raise_store_closed(self, path: Path) -> None:
        async def run() -> None:
            db = await AsyncSessionDB.open(lambda: SessionDB(path))
            await db.close()
            await db.close()
            with pytest.raises(StoreClosed):
                await db.session_count()
            with pytest.raises(StoreClosed):
                await db.append_message("s", "user", "x")

        asyncio.run(run())


class TestResults:
    def test_awaited_errors_are_those_of_the_store(self, path: Path) -> None:
        async def run() -> None:
            async with await AsyncSessionDB.open(lambda: SessionDB(path)) as db:
                with pytest.raises(UnknownSession):
                    await db.append_message("nowhere", "user", "x")

        asyncio.run(run())

    def test_awaited_pages_lead_to_all_sessions(self, path: Path) -> None:
        async def run() -> list[str]:
            async with await AsyncSessionDB.open(lambda: SessionDB(path)) as db:
                for number in range(5):
                    await db.create_session(f"more{number}", "cli")
                found: list[str] = []
                after = None
                while page := await db.list_sessions_rich(limit=2, after=after):
                    found += [row["id"] for row in page]
                    after = page[-1]["cursor"]
                return found

        assert sorted(asyncio.run(run())) == ["more0", "more1", "more2", "more3", "more4", "s"]

    def test_an_export_is_iterated_one_by_one(self, path: Path) -> None:
        async def run() -> list[str]:
            async with await AsyncSessionDB.open(lambda: SessionDB(path)) as db:
                await db.create_session("other", "telegram")
                return [row["id"] async for row in db.iter_export(source="telegram")]

        assert asyncio.run(run()) == ["other"]

    def test_async_store_works_on_one_loop_after_another(self, path: Path) -> None:
        db = AsyncSessionDB(SessionDB(path))
        assert [asyncio.run(db.session_count()) for _ in range(3)] == [1, 1, 1]
        asyncio.run(db.close())

    def test_async_store_wraps_a_store_on_a_server(self, tmp_path: Path) -> None:
        async def run(dsn: str) -> list[str]:
            opened = AsyncSessionDB.open(lambda: PostgreSQLSessionDBProvider(dsn))
            async with await opened as db:
                await db.create_session("s", "cli")
                await asyncio.gather(*(db.append_message("s", "user", str(number)) for number in range(20)))
                return contents(await db.get_messages("s"))

        with empty_schema(tmp_path) as dsn:
            assert asyncio.run(run(dsn)) == [str(number) for number in range(20)]

    @pytest.mark.parametrize("threads", [0, -1])
    def test_async_store_needs_a_thread(self, path: Path, threads: int) -> None:
        with SessionDB(path) as store, pytest.raises(InvalidValue, match="threads"):
            AsyncSessionDB(store, threads=threads)

    def test_async_store_needs_a_store(self, path: Path) -> None:
        with pytest.raises(InvalidValue, match="store"):
            AsyncSessionDB(path)  # type: ignore[arg-type]


def is_closed(store: SessionDB) -> bool:
    try:
        store.session_count()
    except StoreClosed:
        return True
    return False
