"""Many writers at once: no change is lost, and a writer that waits too long gets an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hermes.config import SessionDBConfig
from hermes.errors import Conflict, StoreBusy, StoreError, StoreReadOnly, TitleTaken
from hermes.state.provider import SessionDBProvider
from tests.server.kinds import Connection, Kind
from tests.support.clock import FakeClock
from tests.support.conversations import at_once, compress, ids, session_of, start
from tests.support.stores import engine_of
from tests.support.waiting import LIMIT_S


@pytest.fixture
def held(store: SessionDBProvider, connection: Connection) -> Iterator[Connection]:
    """Another program that holds a lock on the row of session `s`."""
    start(store, "s")
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1 FROM sessions WHERE id = 's' FOR UPDATE")
    yield connection
    connection.rollback()


class TestWaiting:
    def test_writer_continues_when_the_lock_is_released(self, store: SessionDBProvider, held: Connection) -> None:
        releasing = threading.Timer(0.2, held.commit)
        releasing.start()
        store.append_message("s", "user", "hello")
        releasing.join()
        assert store.message_count("s") == 1

    def test_waiting_too_long_is_an_error_and_changes_nothing(
        self, kind: Kind, store: SessionDBProvider, held: Connection, dsn: str, settings: SessionDBConfig
    ) -> None:
        with kind.provider(dsn, settings=replace(settings, write_timeout_s=0.3)) as hasty:
            with pytest.raises(StoreBusy) as caught:
                hasty.append_message("s", "user", "hello")
            assert caught.value.retryable
            held.rollback()
            assert hasty.message_count("s") == 0
            hasty.append_message("s", "user", "hello")
        assert store.message_count("s") == 1

    @pytest.mark.parametrize("count", [1, 2, 5, 40])
    def test_deleting_other_sessions_does_not_wait(
        self, kind: Kind, store: SessionDBProvider, held: Connection, dsn: str, settings: SessionDBConfig, count: int
    ) -> None:
        with held.cursor() as cursor:
            cursor.execute(
                "INSERT INTO messages (session_id, role, uid, timestamp, content) VALUES ('s', 'user', '~u', 1.0, 'x')"
            )
        others = [f"other-{number}" for number in range(count)]
        for other in others:
            store.create_session(other, "cli", parent_session_id=others[0] if other != others[0] else None)
            store.append_messages(other, [{"role": "user", "content": "gone soon"}] * 5)
        with kind.provider(dsn, settings=replace(settings, write_timeout_s=1)) as hasty:
            assert hasty.delete_with_receipt(others).messages == 5 * count

    def test_reading_does_not_wait(self, store: SessionDBProvider, held: Connection) -> None:
        assert session_of(store, "s")["id"] == "s"


class TestConflicts:
    def test_both_writers_of_a_deadlock_succeed(self, store: SessionDBProvider) -> None:
        start(store, "a", "b")
        meeting = threading.Barrier(2)

        def work(number: int) -> None:
            first, second = ("a", "b") if number else ("b", "a")
            attempts: list[int] = []

            def change(tx: Any) -> None:
                tx.run("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = :id", id=first)
                if not attempts:
                    attempts.append(1)
                    meeting.wait(timeout=LIMIT_S)
                tx.run("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = :id", id=second)

            engine_of(store).write(change)

        at_once(2, work)
        assert [session_of(store, each)["rewind_count"] for each in ("a", "b")] == [2, 2]

    def test_session_created_by_many_threads_exists_once(self, store: SessionDBProvider) -> None:
        made = at_once(8, lambda number: store.create_session("s", "cli", model=f"m{number}"))
        assert made == ["s"] * 8
        assert store.session_count() == 1

    def test_title_set_by_many_threads_is_used_once(self, store: SessionDBProvider) -> None:
        start(store, *(f"s{number}" for number in range(6)))

        def name(number: int) -> bool:
            try:
                return store.set_session_title(f"s{number}", "The title")
            except TitleTaken:
                return False

        assert sum(at_once(6, name)) == 1

    def test_one_compression_lock_has_one_holder(self, store: SessionDBProvider) -> None:
        for turn in range(5):
            won = at_once(6, lambda number: store.try_acquire_compression_lock(f"s{turn}", f"holder {number}"))  # noqa: B023 - done before the next turn
            assert sum(won) == 1

    def test_uid_appended_by_many_threads_is_stored_once(self, store: SessionDBProvider) -> None:
        start(store, "s")
        made = at_once(8, lambda _: store.append_message("s", "user", "hello", uid="the same"))
        assert len(set(made)) == 1
        assert store.message_count("s") == 1

    def test_lasting_conflict_is_an_error(self, store: SessionDBProvider) -> None:
        start(store, "s")
        with pytest.raises(Conflict):
            engine_of(store).write(lambda tx: tx.run("INSERT INTO sessions SELECT * FROM sessions"))

    def test_work_that_fails_in_the_middle_changes_nothing(self, store: SessionDBProvider) -> None:
        start(store, "s")

        def work(tx: Any) -> None:
            tx.send("UPDATE sessions SET rewind_count = 7 WHERE id = 's'")
            tx.run("UPDATE sessions SET started_at = NULL WHERE id = 's'")

        with pytest.raises(Exception, match="null"):
            engine_of(store).write(work)
        assert session_of(store, "s")["rewind_count"] == 0


class TestReads:
    def test_read_sees_one_snapshot(self, store: SessionDBProvider) -> None:
        start(store, "s")

        def work(tx: Any) -> tuple[int, int]:
            before = tx.value("SELECT COUNT(*) FROM messages")
            at_once(1, lambda _: store.append_message("s", "user", "meanwhile"))
            return before, tx.value("SELECT COUNT(*) FROM messages")

        assert engine_of(store).read(work) == (0, 0)
        assert store.message_count("s") == 1

    def test_a_read_changes_nothing(self, store: SessionDBProvider) -> None:
        start(store, "s")
        with pytest.raises(StoreReadOnly):
            engine_of(store).read(lambda tx: tx.rows("DELETE FROM sessions"))
        assert store.session_count() == 1


class TestOrder:
    def test_ids_of_a_session_are_in_the_order_of_its_commits(self, store: SessionDBProvider) -> None:
        start(store, "s")
        seen: list[list[int]] = []
        is_over = threading.Event()

        def look() -> None:
            while not is_over.is_set():
                seen.append(ids(store.get_messages("s")))

        looking = threading.Thread(target=look)
        looking.start()
        try:
            at_once(4, lambda _: [store.append_message("s", "user", "x") for _ in range(40)])
        finally:
            is_over.set()
            looking.join(timeout=LIMIT_S)
        last = ids(store.get_messages("s"))
        assert len(last) == 160
        # Each read saw a prefix of the final rows: nothing was inserted before them later.
        assert all(each == last[: len(each)] for each in seen)

    def test_the_activity_of_a_chain_never_goes_back(self, store: SessionDBProvider) -> None:
        clock = FakeClock(1_000_000_000.0)
        store._clock = clock
        start(store, "root")
        for number in range(4):
            before = f"c{number - 1}" if number else "root"
            store.create_session(f"c{number}", "cli", parent_session_id=before, child_kind="compression")
        at_once(
            4,
            lambda number: [
                store.append_message(f"c{number}", "user", "x", timestamp=2e9 + 10 * turn + number)
                for turn in range(25)
            ],
        )
        assert session_of(store, "root")["chain_active"] == 2e9 + 10 * 24 + 3

    def test_session_pruned_during_an_append_stays_or_is_unknown(self, store: SessionDBProvider) -> None:
        for turn in range(6):
            session_id = start(store, f"s{turn}", started_at=1.0)
            store.end_session(session_id, "user_exit")

            def work(number: int, session_id: str = session_id) -> str:
                if number:
                    return f"{store.prune_sessions(1)}"
                try:
                    store.append_message(session_id, "user", "wait")
                except StoreError as exc:  # pragma: no cover - only to distinguish the errors
                    raise AssertionError from exc
                except Exception as exc:  # noqa: BLE001 - UnknownSession is what remains
                    return type(exc).__name__
                return "stored"

            outcome, pruned = at_once(2, work)
            is_there = store.get_session(session_id) is not None
            assert (outcome, pruned, is_there) in (("stored", "0", True), ("UnknownSession", "1", False))


def test_chains_written_and_settled_at_the_same_time_agree(store: SessionDBProvider) -> None:
    clock = FakeClock()
    store._clock = clock
    start(store, "root")
    compress(store, clock, "root", "child")

    def work(number: int) -> None:
        for turn in range(15):
            if number:
                store.append_message("child", "user", "x", timestamp=3e9 + turn)
            else:
                store.clear_messages("root")

    at_once(2, work)
    assert session_of(store, "root")["chain_active"] == 3e9 + 14


def test_column_added_by_another_process_does_no_harm(store: SessionDBProvider, connection: Connection) -> None:
    start(store, "s")
    for _ in range(3):
        session_of(store, "s")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE sessions ADD COLUMN later bigint DEFAULT 5")
    assert session_of(store, "s")["later"] == 5
