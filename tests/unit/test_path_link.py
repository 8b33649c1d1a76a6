"""`make install` and `make uninstall`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".venv" / "bin" / "hermes"


def run(action: str, prefix: Path, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / "path_link.py"), action, str(prefix)],
        capture_output=True,
        encoding="utf-8",
        env={"PATH": path, "HOME": str(prefix)},
    )


def test_link_is_made_again_and_removed(tmp_path: Path) -> None:
    link = tmp_path / "bin" / "hermes"
    run("install", tmp_path)
    done = run("install", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert link.readlink() == PROGRAM
    assert "is not on your PATH" in done.stdout
    assert run("uninstall", tmp_path).returncode == 0
    assert not link.is_symlink()


def test_directory_on_the_path_is_not_mentioned(tmp_path: Path) -> None:
    done = run("install", tmp_path, path=f"{tmp_path}/bin:/usr/bin:/bin")
    assert "PATH" not in done.stdout


def test_another_program_before_it_is_named(tmp_path: Path) -> None:
    other = tmp_path / "first" / "hermes"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    done = run("install", tmp_path / "p", path=f"{other.parent}:{tmp_path}/p/bin")
    assert f"`hermes` means {other}" in done.stdout


@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_foreign_files_stay(tmp_path: Path, action: str) -> None:
    place = tmp_path / "bin" / "hermes"
    place.parent.mkdir()
    place.write_text("mine")
    assert run(action, tmp_path).returncode == 1
    assert place.read_text() == "mine"
    place.unlink()
    place.symlink_to("/bin/true")
    assert run(action, tmp_path).returncode == 1
    assert os.readlink(place) == "/bin/true"


def test_link_of_a_directory_that_is_gone_is_replaced(tmp_path: Path) -> None:
    place = tmp_path / "bin" / "hermes"
    place.parent.mkdir()
    place.symlink_to(tmp_path / "old" / ".venv" / "bin" / "hermes")
    assert run("install", tmp_path).returncode == 0
    assert place.readlink() == PROGRAM


def test_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "bin").write_text("a file")
    done = run("install", tmp_path)
    assert (done.returncode, "PREFIX=" in done.stderr, "Traceback" in done.stderr) == (1, True, False)
