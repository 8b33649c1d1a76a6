"""Processes that are killed while they make a backup or restore one: at random moments, and at each step on disk."""

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
    """A process that is killed some time after it has begun, or before its nth step on disk."""

    def __init__(self, code: str, *paths: Path, step: int = 0) -> None:
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, str(step), *map(str, paths)], stdout=subprocess.PIPE, env=env, cwd=ROOT
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def dies_of_itself(self) -> bool:
        """Wait for its end; False if it came to that alive."""
        said, _ = self._process.communicate(timeout=LIMIT_S)
        assert (said, self._process.returncode) in ((b"", -9), (b"done\n", 0))
        return said == b""

    def dies(self, after_s: float) -> bool:
        """Kill it so long after it began; False if it was done already."""
        time.sleep(after_s)
        self._process.kill()
        return self._process.communicate(timeout=LIMIT_S)[0] == b""


def kill_at_random(start: Callable[[], Victim], after_each: Callable[[], None]) -> int:
    """Kill one process after the other at moments all over its work; return how many did not finish."""
    victim, began = start(), time.monotonic()
    assert not victim.dies_of_itself()
    took = time.monotonic() - began
    after_each()
    chance, killed = random.Random(11), 0
    for number in range(KILLS):
        killed += start().dies(took * (number + chance.random()) / KILLS)
        after_each()
    return killed


def kill_at_each_step(start: Callable[[int], Victim], after_each: Callable[[], None]) -> int:
    """Kill one process after the other, each before its next step on disk; return how many steps there are."""
    for step in count(1):
        is_killed = start(step).dies_of_itself()
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
        """Everything that counts as a backup is one."""
        for backup in set(backups_in(directory, path)) - seen:
            verdict = verify(backup, Depth.DAMAGE, is_backup=True)
            assert verdict.defects == ()
            assert verdict.contents is not None
            assert verdict.contents.messages >= 400
            seen.add(backup)

    def assert_tidy(self, path: Path, directory: Path) -> None:
        """The next one has removed what the killed ones left."""
        back_up_into(path, directory, 3)
        kept = {each.name for each in backups_in(directory, path)}
        assert {each.name for each in directory.iterdir()} <= kept | {f"{name}.sha256" for name in kept}
        assert 1 <= len(kept) <= 3
        assert_sound(path)

    def test_a_killed_one_never_counts_and_its_traces_go_with_the_next(self, path: Path, directory: Path) -> None:
        fill(path, 400, 8_000)
        seen: set[Path] = set()
        with Child("append", path, "writer", "forever") as writer:
            assert writer.line() == "ready"
            writer.tell()
            killed = kill_at_random(lambda: Victim(BACK_UP, path, directory), lambda: self.check(path, directory, seen))
            assert writer.line()
        assert killed
        self.assert_tidy(path, directory)

    def test_nor_does_one_that_is_killed_before_any_of_its_steps(self, path: Path, directory: Path) -> None:
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
        """A backup; the store has had one message more since."""
        fill(path, 300, 5_000)
        made = back_up(path, tmp_path / "backup.db").path
        with SessionDB(path) as db:
            db.append_message(SESSION, "user", "since then")
        shutil.copy(path, tmp_path / "present.db")
        return made

    def look_and_go_back(self, path: Path, found: set[int]) -> None:
        """The store is one or the other, and whole; then make it what it was before."""
        (messages,) = rows(path, "SELECT count(*) FROM messages")[0]
        assert messages in (300, 301)
        found.add(messages)
        assert_sound(path)
        kept = {each.read_bytes() for each in path.parent.glob("state.db.replaced-*")}
        assert len(kept) == 1 or messages == 301, "what was there must be kept"
        for each in path.parent.glob("state.db*"):
            each.unlink()
        shutil.copy(path.parent / "present.db", path)

    def test_a_killed_one_leaves_the_store_as_it_was_or_the_restored_one(self, path: Path, backup: Path) -> None:
        found: set[int] = set()
        killed = kill_at_random(lambda: Victim(RESTORE, path, backup), lambda: self.look_and_go_back(path, found))
        assert killed
        assert found == {300, 301}

    def test_so_does_one_that_is_killed_before_any_of_its_steps(self, path: Path, backup: Path) -> None:
        found: set[int] = set()
        steps = kill_at_each_step(
            lambda step: Victim(RESTORE, path, backup, step=step), lambda: self.look_and_go_back(path, found)
        )
        assert steps > 5
        assert found == {300, 301}

    def test_the_next_one_removes_what_a_killed_one_left(self, path: Path, backup: Path) -> None:
        for step in (4, 7, 10):
            Victim(RESTORE, path, backup, step=step).dies_of_itself()
        restore(path, verify(backup, is_backup=True))
        assert path.stat().st_nlink == 1
        assert not list(path.parent.glob("*.partial*"))
        with SessionDB(path) as db:
            assert len(db.search_messages("newt", limit=1_000)) == 300
