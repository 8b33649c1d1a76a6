"""Background tasks: few at a time, in order, and waited for only at the end."""

from __future__ import annotations

import threading

from hermes.agent.background import BackgroundTasks
from tests.support.waiting import wait_until


def test_tasks_run_in_order_and_threads_end() -> None:
    background, done = BackgroundTasks(workers=1), list[int]()
    before = threading.active_count()
    for number in range(50):
        assert background.submit(lambda number=number: done.append(number))  # type: ignore[misc]
    assert background.settle(20)
    assert done == list(range(50))
    wait_until(lambda: threading.active_count() == before, "the worker has ended")


def test_number_of_parallel_tasks_is_limited() -> None:
    background, inside, go_on = BackgroundTasks(workers=2), threading.Semaphore(0), threading.Event()

    def work() -> None:
        inside.release()
        assert go_on.wait(20)

    for _ in range(5):
        background.submit(work)
    assert inside.acquire(timeout=20)
    assert inside.acquire(timeout=20)
    assert not inside.acquire(timeout=0.05)
    assert not background.settle(0.01)
    go_on.set()
    assert background.settle(20)


def test_failing_task_does_not_stop_others() -> None:
    background, done = BackgroundTasks(workers=1), threading.Event()

    def fail() -> None:
        raise RuntimeError("no")

    background.submit(fail)
    background.submit(done.set)
    assert background.settle(20)
    assert done.is_set()


def test_full_queue_refuses_tasks() -> None:
    background = BackgroundTasks(workers=1, max_waiting=2)
    started, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        started.set()
        go_on.wait(20)

    background.submit(wait)
    assert started.wait(20)
    assert [background.submit(lambda: None) for _ in range(5)] == [True, True, False, False, False]
    go_on.set()
    assert background.settle(20)


def test_empty_queue_settles_at_once() -> None:
    assert BackgroundTasks().settle(0)
