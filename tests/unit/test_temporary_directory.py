"""Temporary files of a test run are in memory if there is enough, and every user can reach them."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.temporary_directory import LEAST_FREE_BYTES, can_be_entered, has_space

ROOT = Path(__file__).parents[2]


def test_directory_below_a_private_one_cannot_be_entered() -> None:
    with tempfile.TemporaryDirectory() as closed:
        (Path(closed) / "open").mkdir()
        (Path(closed) / "open").chmod(0o755)
        assert not can_be_entered(Path(closed) / "open")
        Path(closed).chmod(0o711)
        assert can_be_entered(Path(closed) / "open")


@pytest.mark.parametrize(("free_bytes", "is_enough"), [(LEAST_FREE_BYTES, True), (LEAST_FREE_BYTES - 1024, False)])
def test_memory_is_used_only_when_enough_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_bytes: int, is_enough: bool
) -> None:
    (tmp_path / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {free_bytes // 1024} kB\n")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=LEAST_FREE_BYTES))
    assert has_space(tmp_path, tmp_path / "meminfo") is is_enough
    assert not has_space(tmp_path, tmp_path / "no such file")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_other_users_reach_temporary_files_when_root_keeps_its_own_in_a_closed_directory(tmp_path: Path) -> None:
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
