"""Tests that give up being root work wherever the project and its temporary files lie."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.places import may_be_entered

ROOT = Path(__file__).parents[2]


def test_directory_below_a_closed_one_cannot_be_entered() -> None:
    with tempfile.TemporaryDirectory() as closed:
        (Path(closed) / "open").mkdir()
        (Path(closed) / "open").chmod(0o755)
        assert not may_be_entered(Path(closed) / "open")
        Path(closed).chmod(0o711)
        assert may_be_entered(Path(closed) / "open")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_guests_find_their_place_when_temporary_files_lie_in_a_closed_directory(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "tmp").mkdir(parents=True)
    closed.chmod(0o700)
    test = "tests/fault/test_rights.py::test_own_directory_is_enough"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", test],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(closed / "tmp")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
