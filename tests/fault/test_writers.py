"""Many writers at once: processes, threads, killed ones, and foreign ones."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import apsw
import pytest

from hermes_state import SessionDB, StoreBusy
from tests.fault.child import SESSION
from tests.fault.processes import Child, Task, assert_sound
from tests.support.waiting import wait_until


def uids(path: Path) -> list[str]:
    """The uids of all messages, in their order, read by a plain connection."""
    connection = apsw.Connection(str(path))
    try:
        return [str(row[0]) for row in connection.execute("SELECT uid FROM messages ORDER BY id")]
    finally:
        connection.close()


def assert_once_and_in_order(path: Path, acknowledged: list[str]) -> None:
    """Every acknowledged message is there exactly once, after those that its writer stored before it."""
    stored = uids(path)
    assert [uid for uid in stored if uid in set(acknowledged)] == acknowledged
    assert max(Counter(stored).values()) == 1


def test_eight_processes_lose_and_double_nothing(path: Path) -> None:
    with ExitStack() as stack:
        writers = [stack.enter_context(Child("append", path, f"writer{n}", 100)) for n in range(8)]
        for writer in writers:
            assert writer.line() == "ready"
        for writer in writers:
            writer.send()
        acknowledged = [writer.lines() for writer in writers]
        assert [writer.finish() for writer in writers] == [0] * 8
    assert [len(uids) for uids in acknowledged] == [100] * 8
    for each in acknowledged:
        assert_once_and_in_order(path, each)
    assert len(uids(path)) == 800
    assert_sound(path)
    with SessionDB(path) as db:
        assert db.message_count(SESSION) == 800


def test_interrupts_at_any_moment_lose_and_double_nothing(path: Path) -> None:
    with Child("interrupted", path) as writer:
        acknowledged = writer.lines()
        assert writer.finish() == 0
    assert acknowledged[-1] == "at last"
    stored = Counter(uids(path))
    assert set(acknowledged) <= set(stored)
    assert max(stored.values()) == 1
    assert_sound(path)


def test_store_can_be_closed_in_a_signal_handler(path: Path) -> None:
    with Child("close-in-a-signal-handler", path) as writer:
        assert writer.lines() == ["store_busy", "closed", "written"]
        assert writer.finish() == 0
    assert uids(path) == ["before"]
    assert_sound(path)


def test_store_can_be_used_in_an_exit_hook(path: Path) -> None:
    with Child("write-in-an-exit-hook", path) as writer:
        assert writer.lines() == ["True"]
        assert writer.finish() == 0
    assert uids(path) == ["before"]
    assert_sound(path)


def test_sixteen_threads_lose_and_double_nothing(path: Path, db: SessionDB) -> None:
    def write(name: str) -> list[int]:
        return [db.append_message(SESSION, "user", "x", uid=f"{name}-{number}") for number in range(50)]

    tasks = {f"thread{n}": Task(lambda n=n: write(f"thread{n}")) for n in range(16)}  # type: ignore[misc]
    ids = {name: task.result() for name, task in tasks.items()}
    for name in tasks:
        assert_once_and_in_order(path, [f"{name}-{number}" for number in range(50)])
    stored = {row["uid"]: row["id"] for row in db.get_messages(SESSION)}
    assert ids == {name: [stored[f"{name}-{number}"] for number in range(50)] for name in tasks}
    assert db.message_count(SESSION) == 800


def test_threads_of_several_handles_share_one_store(path: Path) -> None:
    handles = [SessionDB(path) for _ in range(4)]

    def write(name: str, handle: SessionDB) -> None:
        for number in range(25):
            handle.append_message(SESSION, "user", "x", uid=f"{name}-{number}")
        handle.close()

    tasks = [Task(lambda n=n, handle=handle: write(f"h{n}", handle)) for n, handle in enumerate(handles)]  # type: ignore[misc]
    for task in tasks:
        task.result()
    assert len(uids(path)) == 100
    assert_sound(path)


def test_other_writer_continues_when_one_is_killed(path: Path, db: SessionDB) -> None:
    for turn in range(5):
        with Child("append", path, f"turn{turn}", "forever") as writer:
            writer.line()
            writer.send()
            writer.line()
            task = Task(lambda: [db.append_message(SESSION, "user", "survivor") for _ in range(20)])
            writer.kill()
            assert len(task.result()) == 20  # type: ignore[arg-type]


def test_foreign_writer_that_takes_too_long_makes_the_store_busy(path: Path) -> None:
    with SessionDB(path, write_timeout_s=0.5) as db, Child("hold-transaction", path, 30) as foreign:
        assert foreign.line() == "held"
        with pytest.raises(StoreBusy) as busy:
            db.append_message(SESSION, "user", "not now", uid="withdrawn")
        assert busy.value.retryable
        foreign.send()
        assert foreign.line() == "released"
        db.append_message(SESSION, "user", "now", uid="later")
    assert uids(path) == ["later"]


def test_busy_store_names_the_foreign_process(path: Path) -> None:
    with SessionDB(path, write_timeout_s=0.5) as db, Child("hold-transaction", path, 30) as foreign:
        assert foreign.line() == "held"
        with pytest.raises(StoreBusy, match=f"pid {foreign.pid}\\b"):
            db.append_message(SESSION, "user", "not now")


def test_lock_held_longer_than_the_budget_makes_the_store_busy(path: Path) -> None:
    with SessionDB(path, write_timeout_s=0.5) as db, Child("hold-lock", path) as other:
        assert other.line() == "held"
        started = time.monotonic()
        tasks = [Task(lambda n=n: db.append_message(SESSION, "user", "no", uid=f"no-{n}")) for n in range(4)]  # type: ignore[misc]
        errors = [task.error() for task in tasks]
        assert time.monotonic() - started < 5
        assert [type(error) for error in errors] == [StoreBusy] * 4
        assert all(f"pid {other.pid}" in str(error) for error in errors)
        other.send()
        assert other.line() == "released"
        db.append_message(SESSION, "user", "now", uid="later")
    assert uids(path) == ["later"]


def test_each_caller_has_its_own_time_limit(path: Path) -> None:
    with SessionDB(path, write_timeout_s=0.3) as hasty, SessionDB(path) as patient, Child("hold-lock", path) as other:
        assert other.line() == "held"
        waiting = Task(lambda: patient.append_message(SESSION, "user", "I wait", uid="patient"))
        with pytest.raises(StoreBusy):
            hasty.append_message(SESSION, "user", "I do not", uid="hasty")
        other.send()
        assert waiting.result()
    assert uids(path) == ["patient"]


def test_reading_and_opening_work_while_another_process_writes(path: Path) -> None:
    with Child("hold-lock", path) as other, Child("hold-transaction", path, 30) as foreign:
        assert (other.line(), foreign.line()) == ("held", "held")
        with SessionDB(path, write_timeout_s=0.1) as db:
            assert db.get_session(SESSION) is not None
            assert [row["id"] for row in db.list_sessions_rich()] == [SESSION]


def test_store_can_be_closed_while_its_writer_still_waits(path: Path) -> None:
    with Child("hold-lock", path) as other:
        assert other.line() == "held"
        with SessionDB(path, write_timeout_s=0.1) as db, pytest.raises(StoreBusy):
            db.append_message(SESSION, "user", "no")
        other.send()
        assert other.line() == "released"
        with SessionDB(path) as again:
            assert again.append_message(SESSION, "user", "yes")


def test_writers_take_turns(path: Path, db: SessionDB) -> None:
    """A busy process does not keep another one out."""
    with Child("append", path, "greedy", "forever") as greedy:
        greedy.line()
        greedy.send()
        greedy.line()
        for number in range(20):
            db.append_message(SESSION, "user", "mine", uid=f"mine-{number}")
        greedy.kill()
        greedy.lines()
    wait_until(lambda: len(uids(path)) > 20, "both to have written")
    assert_once_and_in_order(path, [f"mine-{number}" for number in range(20)])
