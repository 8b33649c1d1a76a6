"""Processes that are forked from this one, talk to it in lines, and never outlive their limit.

Only for a process that has no thread and no open store; starting a fresh interpreter for each of a thousand victims
would take longer than everything else.
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


class Voice:
    """How a forked process talks to the one that forked it; threads may share it."""

    def __init__(self, out: int, ear: int) -> None:
        self._out = out
        self._ear = ear
        self._lock = threading.Lock()

    def afresh(self) -> Voice:
        """The same voice in the child of a fork, where threads that held it no longer are."""
        return Voice(self._out, self._ear)

    def say(self, line: str) -> None:
        """Tell one line, at once and whole."""
        rest = memoryview(f"{line}\n".encode())
        with self._lock:
            while rest:
                rest = rest[os.write(self._out, rest) :]

    def hear(self, limit_s: float = LIMIT_S) -> bool:
        """Wait for a word, or until the limit; True if there was one."""
        heard, _, _ = select.select([self._ear], [], [], limit_s)
        return bool(heard) and bool(os.read(self._ear, 1))

    def become(self, program: list[str], variables: Mapping[str, str]) -> None:
        """Go on as another program, whose standard input and output are what was talked through."""
        os.dup2(self._ear, 0)
        os.dup2(self._out, 1)
        os.execve(program[0], program, variables)  # noqa: S606 - a list of arguments needs no shell


class Forked:
    """A process that runs one function and ends with it."""

    def __init__(self, work: Callable[[Voice], None]) -> None:
        own, its_out = os.pipe()
        its_ear, mouth = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(own)
            os.close(mouth)
            _run(work, Voice(its_out, its_ear))
        os.close(its_out)
        os.close(its_ear)
        self._own, self._mouth = own, mouth
        self._half = b""
        self._status: int | None = None
        self.is_silent = False
        """Whether it has said its last."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.end()

    def fileno(self) -> int:
        """What to wait on for its next words."""
        return self._own

    def tell(self) -> None:
        """Say a word to it."""
        os.write(self._mouth, b".")

    def signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self._status is None:
            os.kill(self.pid, number)

    def wait_until_stopped(self) -> None:
        """Wait until it has stopped itself."""
        wait_until(lambda: os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)[0] == self.pid, "it to stop")

    def kill(self) -> None:
        """End it as a crash or the kernel would."""
        self.signal(signal.SIGKILL)

    def heard(self) -> list[str]:
        """The whole lines that have come; what it died in the middle of saying does not count."""
        data = os.read(self._own, 1 << 20)
        self.is_silent = not data
        *lines, self._half = (self._half + data).split(b"\n")
        return [line.decode() for line in lines]

    def end(self, limit_s: float = LIMIT_S) -> int:
        """Wait for its end; answers its exit code, or minus the signal that ended it."""
        if self._status is None:
            wait_until(self._has_ended, f"process {self.pid} to end", limit_s)
            os.close(self._own)
            os.close(self._mouth)
        assert self._status is not None
        return os.waitstatus_to_exitcode(self._status)

    def _has_ended(self) -> bool:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self._status = status
        return bool(pid)


def listen(
    speakers: Sequence[Forked],
    limit_s: float,
    hear: Callable[[Forked, str], None],
    is_enough: Callable[[], bool] = lambda: False,
) -> None:
    """Hand on what processes say, until that is enough, all are silent or the time is over."""
    deadline = time.monotonic() + limit_s
    while not is_enough() and (talking := [speaker for speaker in speakers if not speaker.is_silent]):
        left = deadline - time.monotonic()
        ready, _, _ = select.select(talking, [], [], max(0.0, left))
        for speaker in ready:
            for line in speaker.heard():
                hear(speaker, line)
        if left <= 0:
            return


def words_of(speaker: Forked, limit_s: float = LIMIT_S) -> list[str]:
    """All that a process says until it is silent."""
    said: list[str] = []
    listen([speaker], limit_s, lambda _, line: said.append(line))
    assert speaker.is_silent, f"process {speaker.pid} talks on after {limit_s:g} s"
    return said


def next_word(speaker: Forked, limit_s: float = LIMIT_S) -> str:
    """The one line that a process says next."""
    said: list[str] = []
    listen([speaker], limit_s, lambda _, line: said.append(line), lambda: bool(said))
    assert len(said) == 1, f"process {speaker.pid} was to say one thing and said {said}"
    return said[0]


def kill_all(victims: Iterable[Forked]) -> None:
    """End some processes at once."""
    for victim in victims:
        victim.kill()


def _run(work: Callable[[Voice], None], voice: Voice) -> None:
    status = 1
    try:
        work(voice)
        status = 0
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else 0
    except BaseException:  # noqa: BLE001 - this process ends here, whatever happens, and says why
        traceback.print_exc()
    finally:
        os._exit(status)
