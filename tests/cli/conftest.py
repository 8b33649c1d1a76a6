"""The real `hermes` command as a process in its own home."""

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
HOUR, DAY = 3600, 86_400

STAGING = "20261115_141500_5be01f77"
WIKI = "20261114_143022_e5f60718"
KYOTO = "20261112_101500_f9a8b7c6"
"""The sessions of `talks`."""


@dataclass(frozen=True)
class Hermes:
    """Runs `hermes` in a home of its own."""

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
        """Start it and return the process."""
        return subprocess.Popen([*COMMAND, *args], env=self.environment(), stderr=subprocess.PIPE, **options)

    def json(self, *args: str) -> Any:
        """Run it with `--json` and parse its output."""
        done = self(*args, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def on_terminal(self, *args: str, columns: int = 80, **variables: str) -> list[str]:
        """Run it with a terminal as stdout and return the lines that it wrote."""
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
    except OSError:  # Linux raises this when the other side is closed
        return b""


def store_session(
    hermes: Hermes, session_id: str, source: str, title: str | None, age_s: float, *contents: tuple[str, Any]
) -> None:
    """Store a session that began so long ago; its messages are a minute apart. A tool is named as `tool:name`."""
    at = time.time() - age_s
    with SessionDB(hermes.database) as db:
        db.create_session(session_id, source, started_at=at)
        messages = []
        for number, (speaker, content) in enumerate(contents):
            role, _, tool = speaker.partition(":")
            messages.append(
                {"role": role, "content": content, "timestamp": at + 60 * number, "tool_name": tool or None}
            )
        db.append_messages(session_id, messages)
        if title:
            db.set_session_title(session_id, title)


def search_ids(hermes: Hermes, *args: str) -> list[int]:
    """Return the ids of the messages that a search finds."""
    return [item["id"] for item in hermes.json("sessions", "search", *args)["items"]]


@pytest.fixture
def hermes(tmp_path: Path) -> Hermes:
    return Hermes(tmp_path / "home")


@pytest.fixture
def talks(hermes: Hermes) -> Hermes:
    """Three sessions from three days."""
    store_session(
        hermes,
        KYOTO,
        "discord",
        "京都旅行の計画",
        3.5 * DAY,
        ("user", "来月の京都旅行の計画を立てるのを手伝ってください"),
        ("assistant", "京都なら嵐山と伏見稲荷がおすすめです。🍁"),
    )
    store_session(
        hermes, WIKI, "cli", None, 30 * HOUR, ("user", "Write a docker compose file for the deploy of the wiki")
    )
    store_session(
        hermes,
        STAGING,
        "telegram",
        "staging deploy",
        7.5 * HOUR,
        ("user", "The docker deploy to staging\n\n   fails again"),
        ("tool:terminal", "Error response from daemon: no space left on device"),
        ("assistant", "The disk is full. docker builder prune frees 38 GB; the deploy runs through then."),
    )
    return hermes
