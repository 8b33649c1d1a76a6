"""Background processes that outlive a chat are listed at its end, however it ends."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tests.cli.chat.terminal import CTRL_C, CTRL_D, Terminal
from tests.cli.chat.test_pipes import piped
from tests.cli.conftest import Hermes
from tests.support.waiting import wait_until

COMMAND = "sleep 300 # while you are away"
START = f'!tool terminal {{"command": "{COMMAND}", "background": true}}'
NOTICE = "1 background process still running"


@pytest.fixture
def started(hermes: Hermes) -> Iterator[Hermes]:
    """A home in which commands may run; processes left running are killed afterwards."""
    hermes.home.mkdir()
    (hermes.home / "config.yaml").write_text("approvals: {mode: allow}\n")
    yield hermes
    for pid in find_pids((hermes.home / "output").read_text()):
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def find_pids(text: str) -> list[int]:
    return [int(pid) for pid in re.findall(r"pid (\d+)", text)]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def check(hermes: Hermes, text: str) -> None:
    """Assert that the output lists the started process with its command, and that it still runs."""
    (hermes.home / "output").write_text(text)
    flat = " ".join(text.split())
    assert NOTICE in flat
    (pid,) = set(find_pids(flat[flat.index(NOTICE) :]))
    assert f"pid {pid} {COMMAND}" in flat
    assert is_alive(pid)


LEAVING: dict[str, Callable[[Terminal], object]] = {
    "/quit": lambda terminal: terminal.enter("/quit"),
    "exit": lambda terminal: terminal.enter("exit"),
    "Ctrl-D": lambda terminal: terminal.type(CTRL_D),
    "two Ctrl-C": lambda terminal: terminal.type(CTRL_C).until("Press Ctrl-C again").until_prompt().type(CTRL_C),
    "SIGTERM": lambda terminal: terminal.kill(signal.SIGTERM),
    "SIGHUP": lambda terminal: terminal.kill(signal.SIGHUP),
}


@pytest.mark.parametrize("way", LEAVING)
def test_background_processes_are_listed_at_the_end_of_a_chat(started: Hermes, way: str) -> None:
    with Terminal(started) as terminal:
        terminal.enter(START).until("started as p1").until_prompt()
        LEAVING[way](terminal)
        terminal.until_over()
        check(started, terminal.text)


def test_background_processes_are_listed_after_a_single_question(started: Hermes) -> None:
    check(started, started("-Q", "-q", START).stderr)


def test_background_processes_are_listed_at_the_end_of_a_pipe(started: Hermes) -> None:
    check(started, piped(started, START).stderr.decode())


def test_background_processes_are_logged_when_the_terminal_is_gone(started: Hermes) -> None:
    log = started.home / "logs" / "hermes.log"
    with Terminal(started) as terminal:
        terminal.enter(START).until("started as p1").until_prompt()
        terminal.process.close(force=False)  # which hangs up
        wait_until(lambda: log.exists() and "pid " in log.read_text(), "the log")
    check(started, log.read_text().replace("WARNING hermes.cli.chat.chat_loop: ", ""))


def test_background_processes_are_killed_if_configured(started: Hermes) -> None:
    with (started.home / "config.yaml").open("a") as file:
        file.write("terminal: {kill_at_exit: true}\n")
    done = started("-q", START)
    (started.home / "output").write_text(done.stdout)
    (pid,) = set(find_pids(done.stdout))
    assert "background process" not in done.stderr
    assert not is_alive(pid)
