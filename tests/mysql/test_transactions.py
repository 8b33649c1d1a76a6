"""Many write at once: nobody's change is lost, and who has to wait is told for how long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pymysql  # type: ignore[import-untyped]
import pytest

from hermes.config import SessionDBConfig
from hermes.errors import Conflict, StoreBusy, StoreReadOnly, TitleTaken
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.mysql.conftest import plain, rows_of
from tests.support.conversations import at_once, ids, session_of, start
from tests.support.waiting import LIMIT_S


@pytest.fixture
def held(store: MySQLSessionDBProvider, dsn: str) -> Iterator[pymysql.Connection]:
    """Another program that holds the row of session `s` in a transaction of its own."""
    start(store, "s")
    with plain(dsn) as other:
        other.begin()
        rows_of(other, "SELECT 1 FROM sessions WHERE id = 's' FOR UPDATE")
        yield other
        other.rollback()


class TestWaiting:
    def test_ends_when_the_other_is_done(self, store: MySQLSessionDBProvider, held: pymysql.Connection) -> None:
        releasing = threading.Timer(0.2, held.commit)
        releasing.start()
        store.append_message("s", "user", "hello")
        releasing.join()
        assert store.message_count("s") == 1

    def test_for_too_long_is_told_and_changes_nothing(
        self, store: MySQLSessionDBProvider, held: pymysql.Connection, dsn: str, settings: SessionDBConfig
    ) -> None:
        with MySQLSessionDBProvider(dsn, settings=replace(settings, write_timeout_s=0.3)) as hasty:
            with pytest.raises(StoreBusy) as caught:
                hasty.append_message("s", "user", "hello")
            assert caught.value.retryable
            held.rollback()
            assert hasty.message_count("s") == 0
            hasty.append_message("s", "user", "hello")
        assert store.message_count("s") == 1

    def test_is_not_needed_for_reading(self, store: MySQLSessionDBProvider, held: pymysql.Connection) -> None:
        assert session_of(store, "s")["id"] == "s"


class TestConflicts:
    def test_two_who_wait_for_each_other_both_get_through(self, store: MySQLSessionDBProvider) -> None:
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

            store._engine.write(change)

        at_once(2, work)
        assert [session_of(store, each)["rewind_count"] for each in ("a", "b")] == [2, 2]

    def test_one_session_is_made_by_many_once(self, store: MySQLSessionDBProvider) -> None:
        made = at_once(8, lambda number: store.create_session("s", "cli", model=f"m{number}"))
        assert made == ["s"] * 8
        assert store.session_count() == 1

    def test_one_title_is_given_by_many_once(self, store: MySQLSessionDBProvider) -> None:
        start(store, *(f"s{number}" for number in range(6)))

        def name(number: int) -> bool:
            try:
                return store.set_session_title(f"s{number}", "The title")
            except TitleTaken:
                return False

        assert sum(at_once(6, name)) == 1

    def test_a_uid_is_stored_by_many_once(self, store: MySQLSessionDBProvider) -> None:
        start(store, "s")
        made = at_once(8, lambda _: store.append_message("s", "user", "hello", uid="the same"))
        assert len(set(made)) == 1
        assert store.message_count("s") == 1

    def test_what_contradicts_the_rows_for_good_is_told(self, store: MySQLSessionDBProvider) -> None:
        start(store, "s")
        with pytest.raises(Conflict):
            store._engine.write(lambda tx: tx.run("INSERT INTO sessions SELECT * FROM sessions"))

    def test_what_fails_in_the_middle_changes_nothing(self, store: MySQLSessionDBProvider) -> None:
        start(store, "s")

        def work(tx: Any) -> None:
            tx.send("UPDATE sessions SET rewind_count = 7 WHERE id = 's'")
            tx.run("UPDATE sessions SET started_at = NULL WHERE id = 's'")

        with pytest.raises(Exception, match="null"):
            store._engine.write(work)
        assert session_of(store, "s")["rewind_count"] == 0


class TestViews:
    def test_a_read_sees_one_moment(self, store: MySQLSessionDBProvider) -> None:
        start(store, "s")

        def work(tx: Any) -> tuple[int, int]:
            before = tx.value("SELECT COUNT(*) FROM messages")
            at_once(1, lambda _: store.append_message("s", "user", "meanwhile"))
            return before, tx.value("SELECT COUNT(*) FROM messages")

        assert store._engine.read(work) == (0, 0)
        assert store.message_count("s") == 1

    def test_a_read_changes_nothing(self, store: MySQLSessionDBProvider) -> None:
        start(store, "s")
        with pytest.raises(StoreReadOnly):
            store._engine.read(lambda tx: tx.rows("DELETE FROM sessions"))
        assert store.session_count() == 1


class TestOrder:
    def test_ids_of_a_session_are_in_the_order_of_its_commits(self, store: MySQLSessionDBProvider) -> None:
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
        # Whoever looked saw a beginning of what there is in the end: nothing came in between later.
        assert all(each == last[: len(each)] for each in seen)
