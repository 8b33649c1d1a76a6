"""Commands in real shells: environment, output, and that all child processes end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.agent.models.model import Cancellation
from hermes.agent.tools.shell.process import Process
from tests.agent.tools.workbench import Workbench, is_alive
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[3]


def number_in(file: Path) -> int:
    """Wait for the number that a command writes into a file."""
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"), f"{file.name} to be written")
    return int(file.read_text())


class Starter:
    """Starts commands in a directory, and ends them at the end of the test."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._running: list[Process] = []

    def __call__(self, command: str) -> Process:
        self._running.append(Process(command, cwd=self.place, environ={"PATH": os.environ["PATH"]}))
        self._running[-1].start()
        return self._running[-1]

    def end(self) -> None:
        """End all commands that are running."""
        for each in self._running:
            each.end(grace_s=0)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Starter]:
    """Starts commands."""
    starter = Starter(tmp_path)
    yield starter
    starter.end()


class TestAnswer:
    def test_command_returns_output_and_exit_code(self, bench: Workbench) -> None:
        assert bench.call("terminal", command="echo hello; exit 3") == "hello\n[exit code 3]"

    def test_both_streams_are_in_the_order_of_writing(self, bench: Workbench) -> None:
        assert bench.call("terminal", command="echo one; echo two >&2; echo three") == "one\ntwo\nthree\n[exit code 0]"

    def test_output_without_a_final_line_break_gets_one(self, bench: Workbench) -> None:
        assert bench.call("terminal", command="printf hello") == "hello\n[exit code 0]"

    def test_command_without_output_returns_its_exit_code(self, bench: Workbench) -> None:
        assert bench.call("terminal", command="true") == "[exit code 0]"

    def test_killed_shell_reports_its_signal(self, bench: Workbench) -> None:
        assert bench.call("terminal", command="kill -9 $$") == "[ended by SIGKILL]"

    def test_binary_output_becomes_valid_text(self, bench: Workbench) -> None:
        assert (
            bench.call("terminal", command=r"printf 'a\377\000\200b\303\251'") == "a\ufffd\ufffd\ufffdbé\n[exit code 0]"
        )

    def test_stdin_is_empty(self, bench: Workbench) -> None:
        assert bench.call("terminal", command="cat; read line; echo $?") == "1\n[exit code 0]"

    def test_empty_command_is_refused(self, bench: Workbench) -> None:
        assert "there is no command to run" in bench.refused("terminal", command="  ")
        assert "NUL" in bench.refused("terminal", command="echo \0")

    def test_failing_command_is_not_a_tool_error(self, bench: Workbench) -> None:
        assert bench.call("terminal", command="hermes-no-such-program 2>/dev/null") == "[exit code 127]"


class TestMuchOutput:
    def test_long_output_keeps_both_ends(self, bench: Workbench) -> None:
        text = bench.call("terminal", command="echo first; seq 100000; echo last")
        assert text.startswith("first\n1\n2\n")
        assert text.endswith("99999\n100000\nlast\n[exit code 0]")
        assert "bytes of output omitted" in text
        assert len(text) <= 50_000

    def test_memory_does_not_grow_with_the_output(self, bench: Workbench) -> None:
        tracemalloc.start()
        try:
            bench.call("terminal", command="yes | head -c 100000000")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 2_000_000

    def test_endless_output_is_ended_by_the_time_limit(self, bench: Workbench) -> None:
        result = bench.run("terminal", '{"command": "yes", "timeout_s": 0.3}')
        assert result.is_error
        assert "because it took more than 0.3 s" in result.text.splitlines()[-1]


class TestEnd:
    def test_time_limit_leaves_no_processes(self, bench: Workbench) -> None:
        marked = "sleep 31415.9265"
        result = bench.run("terminal", f'{{"command": "{marked} & ({marked}; true) & {marked}", "timeout_s": 0.5}}')
        assert result.is_error
        running = subprocess.run(["ps", "-A", "-o", "stat=,args="], capture_output=True, text=True, timeout=20).stdout
        assert [line for line in running.splitlines() if marked in line and not line.startswith("Z")] == []

    def test_child_processes_end_with_the_command(self, started: Starter) -> None:
        running = started("sleep 300 & echo $! > child; (sleep 300; true) & echo $! > other; wait")
        numbers = [running.pid, number_in(started.place / "child"), number_in(started.place / "other")]
        running.end()
        assert not any(map(is_alive, numbers))

    def test_process_that_ignores_sigterm_is_killed(self, started: Starter) -> None:
        running = started("trap '' TERM; echo $$ > shell; while true; do sleep 0.05; done")
        number_in(started.place / "shell")
        running.end(grace_s=0.1)
        assert not is_alive(running.pid)
        assert running.exit_code == -signal.SIGKILL

    def test_process_gets_time_to_clean_up(self, started: Starter) -> None:
        running = started("trap 'echo bye; exit 7' TERM; echo $$ > shell; while true; do sleep 0.05; done")
        number_in(started.place / "shell")
        running.end()
        assert "bye\n" in running.output.take(is_last=True)
        assert running.exit_code == 7

    def test_end_of_an_ended_process_does_nothing(self, started: Starter) -> None:
        running = started("exit 3")
        assert running.wait(20, Cancellation())
        running.end()
        assert running.exit_code == 3

    def test_cancel_ends_a_command_at_once(self, bench: Workbench) -> None:
        def cancel() -> None:
            number_in(bench.work / "child")
            bench.cancellation.cancel()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        result = bench.run("terminal", '{"command": "trap true TERM; sleep 300 & echo $! > child; wait; wait"}')
        canceller.join()
        assert result.is_error
        assert result.text == "[ended, because the user stopped this turn]"
        assert not is_alive(number_in(bench.work / "child"))

    def test_keyboard_interrupt_ends_the_command_and_is_raised(self, bench: Workbench) -> None:
        command = "sleep 300 & echo $! > child; wait"
        program = [sys.executable, "-m", "tests.agent.tools.run_command", str(bench.work.parent), command]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
        with subprocess.Popen(program, cwd=ROOT, env=env) as agent:
            child = number_in(bench.work / "child")
            agent.send_signal(signal.SIGINT)
            assert agent.wait(20) == 130
        assert not is_alive(child)

    def test_processes_left_by_the_shell_are_ended(self, bench: Workbench) -> None:
        text = bench.call("terminal", command="sleep 300 & echo $! > child; echo done")
        assert (
            text == "done\n[exit code 0; its remaining child processes were ended: use background to keep them running]"
        )
        assert not is_alive(number_in(bench.work / "child"))

    def test_writing_process_left_by_the_shell_does_not_delay_the_call(self, bench: Workbench) -> None:
        text = bench.call("terminal", command="yes & echo $! > child; exit 4")
        assert "[exit code 4; its remaining child processes" in text
        assert not is_alive(number_in(bench.work / "child"))

    def test_daemon_that_holds_the_output_does_not_delay_the_call(self, bench: Workbench) -> None:
        program = "import os, time; os.setsid(); print(os.getpid(), file=open('daemon', 'w')); time.sleep(300)"
        (bench.work / "daemon.py").write_text(program)
        text = bench.call(
            "terminal", command=f"{sys.executable} daemon.py & until [ -s daemon ]; do sleep 0.02; done; echo done"
        )
        daemon = number_in(bench.work / "daemon")
        was_alive = is_alive(daemon)
        os.kill(daemon, signal.SIGKILL)
        assert was_alive
        assert text == "done\n[exit code 0]"


class TestPlace:
    def test_command_runs_in_the_directory_of_the_session(self, bench: Workbench) -> None:
        assert bench.call("terminal", command="pwd") == f"{bench.work}\n[exit code 0]"

    def test_cd_lasts_for_one_command(self, bench: Workbench) -> None:
        (bench.work / "sub").mkdir()
        bench.call("terminal", command="cd sub; pwd")
        assert bench.call("terminal", command="pwd") == f"{bench.work}\n[exit code 0]"

    def test_cwd_lasts_for_later_commands(self, bench: Workbench) -> None:
        (bench.work / "sub").mkdir()
        bench.call("terminal", command="pwd", cwd="sub")
        assert bench.call("terminal", command="pwd") == f"{bench.work}/sub\n[exit code 0]"
        assert bench.call("terminal", command="pwd", cwd="..") == f"{bench.work}\n[exit code 0]"

    def test_cwd_of_a_denied_command_does_not_last(self, bench: Workbench) -> None:
        bench.change(approve=None)
        bench.refused("terminal", command="pwd", cwd="/")
        assert bench.call("terminal", command="pwd") == f"{bench.work}\n[exit code 0]"

    def test_missing_cwd_is_an_error(self, bench: Workbench) -> None:
        assert "there is no directory" in bench.refused("terminal", command="pwd", cwd="missing")


class TestEnvironment:
    def test_command_gets_only_harmless_variables(self, bench: Workbench) -> None:
        bench.change(
            environ={
                **bench.context.environ,
                "OPENAI_API_KEY": "k1",
                "GH_TOKEN": "k2",
                "AWS_SECRET_ACCESS_KEY": "k3",
                "DATABASE_URL": "k4",
                "SSH_AUTH_SOCK": "k5",
                "BASH_ENV": "k6",
                "LD_PRELOAD": "k7",
                "LC_API_TOKEN": "k8",
                "LC_ALL": "C.UTF-8",
                "TZ": "UTC",
            }
        )
        text = bench.call("terminal", command="env")
        names = {line.partition("=")[0] for line in text.splitlines() if "=" in line}
        assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {"PATH", "HOME", "LC_ALL", "TZ"}

    def test_command_gets_variables_passed_by_name(self, bench: Workbench) -> None:
        bench.change(
            environ={**bench.context.environ, "GH_TOKEN": "k2", "GH_TOKEN_2": "k3"}, env_passthrough=["GH_TOKEN"]
        )
        text = bench.call("terminal", command="env | grep GH_")
        assert text == "GH_TOKEN=k2\n[exit code 0]"
