"""`hermes sessions import`."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hermes_state import SessionDB
from tests.cli.conftest import COMMAND, TIMEOUT_S, Hermes
from tests.interop.files import CLAUDE, CODEX, claude_conversation, codex_conversation, write

TALK = {"id": "s", "source": "cli", "messages": [{"role": "user", "content": "hello", "uid": "u1"}]}


@pytest.fixture
def other(tmp_path: Path) -> Hermes:
    """Another machine, with sessions on it."""
    machine = Hermes(tmp_path / "other")
    machine.store(("tea", "telegram", "Tea", "How long for green tea?"), ("auth", "cli", None, "日本語 \ud83d"))
    return machine


def sessions(hermes: Hermes) -> set[str]:
    """Return the ids of all sessions."""
    with SessionDB(hermes.database, read_only=True) as db:
        return {row["id"] for row in db.search_sessions(limit=-1)}


def test_export_is_imported(hermes: Hermes, other: Hermes, tmp_path: Path) -> None:
    file = str(tmp_path / "x.jsonl")
    other("sessions", "export", file)
    done = hermes("sessions", "import", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Imported 2 messages of 2 sessions (2 new).\n"
    again = hermes("sessions", "import", file)
    assert again.stdout == "Imported 0 messages of 2 sessions (2 skipped).\n"
    assert hermes.json("sessions", "search", "green tea")["total"] == 1


def test_export_of_another_machine_is_imported_through_a_pipe(hermes: Hermes, other: Hermes) -> None:
    exporting = other.start("sessions", "export", "-", stdout=subprocess.PIPE)
    importing = subprocess.run(
        [*COMMAND, "sessions", "import", "-"],
        env=hermes.environment(),
        stdin=exporting.stdout,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
    )
    exporting.communicate(timeout=TIMEOUT_S)
    assert importing.stdout == "Imported 2 messages of 2 sessions (2 new).\n"


def test_deeply_nested_message_survives_export_and_import(hermes: Hermes, other: Hermes, tmp_path: Path) -> None:
    nested: list[Any] = []
    for _ in range(850):
        nested = [nested]
    with SessionDB(other.database) as db:
        db.append_message("auth", "assistant", nested, tool_calls=[nested], reasoning_details=nested)
    for name in ("x.md", "x.html", "x.jsonl"):
        done = other("sessions", "export", str(tmp_path / name), *(["--redact"] if name != "x.jsonl" else []))
        assert (done.returncode, "Error" in done.stderr) == (0, False)
    assert (
        hermes("sessions", "import", str(tmp_path / "x.jsonl")).stdout == "Imported 3 messages of 2 sessions (2 new).\n"
    )
    with SessionDB(hermes.database) as db:
        assert db.get_messages("auth")[-1]["content"] == nested


def test_directories_of_other_programs_are_imported(hermes: Hermes, other: Hermes, tmp_path: Path) -> None:
    write(tmp_path / "claude" / "-home-ada" / f"{CLAUDE}.jsonl", claude_conversation())
    write(tmp_path / "codex" / "2026" / "rollout-x.jsonl", codex_conversation())
    done = hermes(
        "sessions", "import", str(tmp_path / "claude"), str(tmp_path / "codex"), str(other.database), "--json"
    )
    assert json.loads(done.stdout) == {
        "schema": "hermes.imported/1",
        "item": {
            "dry_run": False,
            "files": 3,
            "sessions": {"new": 4, "renamed": 0, "merged": 0, "skipped": 0, "kept": 0},
            "messages": 13,
            "skipped_lines": 0,
            "failed": [],
        },
    }
    listed = hermes.json("sessions", "list")["items"]
    assert {row["source"] for row in listed} == {"claude-code", "codex", "cli", "telegram"}
    assert sessions(hermes) == {f"claude-code_{CLAUDE}", f"codex_{CODEX}", "tea", "auth"}


def test_a_dry_run_writes_nothing(hermes: Hermes, tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", [TALK])
    done = hermes("sessions", "import", str(file), "--dry-run")
    assert (done.returncode, done.stdout) == (0, "Would import 1 message of 1 session (1 new).\n")
    assert not hermes.database.exists()


@pytest.mark.parametrize("keep_going", [False, True])
def test_truncated_file_is_reported(hermes: Hermes, tmp_path: Path, keep_going: bool) -> None:
    bad = write(tmp_path / "bad.jsonl", [TALK])
    bad.write_bytes(bad.read_bytes() + b'{"id": "half", "mess')
    good = write(tmp_path / "good.jsonl", [TALK | {"id": "good"}])
    done = hermes("sessions", "import", str(bad), str(good), *(["--keep-going"] if keep_going else []))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"Error: {bad}:2: the line is incomplete: the file was cut off, or is still being written",
        f"1 of 2 files failed; {'their readable parts were' if keep_going else 'nothing in them was'} imported.",
    ]
    assert sessions(hermes) == ({"s", "good"} if keep_going else {"good"})


def test_import_failures_are_in_json(hermes: Hermes, tmp_path: Path) -> None:
    bad = write(tmp_path / "bad.jsonl", ["nonsense"])
    done = hermes("sessions", "import", str(bad), "--json")
    assert done.returncode == 1
    (failed,) = json.loads(done.stdout)["item"]["failed"]
    assert (failed["path"], failed["code"]) == (str(bad), "invalid_value")
    assert not hermes.database.exists()


def test_missing_file_stops_the_import(hermes: Hermes, tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", [TALK])
    done = hermes("sessions", "import", str(file), str(tmp_path / "missing.jsonl"))
    assert done.returncode == 3
    assert "there is no file" in done.stderr
    assert not hermes.database.exists()


def test_store_is_not_imported_into_itself(other: Hermes) -> None:
    done = other("sessions", "import", str(other.database))
    assert done.returncode == 1
    assert "belongs to the store itself" in done.stderr
    # Looking through its directory opens none of its files.
    shutil.copyfile(other.database, other.home / "copy.jsonl")
    write(other.home / "x.jsonl", [TALK])
    assert other("sessions", "import", str(other.home)).stdout == "Imported 1 message of 1 session (1 new).\n"


@pytest.mark.parametrize(
    ("on_conflict", "outcome", "messages"), [("skip", "skipped", 0), ("merge", "merged", 1), ("rename", "renamed", 2)]
)
def test_existing_session_is_skipped_merged_or_renamed(
    hermes: Hermes, tmp_path: Path, on_conflict: str, outcome: str, messages: int
) -> None:
    with SessionDB(hermes.database) as db:
        db.import_session(TALK)
    grown: dict[str, Any] = {**TALK, "messages": [*TALK["messages"], {"role": "user", "content": "more", "uid": "u2"}]}
    file = str(write(tmp_path / "x.jsonl", [grown]))
    foreseen = hermes.json("sessions", "import", file, "--on-conflict", on_conflict, "--dry-run")["item"]
    item = hermes.json("sessions", "import", file, "--on-conflict", on_conflict)["item"]
    assert item == foreseen | {"dry_run": False}
    assert (item["sessions"][outcome], item["messages"]) == (1, messages)


def test_unknown_lines_are_counted(hermes: Hermes, tmp_path: Path) -> None:
    file = write(tmp_path / "talk.jsonl", [*claude_conversation(), {"type": "hologram"}])
    done = hermes("sessions", "import", str(file), "--source", "work")
    assert done.stderr == "Skipped 1 unknown line.\n"
    assert hermes.json("sessions", "list", "--source", "work")["total"] == 1


def test_import_shows_progress_on_a_terminal(hermes: Hermes, tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", [TALK])
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "sessions", "import", str(file)], env=hermes.environment(), stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    process.communicate(timeout=TIMEOUT_S)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "importing [########################] 100%" in shown
    assert shown.endswith("\x1b[2K")
