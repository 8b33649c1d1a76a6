"""The real command, as a process, in a home of its own."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermes_state import SessionDB

SRC = Path(__file__).parents[2] / "src"
COMMAND = (sys.executable, "-m", "hermes.cli.main")
TIMEOUT_S = 60


@dataclass(frozen=True)
class Hermes:
    """Runs `hermes` in a home that nobody else uses."""

    home: Path

    @property
    def database(self) -> Path:
        return self.home / "state.db"

    def environment(self, **variables: str) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name in ("PATH", "SYSTEMROOT", "TMPDIR")}
        own = {"HERMES_HOME": str(self.home), "PYTHONPATH": str(SRC), "LANG": "C.UTF-8", "TERM": "xterm"}
        return inherited | own | variables

    def __call__(self, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run it with pipes."""
        return subprocess.run(
            [*COMMAND, *args],
            env=self.environment(**variables),
            capture_output=True,
            encoding="utf-8",
            timeout=TIMEOUT_S,
        )

    def start(self, *args: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start it and leave the rest to the caller."""
        return subprocess.Popen([*COMMAND, *args], env=self.environment(), stderr=subprocess.PIPE, **options)

    def json(self, *args: str) -> Any:
        """Run it with `--json` and parse what it says."""
        done = self(*args, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def on_terminal(self, *args: str, columns: int = 80, **variables: str) -> list[str]:
        """Run it with a terminal as stdout; the lines it wrote there."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            [*COMMAND, *args], env=self.environment(**variables), stdout=theirs, stderr=subprocess.DEVNULL
        )
        os.close(theirs)
        written = b""
        try:
            while chunk := _read(ours):
                written += chunk
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()
            process.wait()
            os.close(ours)
        return written.decode().splitlines()

    def store(self, *sessions: Sequence[Any]) -> None:
        """Store sessions given as `(id, source, title, first words)`; the first was active last, an hour apart each."""
        now = time.time()
        with SessionDB(self.database) as db:
            for index, (session_id, source, title, words) in enumerate(sessions):
                moment = now - 3600 * index - 1800
                db.create_session(session_id, source, started_at=moment)
                db.append_messages(session_id, [{"role": "user", "content": words, "timestamp": moment}])
                if title:
                    db.set_session_title(session_id, title)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when the other side is closed
        return b""


@pytest.fixture
def hermes(tmp_path: Path) -> Hermes:
    return Hermes(tmp_path / "home")
