"""A command in a shell, in its own process group, which ends as a whole."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from hermes.agent.models.model import Cancellation
from hermes.agent.tools.shell import process_group
from hermes.agent.tools.shell.output import Output

if TYPE_CHECKING:
    from subprocess import Popen

SHELLS = ("/bin/bash", "/bin/sh")
GRACE_S = 2.0
"""How long a process may take to end after SIGTERM."""

_POLL_S = 0.05
_DRAIN_S = 0.2
_READ_BYTES = 65_536


class Process:
    """A command and all its child processes; when its shell ends, the remaining ones are ended too."""

    def __init__(self, command: str, *, cwd: Path, environ: Mapping[str, str]) -> None:
        self.output = Output()
        self.has_left_some = False
        """Whether child processes were still running when the shell ended."""
        self._command, self._cwd, self._environ = command, cwd, environ
        self._popen: Popen[bytes] | None = None
        self._failure: OSError | None = None
        self._is_ending = False
        self._is_begun = False
        self._has_started = Event()
        self._has_ended = Event()

    def start(self) -> None:
        """Start the command; a caller that is interrupted here must call `end`, because the command may be running."""
        self._is_begun = True
        # On its own thread: an interrupt, which only the main thread gets, would lose track of the new process.
        Thread(target=self._live, name="process", daemon=True).start()
        self._has_started.wait()
        if self._failure is not None:
            raise self._failure

    @property
    def pid(self) -> int:
        """The process id of the shell, and the id of the group."""
        assert self._popen is not None
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        """Whether the command is running."""
        return not self._has_ended.is_set()

    @property
    def exit_code(self) -> int | None:
        """The exit code of the shell, or the negative number of a signal; None while it runs."""
        return None if self.is_running or self._popen is None else self._popen.returncode

    def wait(
        self, timeout_s: float, cancellation: Cancellation, show_output: Callable[[str], None] | None = None
    ) -> bool:
        """Wait for the end and return whether it came; a cancellation or the time limit ends only the waiting."""
        deadline = time.monotonic() + timeout_s
        while not self._has_ended.wait(max(0.0, min(_POLL_S, deadline - time.monotonic()))):
            if cancellation.is_cancelled or time.monotonic() >= deadline:
                return False
            if show_output is not None:
                show_output(self.output.tail)
        return True

    def end(self, grace_s: float = GRACE_S) -> None:
        """End the whole group: send SIGTERM, and SIGKILL after the grace period."""
        self._is_ending = True
        if not self._is_begun or not self._has_started.wait(GRACE_S) or not self.is_running:
            return  # it does not run, and the id may belong to another process by now
        process_group.send(self.pid, signal.SIGTERM)
        if not self._has_ended.wait(grace_s):
            process_group.send(self.pid, signal.SIGKILL)
            # Do not wait longer for a process that the kernel cannot end, such as one that waits for a dead disk.
            self._has_ended.wait(GRACE_S)

    def _live(self) -> None:
        try:
            self._popen = _start(self._command, self._cwd, self._environ)
        except OSError as exc:
            self._failure = exc
            self._has_ended.set()
            return
        finally:
            self._has_started.set()
        if self._is_ending:
            process_group.send(self.pid, signal.SIGKILL)
        self._watch(self._popen)

    def _watch(self, popen: Popen[bytes]) -> None:
        try:
            self._read(popen)
        finally:
            popen.wait()
            self._end_rest()
            assert popen.stdout is not None
            popen.stdout.close()
            self._has_ended.set()

    def _end_rest(self) -> None:
        """End the remaining child processes; while one is running, no other process can get the group's id."""
        if not process_group.is_running(self.pid):
            return
        self.has_left_some = not self._is_ending
        process_group.send(self.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while process_group.is_running(self.pid) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        process_group.send(self.pid, signal.SIGKILL)

    def _read(self, popen: Popen[bytes]) -> None:
        """Read until the end of the output or of the shell: a child process may keep the output open forever."""
        from selectors import EVENT_READ, DefaultSelector

        assert popen.stdout is not None
        fd = popen.stdout.fileno()
        deadline = math.inf
        with DefaultSelector() as selector:
            selector.register(fd, EVENT_READ)
            while time.monotonic() < deadline:
                # Checked before reading, so that the last output of the shell is read for certain.
                has_exited = popen.poll() is not None
                if selector.select(0 if has_exited else _POLL_S):
                    data = os.read(fd, _READ_BYTES)
                    if not data:
                        return
                    self.output.add(data)
                elif has_exited:
                    return
                if has_exited:
                    deadline = min(deadline, time.monotonic() + _DRAIN_S)


def _start(command: str, cwd: Path, environ: Mapping[str, str]) -> Popen[bytes]:
    from subprocess import DEVNULL, PIPE, STDOUT, Popen

    shell = next((each for each in SHELLS if os.access(each, os.X_OK)), "sh")
    return Popen(
        [shell, "-c", command],
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        cwd=cwd,
        env=dict(environ),
        start_new_session=True,
    )
