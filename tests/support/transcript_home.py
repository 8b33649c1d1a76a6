"""The home directory in which the commands of a transcript run."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from hermes_state import SessionDB

ROOT = Path(__file__).resolve().parents[2]
NOW = 1794823200
"""When the first command of a transcript starts: Monday 2026-11-16 10:00:00 UTC."""
MINUTE, HOUR, DAY = 60, 3600, 86_400


@dataclass
class Home:
    """A home directory for the commands of a transcript."""

    SHOWN: ClassVar[str] = "/home/ada"
    """Its path as the pages show it."""

    path: Path
    resources: ExitStack
    """Closed after the last command."""
    shown: dict[str, str] = field(default_factory=dict)
    """Texts of this run, with what the pages show instead."""
    seconds: float = 0
    """How long after `NOW` the next command starts."""

    @classmethod
    def create(cls, path: Path, resources: ExitStack) -> Home:
        """A home without a store."""
        home = cls(path, resources, {str(path): cls.SHOWN})
        for directory in (home.work, home.bin):
            directory.mkdir()
        return home

    @property
    def work(self) -> Path:
        """The directory in which commands run."""
        return self.path / "work"

    @property
    def bin(self) -> Path:
        """The directory of the program."""
        return self.path / "bin"

    @property
    def hermes(self) -> Path:
        """The Hermes home."""
        return self.path / ".hermes"

    @property
    def database(self) -> Path:
        return self.hermes / "state.db"

    def environment(self) -> dict[str, str]:
        """The variables of a command: a terminal without colours, and nothing of the caller's own."""
        path = f"{self.bin}:{os.environ.get('PATH', os.defpath)}"
        own = {"HOME": str(self.path), "PATH": path, "PYTHONPATH": str(ROOT / "src")}
        return own | {"TERM": "dumb", "NO_COLOR": "1", "LANG": "C.UTF-8", "TZ": "UTC"}

    def entry(self, program: str, seconds: float) -> list[str]:
        """The command that runs `hermes` or `python` so many seconds after `NOW`."""
        at = f"{NOW + seconds:.0f}"
        return [sys.executable, str(ROOT / "tools" / "hermes_at.py"), at, at, program]

    def run(self, age_s: float, *arguments: str, stdin: str = "") -> None:
        """Run `hermes` so many seconds before `NOW`."""
        command, environment = [*self.entry("hermes", -age_s), *arguments], self.environment()
        done = subprocess.run(command, env=environment, cwd=self.work, input=stdin, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def configure(self, text: str) -> None:
        """Write config.yaml."""
        self.hermes.mkdir(mode=0o700, exist_ok=True)
        (self.hermes / "config.yaml").write_text(text)
        (self.hermes / "config.yaml").chmod(0o600)

    def open(self, age_s: float = 0) -> SessionDB:
        """The store, with a clock that stands still."""
        return SessionDB(self.database, clock=lambda: NOW - age_s)


def keep(
    home: Home, session_id: str, source: str, title: str | None, age_s: float, *turns: tuple[str, Any], **fields: Any
) -> None:
    """Store a session whose messages are a minute apart and end `age_s` ago. A tool is named as `tool:name`."""
    start = NOW - age_s - MINUTE * (len(turns) - 1)
    with home.open(age_s) as db:
        db.create_session(session_id, source, started_at=start, **fields)
        messages = []
        for number, (speaker, content) in enumerate(turns):
            role, _, tool = speaker.partition(":")
            at = start + MINUTE * number
            messages.append({"role": role, "content": content, "timestamp": at, "tool_name": tool or None})
        db.append_messages(session_id, messages)
        if title:
            db.set_session_title(session_id, title)
