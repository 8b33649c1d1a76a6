"""Shortcuts to read the findings of a checkup, and to follow its hints."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes.state.engine import Report
from hermes.state.maintenance.findings import Finding, Status
from hermes.state.sqlite.checks import counters, index, integrity, orphans, sizes
from hermes.state.sqlite.checks.checkup import examine
from hermes.state.sqlite.repair.repair import repair
from hermes_state import SessionDB

SRC = Path(__file__).parents[2] / "src"
PROGRAMS = Path(sys.executable).parent


def give_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a quick checkup read all of a small store: its findings must not depend on how busy the machine is."""
    limits = {
        sizes: "MEASURING_S",
        integrity: "READING_S",
        orphans: "LOOKING_S",
        counters: "COUNTING_S",
        index: "COMPARING_S",
    }
    for module, name in limits.items():
        monkeypatch.setattr(module, name, 60.0)


def checkup(path: Path, *, deep: bool = False, report: Report | None = None) -> dict[str, Finding]:
    """All findings about a file, by name."""
    found = examine(path, backups=path.parent / "backups", now=time.time(), is_deep=deep, report=report)
    assert len({each.name for each in found}) == len(found)
    return {each.name: each for each in found}


def look(path: Path, name: str, *, deep: bool = False) -> Finding:
    """One of the findings about a file."""
    return checkup(path, deep=deep)[name]


def worse_than_ok(path: Path, *, deep: bool = False) -> dict[str, Status]:
    """The findings that are not ok; a missing backup is not counted."""
    found = checkup(path, deep=deep)
    return {name: each.status for name, each in found.items() if each.status is not Status.OK and name != "backups"}


def do(remedy: str, home: Path) -> None:
    """Run the commands in a hint, like a user in a shell."""
    environment = {**os.environ, "HERMES_HOME": str(home), "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", remedy], env=environment | {"PYTHONPATH": str(SRC)}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def repaired(found: Finding, path: Path) -> dict[str, Status]:
    """The findings that are not ok after a repair, which the finding suggests; the kept damaged file is reported."""
    assert "`hermes sessions repair`" in found.remedy
    if "`hermes sessions optimize --no-vacuum`" in found.remedy:
        SessionDB(path).close()
    repair(path)
    worse = worse_than_ok(path, deep=True)
    assert worse.pop("leftovers") is Status.NOTE
    return worse


def fill(path: Path) -> None:
    """Store sessions of every kind, used in every way."""
    with SessionDB(path) as db:
        db.create_session("root", "cli")
        db.append_messages("root", [{"role": "user", "content": f"question {number}"} for number in range(12)])
        db.append_message("root", "assistant", None, tool_calls=[{"function": {"name": "terminal"}}])
        db.append_message("root", "user", [{"type": "text", "text": "a picture"}, {"type": "image"}], timestamp=5.0)
        db.update_token_counts("root", input_tokens=3, estimated_cost_usd=0.1, api_call_count=1)
        db.update_token_counts("root", input_tokens=4, estimated_cost_usd=0.2)
        db.end_session("root", "compression")
        db.create_session("tip", "cli", parent_session_id="root")
        ids = db.append_messages("tip", [{"role": "user", "content": text} for text in ("first", "", "naïve \ud800")])
        db.rewind_to_message("tip", ids[0])
        db.create_session("helper", "subagent", parent_session_id="tip", child_kind="delegate")
        db.append_message("helper", "assistant", "a delegated answer")
        db.create_session("replaced", "telegram", user_id="7")
        db.append_message("replaced", "user", "gone soon")
        db.replace_messages("replaced", [{"role": "user", "content": "x" * 200}, {"role": "assistant", "content": "y"}])
        db.create_session("empty", "cli")
        db.import_session({"id": "imported", "source": "cli", "messages": [{"role": "user", "content": "came along"}]})
