"""Threads of a gateway: their number, and work that never ends."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from hermes.gateway.agents.threads import WorkerThreads
from tests.support.waiting import wait_until


def test_work_waits_for_a_thread_in_its_order() -> None:
    threads, may_end, done = WorkerThreads(1, "test"), threading.Event(), list[int]()
    threads.submit(lambda: may_end.wait(20))
    jobs = [threads.submit(lambda number=number: done.append(number)) for number in range(3)]  # type: ignore[misc]
    assert (threads.running, threads.waiting) == (1, 3)
    assert jobs[1].drop()
    assert not threads.wait(0.01)
    may_end.set()
    assert threads.wait(20)
    assert done == [0, 2]
    assert not jobs[0].drop()


def test_abandoned_work_makes_place_for_other_work() -> None:
    threads, may_end, done = WorkerThreads(1, "test"), threading.Event(), threading.Event()
    hanging = threads.submit(lambda: may_end.wait(20))
    threads.submit(done.set)
    hanging.abandon()
    hanging.abandon()
    assert done.wait(20)
    assert threads.wait(20)
    assert (threads.running, threads.abandoned, threads.abandoned_total) == (0, 1, 1)
    may_end.set()
    wait_until(lambda: threads.abandoned == 0, "the thread ends")


def test_failing_work_frees_its_thread(caplog: pytest.LogCaptureFixture) -> None:
    threads, done = WorkerThreads(1, "test"), threading.Event()

    def fail() -> None:
        raise SystemExit(3)

    threads.submit(fail)
    threads.submit(done.set)
    assert done.wait(20)
    assert threads.wait(20)
    assert "SystemExit" in caplog.text


def test_hanging_work_does_not_keep_the_process() -> None:
    code = (
        "import threading; from hermes.gateway.agents.threads import WorkerThreads;"
        "WorkerThreads(1, 'test').submit(threading.Event().wait); print('end')"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "end\n")
