"""What happens to work when something fails in the middle of it, and to a store that is closed."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from hermes.state.sqlite.engine import SqliteEngine
from hermes_state import SessionDB, StoreClosed, StoreFull, StoreUnavailable, UnknownSession
from tests.fault.child import SESSION
from tests.fault.processes import Child, Task, assert_sound, one_writer_inside, queued
from tests.support.waiting import LIMIT_S, wait_until


def contents(db: SessionDB) -> list[str]:
    """The contents of the messages, in order."""
    return [str(message["content"]) for message in db.get_messages(SESSION)]


def append(db: SessionDB, text: str) -> Task:
    """Append a message in its own thread."""
    return Task(lambda: db.append_message(SESSION, "user", text))


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


@pytest.fixture
def connections() -> Iterator[list[apsw.Connection]]:
    """Every connection that is opened during the test."""
    open_long_read: list[apsw.Connection] = []
    apsw.connection_hooks.append(open_long_read.append)
    try:
        yield open_long_read
    finally:
        apsw.connection_hooks.remove(open_long_read.append)


class TestGroup:
    """Several callers in one transaction."""

    def test_failing_work_does_not_disturb_the_others(self, db: SessionDB, engine: SqliteEngine) -> None:
        def fail(tx: Any) -> None:
            tx.run("UPDATE sessions SET model = 'half-done'")
            raise LookupError("mine alone")

        with one_writer_inside(engine):
            first = append(db, "first")
            wait_until(lambda: queued(engine) == 1, "the first to be queued")
            failing = Task(lambda: engine.write(fail))
            wait_until(lambda: queued(engine) == 2, "the failing one to be queued")
            last = append(db, "last")
            wait_until(lambda: queued(engine) == 3, "the last to be queued")
        assert first.result()
        assert last.result()
        assert isinstance(failing.error(), LookupError)
        assert contents(db) == ["first", "last"]
        assert {**(db.get_session(SESSION) or {})}["model"] is None

    def test_work_that_makes_sqlite_roll_back_fails_alone(self, db: SessionDB, engine: SqliteEngine) -> None:
        def interrupted(tx: Any) -> None:
            tx.connection.set_progress_handler(lambda: True, 1)
            try:
                tx.run("UPDATE sessions SET model = 'half-done'")
            finally:
                tx.connection.set_progress_handler(None)

        with one_writer_inside(engine):
            first = append(db, "first")
            wait_until(lambda: queued(engine) == 1, "the first to be queued")
            failing = Task(lambda: engine.write(interrupted))
            wait_until(lambda: queued(engine) == 2, "the failing one to be queued")
            last = append(db, "last")
            wait_until(lambda: queued(engine) == 3, "the last to be queued")
        assert first.result()
        assert last.result()
        assert isinstance(failing.error(), StoreUnavailable)
        assert sorted(contents(db)) == ["first", "last"]
        assert {**(db.get_session(SESSION) or {})}["model"] is None

    def test_error_of_an_operation_reaches_its_caller_only(self, db: SessionDB, engine: SqliteEngine) -> None:
        with one_writer_inside(engine):
            good = append(db, "good")
            bad = Task(lambda: db.append_message("nowhere", "user", "lost"))
            wait_until(lambda: queued(engine) == 2, "both to be queued")
        assert good.result()
        assert isinstance(bad.error(), UnknownSession)
        assert contents(db) == ["good"]

    @pytest.mark.parametrize("is_first", [True, False])
    def test_interrupt_of_the_leader_loses_no_other_message(
        self, db: SessionDB, engine: SqliteEngine, is_first: bool
    ) -> None:
        def interrupt(tx: Any) -> None:
            tx.run("UPDATE sessions SET model = 'half-done'")
            if threading.current_thread() is threading.main_thread():
                signal.raise_signal(signal.SIGINT)

        others: list[Task] = []
        inside, leave = threading.Event(), threading.Event()

        def hold(_: object) -> None:
            inside.set()
            assert leave.wait(LIMIT_S)

        def line_up() -> None:
            wait_until(lambda: queued(engine) == 1, "the main thread to be queued")
            others.append(append(db, "one"))
            others.append(append(db, "two"))
            if not is_first:
                others.append(Task(lambda: engine.write(interrupt)))
            wait_until(lambda: queued(engine) == (3 if is_first else 4), "the others to be queued")
            leave.set()

        holder = Task(lambda: engine.write(hold))
        assert inside.wait(LIMIT_S)
        helper = Task(line_up)
        with pytest.raises(KeyboardInterrupt):
            # As the next leader, the main thread runs the work of all callers that are queued behind it.
            engine.write(interrupt if is_first else lambda tx: tx.run("UPDATE sessions SET cwd = '/'"))
        helper.result()
        holder.result()
        for other in others:
            other.result()
        assert sorted(contents(db)) == ["one", "two"]
        db.append_message(SESSION, "user", "and on")
        assert len(contents(db)) == 3

    def test_interrupt_while_sqlite_waits_leaves_a_store_that_works(self, path: Path, db: SessionDB) -> None:
        with Child("hold-transaction", path, 30) as foreign:
            assert foreign.line() == "held"

            def interrupt() -> None:
                with open(f"{path}.lock") as lock:
                    wait_until(lambda: _is_locked(lock.fileno()), "the main thread to wait inside SQLite")
                os.kill(os.getpid(), signal.SIGINT)
                foreign.send()

            helper = Task(interrupt)
            with pytest.raises(KeyboardInterrupt):
                db.append_message(SESSION, "user", "interrupted", uid="interrupted")
            helper.result()
        db.append_message(SESSION, "user", "and on", uid="later")
        assert contents(db)[-1] == "and on"

    def test_work_that_ends_its_thread_under_contention_does_not_stop_the_store(
        self, path: Path, db: SessionDB, engine: SqliteEngine
    ) -> None:
        def leave(_: object) -> None:
            raise SystemExit("only this caller")

        with Child("hold-lock", path) as other:
            assert other.line() == "held"
            leaving = Task(lambda: engine.write(leave))
            wait_until(lambda: queued(engine) == 1, "it to be queued")
            staying = append(db, "I stay")
            wait_until(lambda: queued(engine) == 2, "both to be queued")
            other.send()
            assert other.line() == "released"
            assert staying.result()
            assert isinstance(leaving.error(), SystemExit)
        with SessionDB(path, write_timeout_s=5) as again:
            again.append_message(SESSION, "user", "and on")
            assert contents(again) == ["I stay", "and on"]


class TestNesting:
    """Writes and reads inside one another."""

    def test_nested_writes_are_one_transaction(self, db: SessionDB, engine: SqliteEngine) -> None:
        def outer(_: object) -> None:
            db.create_session("inner", "cli")
            db.append_message("inner", "user", "said")
            assert len(db.get_messages("inner")) == 1
            raise LookupError("take it all back")

        with pytest.raises(LookupError):
            engine.write(outer)
        assert db.get_session("inner") is None

    def test_nested_writes_are_kept_together(self, db: SessionDB, engine: SqliteEngine) -> None:
        def outer(_: object) -> int:
            db.create_session("inner", "cli")
            return db.append_message("inner", "user", "said")

        assert engine.write(outer) == db.get_messages("inner")[0]["id"]

    def test_write_inside_a_read_works_and_is_not_seen_by_it(self, db: SessionDB, engine: SqliteEngine) -> None:
        def outer(tx: Any) -> tuple[int, int]:
            before = tx.value("SELECT count(*) FROM messages")
            db.append_message(SESSION, "user", "meanwhile")
            return before, tx.value("SELECT count(*) FROM messages")

        assert engine.read(outer) == (0, 0)
        assert contents(db) == ["meanwhile"]

    def test_reads_do_not_wait_for_a_write(self, db: SessionDB, engine: SqliteEngine) -> None:
        db.append_message(SESSION, "user", "before")
        with one_writer_inside(engine):
            assert Task(lambda: contents(db)).result() == ["before"]
            assert len(db.list_sessions_rich()) == 1


class TestFull:
    """A full disk."""

    def test_full_store_is_an_error_and_works_again_with_free_space(
        self, path: Path, connections: list[apsw.Connection]
    ) -> None:
        with SessionDB(path) as db:
            writer = connections[-1]
            pages = int(str(writer.pragma("page_count")))
            writer.pragma("max_page_count", pages + 20)
            stored: list[str] = []

            def fill() -> None:
                while len(stored) < 200:
                    db.append_message(SESSION, "user", "x" * 3000, uid=str(len(stored)))
                    stored.append(str(len(stored)))

            with pytest.raises(StoreFull, match="is full"):
                fill()
            assert stored
            assert [message["uid"] for message in db.get_messages(SESSION)] == stored
            with pytest.raises(StoreFull):
                db.append_message(SESSION, "user", "x" * 300_000)
            writer.pragma("max_page_count", 1_000_000)
            db.append_message(SESSION, "user", "room again", uid="last")
            assert [message["uid"] for message in db.get_messages(SESSION)] == [*stored, "last"]
            assert db.message_count(SESSION) == len(stored) + 1
        assert_sound(path)

    def test_file_that_may_not_grow_loses_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "small" / "state.db"
        with Child("fill-up", path, 600_000) as child:
            output = child.lines()
        # A limit on files is not a full disk: SQLite reports an I/O error.
        assert output == ["store_unavailable"] * 3 + ["kept", "written"]
        assert_sound(path)


class TestClosing:
    """The end of a store."""

    def test_closed_store_refuses_everything(self, path: Path) -> None:
        db = SessionDB(path)
        db.close()
        db.close()
        for call in (
            lambda: db.append_message(SESSION, "user", "no"),
            lambda: db.get_messages(SESSION),
            lambda: db.list_sessions_rich(),
            lambda: db.create_session("new", "cli"),
            lambda: list(db.iter_export()),
        ):
            with pytest.raises(StoreClosed):
                call()

    def test_other_handles_keep_working(self, path: Path) -> None:
        first, second = SessionDB(path), SessionDB(path)
        first.close()
        second.append_message(SESSION, "user", "still here")
        second.close()
        with SessionDB(path) as db:
            assert contents(db) == ["still here"]

    def test_closing_while_others_write_loses_nothing_acknowledged(self, path: Path) -> None:
        for _ in range(10):
            db = SessionDB(path)
            started = threading.Barrier(5)

            def write(db: SessionDB = db, started: threading.Barrier = started) -> list[int]:
                stored: list[int] = []
                started.wait(LIMIT_S)
                while True:
                    try:
                        stored.append(db.append_message(SESSION, "user", "x"))
                    except StoreClosed:
                        return stored

            tasks = [Task(write) for _ in range(4)]
            started.wait(LIMIT_S)
            wait_until(lambda db=db: db.message_count(SESSION) > 0, "the first message")  # type: ignore[misc]
            db.close()
            acknowledged = {each for task in tasks for each in task.result()}  # type: ignore[attr-defined]
            with SessionDB(path) as again:
                assert acknowledged <= {message["id"] for message in again.get_messages(SESSION)}
        assert_sound(path)

    def test_closing_while_others_read_is_harmless(self, path: Path) -> None:
        with SessionDB(path) as db:
            db.append_messages(SESSION, [{"role": "user", "content": "x"}] * 300)
        for _ in range(10):
            db = SessionDB(path)
            started = threading.Barrier(5)

            def read(db: SessionDB = db, started: threading.Barrier = started) -> None:
                started.wait(LIMIT_S)
                while True:
                    try:
                        assert len(db.get_messages(SESSION)) == 300
                    except StoreClosed:
                        return

            tasks = [Task(read) for _ in range(4)]
            started.wait(LIMIT_S)
            db.close()
            for task in tasks:
                task.result()

    def test_failed_opens_keep_no_descriptor(self, tmp_path: Path) -> None:
        path = tmp_path / "not-a-database.db"
        path.write_bytes(b"not a database at all " * 100)
        before = len(os.listdir("/dev/fd"))
        for _ in range(20):
            with pytest.raises(Exception, match="not an SQLite database"):
                SessionDB(path)
        assert len(os.listdir("/dev/fd")) == before
