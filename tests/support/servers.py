"""Database servers for tests: one of each kind for a whole run, private, and removed when the run is over.

A run is one call of pytest; its workers share the servers that the first of them starts. Every server has a guard, a
process that lives until the run ends in any way: `python -m tests.support.servers <kind> <directory> <pid of the run>`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from tests.support import mysql, postgres
from tests.support.privileges import unprivileged
from tests.support.waiting import LIMIT_S, wait_until

RUN = "HERMES_TEST_RUN"
"""The environment variable with the directory of the run."""
START_S = 300.0
"""A server may have to be downloaded first."""
GUARD_PAUSE_S = 0.2

T = TypeVar("T")

_guards: dict[int, subprocess.Popen[bytes]] = {}
"""The guards that this process has started."""


class NoServer(Exception):
    """No server of this kind is available."""

    def __init__(self, kind: Kind, reason: str) -> None:
        super().__init__(reason)
        self.title = kind.title


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of server: how an existing one is configured, and how a private one is found and run."""

    name: str
    title: str
    variable: str
    """The environment variable with the DSN of an existing server."""
    find: Callable[[], Path]
    """The directory of its programs, downloaded if necessary; raises OSError if they are not available."""
    prepare: Callable[[Path, Path], None]
    """Creates an empty database in a directory; raises OSError if that fails."""
    command: Callable[[Path, Path, dict[str, str]], list[str]]
    """The command that starts it, with additional settings."""
    is_up: Callable[[Path, Path], bool]
    dsn: Callable[[Path], str]
    stop_signal: signal.Signals = signal.SIGINT
    """The signal that stops it at once but in order."""


KINDS = {
    "postgresql": Kind(
        "postgresql",
        "PostgreSQL",
        "HERMES_TEST_PG_DSN",
        postgres.find,
        postgres.prepare,
        postgres.command,
        postgres.is_up,
        postgres.dsn,
    ),
    "mysql": Kind(
        "mysql",
        "MariaDB",
        "HERMES_TEST_MYSQL_DSN",
        mysql.find,
        mysql.prepare,
        mysql.command,
        mysql.is_up,
        mysql.dsn,
        signal.SIGTERM,
    ),
}


def are_required() -> bool:
    """Whether a missing server is a failure."""
    return os.environ.get("CI") == "true" or os.environ.get("HERMES_REQUIRE_SERVERS") == "1"


def skip_or_fail(reason: str) -> NoReturn:
    """Skip a test that lacks something; fail it where nothing may be missing."""
    import pytest  # neither a guard nor a benchmark is a test

    (pytest.fail if are_required() else pytest.skip)(reason)


def server_or_skip(get: Callable[[], T]) -> T:
    """Return what needs a server; without one, skip the test."""
    try:
        return get()
    except NoServer as exc:
        skip_or_fail(f"there is no {exc.title}: {exc}")


def begin_run() -> Path:
    """Create the directory of a run, which child processes can find and every user can enter."""
    place = Path(tempfile.mkdtemp(prefix="hermes-"))
    place.chmod(0o755)
    (place / "pid").write_text(str(os.getpid()))
    os.environ[RUN] = str(place)
    return place


def end_run(place: Path) -> None:
    """Stop the servers of a run."""
    for note in place.glob("*.json"):
        guard = _read(note).get("guard")
        if guard is not None:
            _stop_guard(guard)
    shutil.rmtree(place, ignore_errors=True)
    os.environ.pop(RUN, None)


def missing(place: Path) -> Iterator[str]:
    """A line for every kind of server that tests needed and that was not available."""
    for note in sorted(place.glob("*.json")):
        if (reason := _read(note).get("reason")) is not None:
            yield f"{KINDS[note.stem].title} was not tested: {reason}"


def dsn_of(name: str) -> str:
    """The DSN of the run's server of a kind, which is started if necessary; raise `NoServer`."""
    kind = KINDS[name]
    if given := os.environ.get(kind.variable):
        return given
    place = Path(os.environ[RUN])
    note = place / f"{name}.json"
    with open(place / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not note.exists():
            note.write_text(json.dumps(_start(kind, place)))
    server = _read(note)
    if "reason" in server:
        raise NoServer(kind, server["reason"])
    return str(server["dsn"])


@contextlib.contextmanager
def private_server(name: str, **settings: str) -> Iterator[Server]:
    """A server for one test, which the test may stop, start and starve."""
    server = Server(KINDS[name], Path(tempfile.mkdtemp(prefix="hermes-")), settings)
    try:
        server.prepare()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.place, ignore_errors=True)


class Server:
    """A private server in its own directory."""

    def __init__(
        self, kind: Kind, place: Path, settings: dict[str, str], environment: dict[str, str] | None = None
    ) -> None:
        self.place = place
        self._kind = kind
        self._settings = settings
        self._environment = environment
        self._programs = Path()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """The DSN."""
        return self._kind.dsn(self.place)

    @property
    def pid(self) -> int:
        """The pid of its process, while it runs."""
        assert self._process is not None
        return self._process.pid

    def prepare(self) -> None:
        """Create an empty database."""
        give_to_server(self.place)
        try:
            self._programs = self._kind.find()
            self._kind.prepare(self._programs, self.place)
        except OSError as exc:
            raise NoServer(self._kind, str(exc)) from None

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        with open(self.place / "log", "ab") as log:
            self._process = subprocess.Popen(
                self._kind.command(self._programs, self.place, self._settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.place,
                env=self._environment,
                **unprivileged(),
            )
        process = self._process
        wait_until(
            lambda: process.poll() is not None or self._kind.is_up(self._programs, self.place),
            f"{self._kind.title} to start",
        )
        if process.poll() is not None:
            log_text = (self.place / "log").read_text(errors="replace")
            raise NoServer(self._kind, f"it does not start: {log_text[-500:]}")

    def stop(self, how: signal.Signals | None = None) -> None:
        """Stop it: at once but in order, or with SIGKILL like a power cut."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        if how is signal.SIGKILL:
            postgres.kill_all(process.pid)
            process.wait()
            return
        process.send_signal(how or self._kind.stop_signal)
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def give_to_server(place: Path) -> None:
    """Let a server use a directory, because it does not run as root."""
    place.chmod(0o755)
    if owner := unprivileged():
        os.chown(place, owner["user"], owner["group"])


def _start(kind: Kind, place: Path) -> dict[str, Any]:
    """Start a guard, and with it a server; return its properties for the other workers."""
    own = place / kind.name
    own.mkdir()
    guard = subprocess.Popen(
        [sys.executable, "-m", "tests.support.servers", kind.name, str(own), str(_run_pid(place))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    _guards[guard.pid] = guard
    ready = own / "ready.json"
    wait_until(lambda: ready.exists() or guard.poll() is not None, f"{kind.title} to be there", START_S)
    if not ready.exists():
        return {"reason": f"its guard ended with code {guard.returncode}"}
    return {**_read(ready), "guard": guard.pid}


def _run_pid(place: Path) -> int:
    return int((place / "pid").read_text())


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _stop_guard(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    if (guard := _guards.pop(pid, None)) is not None:
        guard.wait(timeout=LIMIT_S)
    else:
        wait_until(lambda: not _is_alive(pid), "a server to stop")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _guard(name: str, place: Path, run_pid: int) -> None:
    """Run a server until the run is over, or until it gets a signal."""
    is_over: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: is_over.append(number))
    server = Server(KINDS[name], place, {})
    try:
        server.prepare()
        server.start()
        _publish(place, {"dsn": server.dsn})
        while not is_over and _is_alive(run_pid):
            time.sleep(GUARD_PAUSE_S)
    except NoServer as exc:
        _publish(place, {"reason": str(exc)})
    finally:
        server.stop()


def _publish(place: Path, what: dict[str, str]) -> None:
    draft = place / "ready.draft"
    draft.write_text(json.dumps(what))
    draft.replace(place / "ready.json")


if __name__ == "__main__":
    _guard(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
