"""Background processes of sessions: commands that run while the conversation continues.

They are recorded in memory only: after a restart the program does not know the processes of the last run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread

from hermes.agent.tools.shell.process import Process
from hermes.clock import Clock, system_clock
from hermes.errors import InvalidValue, NotFound

MAX_RUNNING = 16
MAX_ENDED = 16
"""How many processes of a session may run, and for how many ended ones the output is kept."""


@dataclass(frozen=True, slots=True)
class BackgroundProcess:
    """A command of a session that runs in the background."""

    id: str
    command: str
    cwd: Path
    started_at: float
    process: Process


class BackgroundProcesses:
    """The background processes of all sessions of this program."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._of_sessions: dict[str, dict[str, BackgroundProcess]] = {}
        self._started = 0
        self._lock = Lock()

    def start(self, session_id: str, command: str, *, cwd: Path, environ: Mapping[str, str]) -> BackgroundProcess:
        """Start a command for a session."""
        with self._lock:
            own = self._of_sessions.setdefault(session_id, {})
            if sum(each.process.is_running for each in own.values()) >= MAX_RUNNING:
                raise InvalidValue(
                    f"{MAX_RUNNING} processes of this session are running already", hint="kill one first"
                )
            process = Process(command, cwd=cwd, environ=environ)
            try:
                process.start()
            except BaseException:
                process.end(grace_s=0)
                raise
            self._started += 1
            started = BackgroundProcess(f"p{self._started}", command, cwd, self._clock(), process)
            own[started.id] = started
            for each in [each.id for each in own.values() if not each.process.is_running][:-MAX_ENDED]:
                del own[each]
            return started

    def of(self, session_id: str) -> list[BackgroundProcess]:
        """Return the processes of a session, the oldest first, including the last ended ones."""
        with self._lock:
            return list(self._of_sessions.get(session_id, {}).values())

    def get(self, session_id: str, process_id: str) -> BackgroundProcess:
        """Return a process of a session; raise `NotFound` if it does not exist."""
        with self._lock:
            own = self._of_sessions.get(session_id, {})
            if process_id not in own:
                known = f"there are: {', '.join(own)}" if own else "this session has no processes"
                raise NotFound(f"there is no process {process_id!r}", hint=known)
            return own[process_id]

    def has_active(self, session_id: str) -> bool:
        """Whether a process of a session is running."""
        return any(each.process.is_running for each in self.of(session_id))

    def move(self, session_id: str, successor_id: str) -> None:
        """Move the processes of a session to the session that continues it."""
        with self._lock:
            self._of_sessions.setdefault(successor_id, {}).update(self._of_sessions.pop(session_id, {}))

    def end(self, session_id: str) -> int:
        """End all processes of a session, drop their records, and return how many were running."""
        with self._lock:
            own = self._of_sessions.pop(session_id, {})
        return _end_all(own.values())

    def close(self, *, kill: bool) -> list[BackgroundProcess]:
        """Return the processes that keep running when the program ends; `kill` ends them first."""
        with self._lock:
            running = [each for own in self._of_sessions.values() for each in own.values() if each.process.is_running]
        if not kill:
            return running
        _end_all(running)
        return [each for each in running if each.process.is_running]


def _end_all(processes: Iterable[BackgroundProcess]) -> int:
    """End processes in parallel, so that their grace periods do not add up, and return how many were running."""
    enders = [Thread(target=each.process.end) for each in processes if each.process.is_running]
    for each in enders:
        each.start()
    for each in enders:
        each.join()
    return len(enders)
