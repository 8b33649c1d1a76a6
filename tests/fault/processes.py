"""Other processes and threads, and waiting for them within limits."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from hermes.state.sqlite.engine import SqliteEngine
from tests.support.plainsql import flaws
from tests.support.waiting import LIMIT_S

ROOT = Path(__file__).parents[2]


class Child:
    """A process that runs one action of `child.py`, or of another module, and exchanges lines with the test."""

    module = "tests.fault.child"

    def __init__(self, what: str, *arguments: object) -> None:
        program = [sys.executable, "-m", self.module, what, *map(str, arguments)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
        self._process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=ROOT)
        self._pending = b""
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate(timeout=LIMIT_S)

    def send(self, line: str = "go") -> None:
        """Send one line to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def line(self) -> str:
        """The next line that it sends; an empty one when it is done."""
        deadline = time.monotonic() + LIMIT_S
        while b"\n" not in self._pending:
            more = self._read(deadline - time.monotonic())
            if not more:
                return ""
            self._pending += more
        text, _, self._pending = self._pending.partition(b"\n")
        return text.decode()

    def lines(self) -> list[str]:
        """All lines that it sends until it is done; an incomplete last line of a killed process is dropped."""
        found = []
        while text := self.line():
            found.append(text)
        return found

    def kill(self) -> None:
        """Kill it like a crash or the kernel would."""
        self._process.kill()

    def finish(self) -> int:
        """Wait for its end and return its exit code."""
        return self._process.wait(LIMIT_S)

    def _read(self, limit_s: float) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            assert selector.select(max(0.0, limit_s)), "a child process says nothing"
        return os.read(self._process.stdout.fileno(), 65_536)


class Task(threading.Thread):
    """A thread with a result."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._result: object = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Run the work and keep its result or error."""
        try:
            self._result = self._work()
        except BaseException as exc:  # noqa: BLE001 - raised in `result`
            self._error = exc

    def result(self) -> object:
        """The result; an error is raised here."""
        error = self.error()
        if error is not None:
            raise error
        return self._result

    def error(self) -> BaseException | None:
        """The error it ended with, if any."""
        self.join(LIMIT_S)
        assert not self.is_alive(), "a thread does not come to its end"
        return self._error


def queued(engine: SqliteEngine) -> int:
    """How many callers wait for their turn to write in this process."""
    writer = engine._shared().file().writer
    assert writer is not None
    return len(writer._queue)


@contextmanager
def one_writer_inside(engine: SqliteEngine) -> Iterator[None]:
    """Keep a write running until the block ends, so that everything queued meanwhile becomes one group."""
    inside, leave = threading.Event(), threading.Event()

    def work(_: object) -> None:
        inside.set()
        assert leave.wait(LIMIT_S)

    task = Task(lambda: engine.write(work))
    assert inside.wait(LIMIT_S)
    try:
        yield
    finally:
        leave.set()
        task.result()


def assert_sound(path: Path) -> None:
    """Assert that SQLite finds no defect in the file."""
    assert flaws(path) == []
