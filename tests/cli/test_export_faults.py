"""`hermes sessions export` under faults: the file is complete, or there is none."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from hermes.cli.display.atomic_file import _draft_prefix, open_output
from hermes.errors import Conflict, HermesError, InvalidValue
from hermes_state import SessionDB
from tests.cli.conftest import COMMAND, TIMEOUT_S, Hermes
from tests.support.waiting import wait_until

MESSAGES = 8_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Hermes:
    """A store that takes a moment to export."""
    hermes = Hermes(tmp_path_factory.mktemp("large") / "home")
    with SessionDB(hermes.database) as db:
        for number in range(8):
            db.create_session(f"s{number}", "cli")
            messages = [{"role": "user", "content": f"{n} " + "x" * 1500} for n in range(MESSAGES // 8)]
            db.append_messages(f"s{number}", messages)
    return hermes


def drafts(directory: Path) -> list[Path]:
    return list(directory.glob(".hermes-*.partial"))


def start_export(hermes: Hermes, target: Path) -> subprocess.Popen[bytes]:
    """Start an export and return it while it runs."""
    process = hermes.start("sessions", "export", str(target), "--format", "html", stdout=subprocess.PIPE)
    wait_until(lambda: bool(drafts(target.parent)), "the export begins")
    return process


def test_killed_export_leaves_no_file_and_the_next_one_cleans_up(large: Hermes, tmp_path: Path) -> None:
    target = tmp_path / "x.jsonl"
    process = start_export(large, target)
    process.kill()
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == -signal.SIGKILL
    assert not target.exists()
    assert len(drafts(tmp_path)) == 1
    assert large("sessions", "export", str(target)).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]
    assert sum(len(json.loads(line)["messages"]) for line in target.read_text().splitlines()) == MESSAGES


def test_interrupted_export_leaves_no_file(large: Hermes, tmp_path: Path) -> None:
    process = start_export(large, tmp_path / "x.jsonl")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("was_there", [False, True])
def test_full_disk_keeps_the_existing_file(large: Hermes, tmp_path: Path, was_there: bool) -> None:
    target = tmp_path / "x.jsonl"
    if was_there:
        target.write_text("mine")
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 2048 && exec "$@"', "sh", *COMMAND, "sessions", "export", str(target), "--force"],
        env=large.environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 1
    assert f"Error: {target} cannot be written: File too large" in done.stderr
    assert drafts(tmp_path) == []
    assert (target.read_text() if was_there else target.exists()) == ("mine" if was_there else False)


def test_first_of_two_concurrent_exports_gets_the_name(tmp_path: Path) -> None:
    target = tmp_path / "x.jsonl"

    def write_slowly() -> None:
        with open_output(str(target), overwrite=False) as slow:
            slow.write(b"slow")
            with open_output(str(target), overwrite=False) as fast:
                fast.write(b"fast")

    with pytest.raises(Conflict):
        write_slowly()
    assert target.read_bytes() == b"fast"
    assert drafts(tmp_path) == []


def test_file_of_a_running_export_is_not_deleted(tmp_path: Path) -> None:
    target = tmp_path / "x.jsonl"
    with open_output(str(target), overwrite=True) as first:
        first.write(b"first")
        with open_output(str(target), overwrite=True) as second:
            second.write(b"second")
    assert target.read_bytes() == b"first"


@pytest.mark.parametrize("kind", ["pipe", "socket", "link", "dangling link", "directory"])
def test_other_kinds_of_files_named_like_a_leftover_are_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "x.jsonl"
    left = tmp_path / f"{_draft_prefix(target)}00000000.partial"
    secret = tmp_path / "mine"
    secret.write_text("kept")
    with socket.socket(socket.AF_UNIX) as server:
        if kind == "pipe":
            os.mkfifo(left)
        elif kind == "socket":
            server.bind(left.name)
        elif kind == "directory":
            left.mkdir()
        else:
            left.symlink_to(secret if kind == "link" else tmp_path / "nowhere")
        with open_output(str(target), overwrite=False) as file:
            file.write(b"whole")
    assert target.read_bytes() == b"whole"
    assert secret.read_text() == "kept"
    assert os.path.lexists(left)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_link_or_pipe_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    target = tmp_path / "x.jsonl"
    if kind == "pipe":
        os.mkfifo(target)
    else:
        target.symlink_to(tmp_path / "theirs")
    if os.geteuid() == 0:
        os.chown(target, 12_345, 12_345, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with pytest.raises(InvalidValue, match="another user"):
        open_output(str(target), overwrite=True).__enter__()
    assert not (tmp_path / "theirs").exists()


def test_unwritable_output_is_an_error(tmp_path: Path) -> None:
    place = open_output(str(tmp_path / ("x" * 300)), overwrite=False)
    with pytest.raises(HermesError, match="cannot be written: File name too long"):
        place.__enter__()
    assert list(tmp_path.iterdir()) == []


def test_longest_possible_file_name_works(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 255)
    with open_output(str(target), overwrite=False) as file:
        file.write(b"whole")
    assert target.read_bytes() == b"whole"
