"""Processes that are killed during a backup or a restore: at random moments, and before each step on disk."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from hermes.state.sqlite.backup.backup import back_up, back_up_into, backups_in
from hermes.state.sqlite.backup.restore import restore
from hermes.state.sqlite.checks.verify import Depth, verify
from hermes_state import SessionDB
from tests.fault.child import SESSION
from tests.fault.processes import ROOT, Child, assert_sound
from tests.support.plainsql import rows
from tests.support.waiting import LIMIT_S

KILLS = 8
PROLOGUE = """
import os, signal, sys
from pathlib import Path
from hermes.state.sqlite.files import page_copy
from hermes.state.sqlite.backup.backup import back_up_into
from hermes.state.sqlite.backup.restore import restore
from hermes.state.sqlite.checks.verify import Depth, verify

left = int(sys.argv[1])
first, second = map(Path, sys.argv[2:])
if not left:
    page_copy.STEP_PAGES = 64

def count_down(name):
    step = getattr(os, name)
    def take(*args, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(*args, **options)
    setattr(os, name, take)

for name in ("fsync", "link", "replace", "unlink"):
    count_down(name)
print("ready", flush=True)
"""
BACK_UP = f"{PROLOGUE}back_up_into(first, second, 3)\nprint('done', flush=True)"
RESTORE = f"{PROLOGUE}restore(first, verify(second, Depth.QUICK, is_backup=True))\nprint('done', flush=True)"


class Victim:
    """A process that is killed after some time, or before its nth step on disk."""

    def __init__(self, code: str, *paths: Path, step: int = 0) -> None:
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, str(step), *map(str, paths)], stdout=subprocess.PIPE, env=env, cwd=ROOT
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def is_killed_at_its_step(self) -> bool:
        """Wait for its end; return False if it finished alive."""
        output, _ = self._process.communicate(timeout=LIMIT_S)
        assert (output, self._process.returncode) in ((b"", -9), (b"done\n", 0))
        return output == b""

    def is_killed_after(self, after_s: float) -> bool:
        """Kill it after this time; return False if it was done already."""
        time.sleep(after_s)
        self._process.kill()
        return self._process.communicate(timeout=LIMIT_S)[0] == b""


def kill_at_random(start: Callable[[], Victim], after_each: Callable[[], None]) -> int:
    """Kill one process after the other at random moments of its work; return how many did not finish."""
    victim, began = start(), time.monotonic()
    assert not victim.is_killed_at_its_step()
    took = time.monotonic() - began
    after_each()
    chance, killed = random.Random(11), 0
    for number in range(KILLS):
        killed += start().is_killed_after(took * (number + chance.random()) / KILLS)
        after_each()
    return killed


def kill_at_each_step(start: Callable[[int], Victim], after_each: Callable[[], None]) -> int:
    """Kill one process after the other, each before its next step on disk; return how many steps there are."""
    for step in count(1):
        is_killed = start(step).is_killed_at_its_step()
        after_each()
        if not is_killed:
            return step - 1
    raise AssertionError


def fill(path: Path, messages: int, length: int) -> None:
    with SessionDB(path) as db:
        db.append_messages(SESSION, [{"role": "user", "content": f"newt {n} " + "x" * length} for n in range(messages)])


class TestBackup:
    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        return tmp_path / "backups"

    def check(self, path: Path, directory: Path, seen: set[Path]) -> None:
        """Check that every file that counts as a backup is one."""
        for backup in set(backups_in(directory, path)) - seen:
            verdict = verify(backup, Depth.DAMAGE, is_backup=True)
            assert verdict.defects == ()
            assert verdict.contents is not None
            assert verdict.contents.messages >= 400
            seen.add(backup)

    def assert_tidy(self, path: Path, directory: Path) -> None:
        """Check that the next backup removed the files of the killed ones."""
        back_up_into(path, directory, 3)
        kept = {each.name for each in backups_in(directory, path)}
        assert {each.name for each in directory.iterdir()} <= kept | {f"{name}.sha256" for name in kept}
        assert 1 <= len(kept) <= 3
        assert_sound(path)

    def test_killed_backup_never_counts_and_the_next_removes_its_files(self, path: Path, directory: Path) -> None:
        fill(path, 400, 8_000)
        seen: set[Path] = set()
        with Child("append", path, "writer", "forever") as writer:
            assert writer.line() == "ready"
            writer.send()
            killed = kill_at_random(lambda: Victim(BACK_UP, path, directory), lambda: self.check(path, directory, seen))
            assert writer.line()
        assert killed
        self.assert_tidy(path, directory)

    def test_backup_killed_before_any_step_never_counts(self, path: Path, directory: Path) -> None:
        fill(path, 400, 10)
        seen: set[Path] = set()
        steps = kill_at_each_step(
            lambda step: Victim(BACK_UP, path, directory, step=step), lambda: self.check(path, directory, seen)
        )
        assert steps > 5
        self.assert_tidy(path, directory)


class TestRestore:
    @pytest.fixture
    def backup(self, path: Path, tmp_path: Path) -> Path:
        """A backup; the store has one more message since."""
        fill(path, 300, 5_000)
        made = back_up(path, tmp_path / "backup.db").path
        with SessionDB(path) as db:
            db.append_message(SESSION, "user", "since then")
        shutil.copy(path, tmp_path / "present.db")
        return made

    def check_and_reset(self, path: Path, found: set[int]) -> None:
        """Check that the store is the old or the restored one, and undamaged; then reset it."""
        (messages,) = rows(path, "SELECT count(*) FROM messages")[0]
        assert messages in (300, 301)
        found.add(messages)
        assert_sound(path)
        kept = {each.read_bytes() for each in path.parent.glob("state.db.replaced-*")}
        assert len(kept) == 1 or messages == 301, "what was there must be kept"
        for each in path.parent.glob("state.db*"):
            each.unlink()
        shutil.copy(path.parent / "present.db", path)

    def test_killed_restore_leaves_the_old_or_the_restored_store(self, path: Path, backup: Path) -> None:
        found: set[int] = set()
        killed = kill_at_random(lambda: Victim(RESTORE, path, backup), lambda: self.check_and_reset(path, found))
        assert killed
        assert found == {300, 301}

    def test_restore_killed_before_any_step_leaves_the_old_or_the_restored_store(
        self, path: Path, backup: Path
    ) -> None:
        found: set[int] = set()
        steps = kill_at_each_step(
            lambda step: Victim(RESTORE, path, backup, step=step), lambda: self.check_and_reset(path, found)
        )
        assert steps > 5
        assert found == {300, 301}

    def test_next_restore_removes_the_files_of_a_killed_one(self, path: Path, backup: Path) -> None:
        for step in (4, 7, 10):
            Victim(RESTORE, path, backup, step=step).is_killed_at_its_step()
        restore(path, verify(backup, is_backup=True))
        assert path.stat().st_nlink == 1
        assert not list(path.parent.glob("*.partial*"))
        with SessionDB(path) as db:
            assert len(db.search_messages("newt", limit=1_000)) == 300
