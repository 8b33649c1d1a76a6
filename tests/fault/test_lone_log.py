"""A log without its database: the newest messages may be in it only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.errors import StoreCorrupt
from hermes.state.sqlite.repair.repair import FileCondition, repair
from hermes_state import SessionDB

ROOT = Path(__file__).parents[2]
WRITER = """
import os, signal, sys
from hermes_state import SessionDB
db = SessionDB(sys.argv[1])
db.create_session("s", "cli")
for number in range(20):
    db.append_message("s", "user", f"axolotl {number}")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def log(path: Path) -> Path:
    """The log of a killed writer."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ended = subprocess.run([sys.executable, "-c", WRITER, str(path)], env=env, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    left = Path(f"{path}-wal")
    assert left.stat().st_size
    return left


@pytest.mark.parametrize("read_only", [False, True])
def test_log_of_an_emptied_database_is_not_touched(path: Path, log: Path, read_only: bool) -> None:
    path.write_bytes(b"")
    before = log.read_bytes()
    with pytest.raises(StoreCorrupt, match="only its log is left"):
        SessionDB(path, read_only=read_only)
    assert (path.read_bytes(), log.read_bytes()) == (b"", before)


def test_repair_saves_the_log_of_an_emptied_database(path: Path, log: Path) -> None:
    path.write_bytes(b"")
    assert repair(path).condition is FileCondition.REPAIRED
    with SessionDB(path) as db:
        assert [message["content"] for message in db.get_messages("s")] == [f"axolotl {n}" for n in range(20)]


def test_log_of_a_deleted_database_is_kept_when_a_new_one_is_created(path: Path, log: Path) -> None:
    before = log.read_bytes()
    path.unlink()
    with SessionDB(path) as db:
        assert db.session_count() == 0
        db.create_session("new", "cli")
    kept = [each for each in path.parent.iterdir() if ".left-" in each.name]
    assert [each.read_bytes() for each in kept] == [before]
