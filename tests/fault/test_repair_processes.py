"""A repair while other processes run, and one that is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hermes.errors import Conflict, StoreBusy
from hermes.state.sqlite.repair.repair import FileCondition, RepairResult, check, repair
from hermes_state import SessionDB
from tests.fault.child import SESSION
from tests.fault.damaged import SIZE, IntactStore, assert_saved, make_intact_store
from tests.fault.processes import ROOT, Child, assert_sound
from tests.support.pagemap import overwrite
from tests.support.plainsql import rows
from tests.upgrade.checks import environment


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> IntactStore:
    path = tmp_path_factory.mktemp("whole") / "state.db"
    with SessionDB(path) as db:
        db.create_session(SESSION, "cli")
    return make_intact_store(path, sessions=12, messages=30)


@pytest.fixture
def path(whole: IntactStore, tmp_path: Path) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    return whole.copy(place / "state.db")


def damage(path: Path, whole: IntactStore) -> int:
    """Overwrite a page with messages; return its number."""
    number = whole.message_pages.pages("leaf")[20]
    overwrite(path, number, bytes(SIZE), size=SIZE)
    return number


def leftovers(path: Path) -> list[str]:
    return [each.name for each in path.parent.iterdir() if "partial" in each.name or "repaired" in each.name]


def test_processes_with_the_store_open_use_the_repaired_file(path: Path, whole: IntactStore) -> None:
    with Child("append", path, "a", 5) as first, Child("append", path, "b", 5) as second:
        assert first.line() == second.line() == "ready"
        number = damage(path, whole)
        assert repair(path).condition is FileCondition.REPAIRED
        for child in (first, second):
            child.send()
            assert len(child.lines()) == 5
            assert child.finish() == 0
    with SessionDB(path) as db:
        assert sorted(message["uid"] for message in db.get_messages(SESSION)) == sorted(
            f"{name}-{number}" for name in "ab" for number in range(5)
        )
    messages = {row[0] for row in rows(path, "SELECT id FROM messages")}
    assert whole.message_pages.safe(number) <= messages
    assert_sound(path)


def test_foreign_program_with_the_file_open_is_named_and_nothing_is_changed(path: Path, whole: IntactStore) -> None:
    damage(path, whole)
    before = path.read_bytes()
    with Child("hold-transaction", path, 20) as child:
        assert child.line() == "held"
        with pytest.raises(StoreBusy) as caught:
            repair(path)
        assert f"pid {child.pid}" in caught.value.message
    assert path.read_bytes() == before
    assert leftovers(path) == []


def test_a_process_that_is_writing_is_waited_for_and_named(path: Path, whole: IntactStore) -> None:
    damage(path, whole)
    with Child("hold-lock", path) as child:
        assert child.line() == "held"
        with pytest.raises(StoreBusy) as caught:
            repair(path, timeout_s=0.05)
        assert f"pid {child.pid}" in caught.value.message
    assert repair(path).condition is FileCondition.REPAIRED


def test_check_does_not_block_writers_after_the_copy(path: Path, whole: IntactStore) -> None:
    damage(path, whole)
    written: list[int] = []

    def report(what: str, done: int, total: int) -> None:
        if what.startswith("salvaging") and not written:
            with SessionDB(path, write_timeout_s=1) as db:
                written.append(db.append_message("s003", "user", "meanwhile"))

    assert check(path, report=report).condition is FileCondition.DAMAGED
    assert written


def test_second_repair_at_the_same_time_is_refused(path: Path, whole: IntactStore) -> None:
    number = damage(path, whole)

    def confirm(_: RepairResult) -> bool:
        with pytest.raises(Conflict):
            repair(path)
        return True

    assert repair(path, confirm=confirm).condition is FileCondition.REPAIRED
    assert_saved(path, whole, [number])


class TestConfirmation:
    def test_a_no_changes_nothing(self, path: Path, whole: IntactStore) -> None:
        damage(path, whole)
        before = path.read_bytes()
        seen: list[RepairResult] = []

        def confirm(outcome: RepairResult) -> bool:
            seen.append(outcome)
            return False

        assert repair(path, confirm=confirm) == seen[0]
        assert seen[0].condition is FileCondition.DAMAGED
        assert path.read_bytes() == before
        assert leftovers(path) == []

    def test_messages_can_be_stored_and_are_saved_too(self, path: Path, whole: IntactStore) -> None:
        number = damage(path, whole)

        def confirm(_: RepairResult) -> bool:
            with SessionDB(path, write_timeout_s=1) as db:
                db.append_message("s003", "user", "axolotl wordlast")
            return True

        outcome = repair(path, confirm=confirm)
        assert outcome.condition is FileCondition.REPAIRED
        assert_saved(path, whole._replace(messages=whole.messages | {10_000: ()}), [number])
        with SessionDB(path) as db:
            assert db.get_messages("s003")[-1]["content"] == "axolotl wordlast"

    def test_more_damage_than_confirmed_is_an_error(self, path: Path, whole: IntactStore) -> None:
        damage(path, whole)

        def confirm(_: RepairResult) -> bool:
            overwrite(path, whole.message_pages.pages("leaf")[30], bytes(SIZE), size=SIZE)
            return True

        with pytest.raises(Conflict):
            repair(path, confirm=confirm)
        assert leftovers(path) == []

    def test_error_during_the_confirmation_leaves_no_files(self, path: Path, whole: IntactStore) -> None:
        damage(path, whole)

        def confirm(_: RepairResult) -> bool:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            repair(path, confirm=confirm)
        assert leftovers(path) == []


def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """During its work, and before each file that it renames or removes; some of the messages are only in the log."""
    source, damaged, place = tmp_path / "source.db", tmp_path / "damaged.db", tmp_path / "place"
    place.mkdir()
    whole = make_intact_store(source, sessions=4, messages=20)
    with SessionDB(source) as db:
        db.append_messages("s003", [{"role": "user", "content": f"axolotl wordnew{i}"} for i in range(5)])
        for suffix in ("", "-wal"):
            Path(f"{damaged}{suffix}").write_bytes(Path(f"{source}{suffix}").read_bytes())
    number = whole.message_pages.pages("leaf")[3]
    overwrite(damaged, number, bytes(SIZE), size=SIZE)
    expected = len(whole.message_pages.safe(number)) + 5
    program = [sys.executable, "-m", "tests.fault.kill_repairs", str(damaged), str(place)]
    done = subprocess.run(program, capture_output=True, text=True, cwd=ROOT, env=environment(), timeout=100)
    assert done.returncode == 0, done.stderr
    moments = {name: tuple(rest) for name, *rest in (line.split(",") for line in done.stdout.splitlines())}
    not_killed = [name for name, found in moments.items() if found[0] != "True"]
    assert not_killed == [list(moments)[-1]]
    assert len(moments) > 8
    assert {found[1] for found in moments.values()} == {"healthy", "repaired"}
    assert {found[2:] for found in moments.values()} == {(str(expected), "True", "True")}
