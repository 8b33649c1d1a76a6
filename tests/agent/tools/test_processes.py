"""Background commands: managed by the session that started them, and by no other."""

from __future__ import annotations

import re

import pytest

from hermes.agent.tools.shell.background_processes import MAX_ENDED, MAX_RUNNING, BackgroundProcesses
from tests.agent.tools.workbench import SESSION, Workbench, is_alive
from tests.support.clock import FakeClock
from tests.support.waiting import wait_until


def start(bench: Workbench, command: str) -> int:
    """Start a command in the background and return its process."""
    started = re.fullmatch(
        r"\[started as p\d+, pid (\d+); use the process tool to follow it\]",
        bench.call("terminal", command=command, background=True),
    )
    assert started
    return int(started[1])


def poll_until(bench: Workbench, process_id: str, ending: str) -> str:
    """Poll a process until its output has the ending, and return the output."""
    pieces: list[str] = []

    def has_ending() -> bool:
        pieces.append(bench.call("process", action="poll", process_id=process_id).rpartition("[")[0])
        return "".join(pieces).endswith(ending)

    wait_until(has_ending, f"{process_id} to write {ending!r}")
    return "".join(pieces)


def test_start_returns_at_once_and_wait_returns_the_end(bench: Workbench) -> None:
    start(bench, "echo working; exit 5")
    assert bench.call("process", action="wait", process_id="p1") == "working\n[exit code 5]"


def test_poll_returns_new_output(bench: Workbench) -> None:
    pid = start(bench, "echo one; until [ -e go ]; do sleep 0.02; done; echo two; sleep 300")
    assert poll_until(bench, "p1", "one\n") == "one\n"
    assert bench.call("process", action="poll", process_id="p1") == f"[running, pid {pid}]"
    (bench.work / "go").touch()
    assert poll_until(bench, "p1", "two\n") == "two\n"


def test_poll_splits_no_character(bench: Workbench) -> None:
    start(bench, r"printf 'a\303'; until [ -e go ]; do sleep 0.02; done; printf '\251'; sleep 300")
    assert poll_until(bench, "p1", "a\n") == "a\n"
    (bench.work / "go").touch()
    assert poll_until(bench, "p1", "é\n").endswith("é\n")


def test_unread_output_is_limited(bench: Workbench) -> None:
    start(bench, "seq 200000")
    text = bench.call("process", action="wait", process_id="p1")
    assert text.startswith("1\n2\n")
    assert text.endswith("200000\n[exit code 0]")
    assert len(text) < 50_000


def test_kill_ends_all_child_processes(bench: Workbench) -> None:
    pid = start(bench, "sleep 300 & echo $!; wait")
    child = int(poll_until(bench, "p1", "\n"))
    bench.call("process", action="kill", process_id="p1")
    assert not is_alive(pid)
    assert not is_alive(child)
    assert bench.call("process", action="list").startswith("p1  ended by SIGTERM, started")


def test_wait_times_out_and_the_process_continues(bench: Workbench) -> None:
    pid = start(bench, "sleep 300")
    assert bench.call("process", action="wait", process_id="p1", timeout_s=0.1) == f"[running, pid {pid}]"
    assert is_alive(pid)


def test_cancel_ends_only_the_waiting(bench: Workbench) -> None:
    pid = start(bench, "sleep 300")
    found = bench.context.processes.get(SESSION, "p1").process
    bench.cancellation.cancel()
    assert found.wait(60, bench.cancellation) is False
    assert is_alive(pid)


def test_list_shows_the_state_of_each_process(bench: Workbench) -> None:
    clock = FakeClock()
    bench.change(clock=clock, processes=BackgroundProcesses(clock))
    assert bench.call("process", action="list") == "No background processes in this session."
    start(bench, "exit 2")
    bench.call("process", action="wait", process_id="p1")
    pid = start(bench, "sleep 300 #\t\x1b[31m")
    clock.advance(90)
    assert bench.call("process", action="list") == (
        f"p1  exit code 2, started 90 s ago: exit 2\np2  running, pid {pid}, started 90 s ago: sleep 300 #\\t\\x1b[31m"
    )
    bench.context.processes.close(kill=True)


@pytest.mark.parametrize("action", ["poll", "wait", "kill"])
def test_missing_or_unknown_process_id_is_an_error(bench: Workbench, action: str) -> None:
    assert bench.refused("process", action=action) == f"{action} needs a process_id (use the action list to see them)"
    assert "there is no process 'p9' (this session has no processes)" in bench.refused(
        "process", action=action, process_id="p9"
    )


class TestSessions:
    def test_sessions_do_not_share_processes(self, bench: Workbench) -> None:
        pid = start(bench, "sleep 300")
        bench.change(session_id="another")
        assert bench.call("process", action="list") == "No background processes in this session."
        assert "there is no process 'p1'" in bench.refused("process", action="kill", process_id="p1")
        assert is_alive(pid)

    def test_session_is_active_while_a_process_runs(self, bench: Workbench) -> None:
        processes = bench.context.processes
        assert not processes.has_active(SESSION)
        start(bench, "sleep 300")
        assert processes.has_active(SESSION)
        assert not processes.has_active("another")
        bench.call("process", action="kill", process_id="p1")
        assert not processes.has_active(SESSION)

    def test_continued_session_keeps_its_processes(self, bench: Workbench) -> None:
        start(bench, "sleep 300")
        bench.context.processes.move(SESSION, "child")
        assert not bench.context.processes.has_active(SESSION)
        assert bench.context.processes.has_active("child")

    def test_ending_a_session_ends_only_its_processes(self, bench: Workbench) -> None:
        mine = start(bench, "sleep 300")
        bench.change(session_id="another")
        other = start(bench, "sleep 300")
        assert bench.context.processes.end(SESSION) == 1
        assert not is_alive(mine)
        assert is_alive(other)

    def test_close_returns_the_running_processes(self, bench: Workbench) -> None:
        start(bench, "true")
        bench.call("process", action="wait", process_id="p1")
        pid = start(bench, "sleep 300")
        left = bench.context.processes.close(kill=False)
        assert [(each.id, each.command, each.process.pid) for each in left] == [("p2", "sleep 300", pid)]
        assert is_alive(pid)

    def test_close_can_end_the_processes(self, bench: Workbench) -> None:
        pids = [start(bench, "trap '' TERM; sleep 300; sleep 300") for _ in range(3)]
        assert bench.context.processes.close(kill=True) == []
        assert not any(map(is_alive, pids))


class TestLimits:
    def test_number_of_running_processes_is_limited(self, bench: Workbench) -> None:
        for _ in range(MAX_RUNNING):
            start(bench, "sleep 300")
        output = bench.refused("terminal", command="sleep 300", background=True)
        assert output == "16 processes of this session are running already (kill one first)"

    def test_number_of_ended_processes_is_limited(self, bench: Workbench) -> None:
        for number in range(MAX_ENDED + 5):
            start(bench, "true")
            bench.call("process", action="wait", process_id=f"p{number + 1}")
        start(bench, "sleep 300")
        assert len(bench.context.processes.of(SESSION)) <= MAX_ENDED + 1
