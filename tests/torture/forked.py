"""Child processes made by fork, which report to their parent in lines and never outlive their time limit.

Only for a parent that has no thread and no open store. Starting a new interpreter for each of a thousand children would
take longer than everything else.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from tests.support.waiting import LIMIT_S, wait_until


class Pipe:
    """The child's two pipes: one to report lines to the parent, one to be woken by it. Threads may share it."""

    def __init__(self, output_fd: int, input_fd: int) -> None:
        self._output = output_fd
        self._input = input_fd
        self._lock = threading.Lock()

    def after_fork(self) -> Pipe:
        """The same pipe with a new lock, for the child of another fork: its threads are gone."""
        return Pipe(self._output, self._input)

    def send_line(self, line: str) -> None:
        """Send one whole line."""
        rest = memoryview(f"{line}\n".encode())
        with self._lock:
            while rest:
                rest = rest[os.write(self._output, rest) :]

    def receive(self, limit_s: float = LIMIT_S) -> bool:
        """Wait until the parent wakes this process; False if it does not within the limit."""
        readable, _, _ = select.select([self._input], [], [], limit_s)
        return bool(readable) and bool(os.read(self._input, 1))

    def exec_program(self, program: list[str], variables: Mapping[str, str]) -> None:
        """Replace this process by another program that has these pipes as standard input and output."""
        os.dup2(self._input, 0)
        os.dup2(self._output, 1)
        os.execve(program[0], program, variables)  # noqa: S606 - a list of arguments needs no shell


class Forked:
    """A process that runs one function and ends with it."""

    def __init__(self, work: Callable[[Pipe], None]) -> None:
        own, child_output = os.pipe()
        child_input, its_input = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(own)
            os.close(its_input)
            _run(work, Pipe(child_output, child_input))
        os.close(child_output)
        os.close(child_input)
        self._own, self._its_input = own, its_input
        self._half = b""
        self._status: int | None = None
        self.is_silent = False
        """Whether the process has closed its pipe."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.end()

    def fileno(self) -> int:
        """The descriptor to wait on for the next lines."""
        return self._own

    def wake(self) -> None:
        """Wake a child that waits in `Pipe.receive`."""
        os.write(self._its_input, b".")

    def signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self._status is None:
            os.kill(self.pid, number)

    def wait_until_stopped(self) -> None:
        """Wait until it has stopped itself."""
        wait_until(lambda: os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)[0] == self.pid, "it to stop")

    def kill(self) -> None:
        """Kill it like a crash or the kernel would."""
        self.signal(signal.SIGKILL)

    def read_lines(self) -> list[str]:
        """The whole lines that have arrived; an unfinished line of a process that died is dropped."""
        data = os.read(self._own, 1 << 20)
        self.is_silent = not data
        *lines, self._half = (self._half + data).split(b"\n")
        return [line.decode() for line in lines]

    def end(self, limit_s: float = LIMIT_S) -> int:
        """Wait until the process ends; return its exit code, or minus the signal that ended it."""
        if self._status is None:
            wait_until(self._has_ended, f"process {self.pid} to end", limit_s)
            os.close(self._own)
            os.close(self._its_input)
        assert self._status is not None
        return os.waitstatus_to_exitcode(self._status)

    def _has_ended(self) -> bool:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self._status = status
        return bool(pid)


def listen(
    processes: Sequence[Forked],
    limit_s: float,
    receive: Callable[[Forked, str], None],
    is_enough: Callable[[], bool] = lambda: False,
) -> None:
    """Pass each line of the processes to a callback, until `is_enough`, all pipes are closed or the limit is over."""
    deadline = time.monotonic() + limit_s
    while not is_enough() and (talking := [process for process in processes if not process.is_silent]):
        left = deadline - time.monotonic()
        ready, _, _ = select.select(talking, [], [], max(0.0, left))
        for process in ready:
            for line in process.read_lines():
                receive(process, line)
        if left <= 0:
            return


def all_lines(process: Forked, limit_s: float = LIMIT_S) -> list[str]:
    """All lines that a process sends until it closes its pipe."""
    output: list[str] = []
    listen([process], limit_s, lambda _, line: output.append(line))
    assert process.is_silent, f"process {process.pid} talks on after {limit_s:g} s"
    return output


def next_line(process: Forked, limit_s: float = LIMIT_S) -> str:
    """The next line of a process."""
    output: list[str] = []
    listen([process], limit_s, lambda _, line: output.append(line), lambda: bool(output))
    assert len(output) == 1, f"process {process.pid} was to say one thing and said {output}"
    return output[0]


def kill_all(victims: Iterable[Forked]) -> None:
    """Kill all of these processes."""
    for victim in victims:
        victim.kill()


def _run(work: Callable[[Pipe], None], pipe: Pipe) -> None:
    status = 1
    try:
        work(pipe)
        status = 0
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else 0
    except BaseException:  # noqa: BLE001 - this process ends here, whatever happens, and says why
        traceback.print_exc()
    finally:
        os._exit(status)
