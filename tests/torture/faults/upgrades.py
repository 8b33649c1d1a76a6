"""Upgrades of old files that are killed, or that wait for a program that does not use our lock."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from hermes.state.sqlite.schema import inspection
from hermes_state import SessionDB, StoreBusy, StoreError
from tests.support.plainsql import flaws, plain
from tests.torture.disk import Countdown, Disk, die
from tests.torture.fault import Fault, Trial
from tests.torture.forked import Forked, Pipe, next_line
from tests.torture.journal import SHARED, Message, Step, begun, done, ready
from tests.torture.outcome import Outcome
from tests.torture.supervisor import Supervisor
from tests.torture.words import COMMON, nth_word
from tests.torture.writers import PATIENCE_S
from tests.upgrade import kill_upgrades, oldfiles
from tests.upgrade.build_files import build
from tests.upgrade.checks import assert_sound, backups
from tests.upgrade.corpus import Expected

UNITS = ("statements", "steps", "accesses")
KILLS, KILLS_QUICKLY = 4, 2
SOME_WORD = "docker"
ENDLESS = 10**9
LATER = 5
IMPATIENT_S = 1
STREAM = "oldp"


def kill_upgrade(trial: Trial) -> Outcome:
    """Kill upgrades before a random statement, in the middle of one, and while a page is written."""
    old = trial.directory / "old.db"
    expected = build(trial.random.randint(1, 11), old, sessions=trial.random.choice((10, 10, 120)))
    outcome = Outcome()
    for unit in UNITS:
        total = _total(_copy(old, f"{unit}-whole"), unit)
        for number in range(KILLS_QUICKLY if trial.is_quick else KILLS):
            path = _copy(old, f"{unit}-{number}")
            was_killed = _kill(path, unit, trial.random.randint(1, total))
            outcome.add(_judge(path, expected, times=int(was_killed)))
    return outcome


def _copy(old: Path, name: str) -> Path:
    path = old.parent / name / "state.db"
    path.parent.mkdir()
    shutil.copy(old, path)
    return path


def _total(path: Path, unit: str) -> int:
    """How many statements, steps or accesses an upgrade takes."""

    def count(pipe: Pipe) -> None:
        countdown = _countdown(unit, ENDLESS)
        _upgrade(path, unit, countdown)
        pipe.send_line(str(ENDLESS - countdown.left))

    with Forked(count) as whole:
        return int(next_line(whole))


def _kill(path: Path, unit: str, left: int) -> bool:
    """Kill an upgrade; False if it ended before, since the number of steps varies with the threads."""
    with Forked(lambda _: _upgrade(path, unit, _countdown(unit, left))) as victim:
        code = victim.end()
    assert code in (0, -signal.SIGKILL), f"an upgrade ended with {code}"
    return code != 0


def _countdown(unit: str, left: int) -> Countdown | kill_upgrades.Countdown:
    return Countdown(left, die) if unit == "accesses" else kill_upgrades.Countdown(left)


def _upgrade(path: Path, unit: str, countdown: Countdown | kill_upgrades.Countdown) -> None:
    if isinstance(countdown, kill_upgrades.Countdown):
        kill_upgrades.upgrade(path, unit, countdown)
    else:
        disk = Disk(countdown)
        SessionDB(path).close()
        del disk


def _judge(path: Path, expected: Expected, times: int) -> Outcome:
    """Check that the file is the old or the new one, and that nothing is missing once it is opened again."""
    messages = expected.all_messages()
    outcome = Outcome(times=times, acknowledged=len(messages))
    try:
        assert_sound(path)
        found = oldfiles.read_plainly(path)
        assert (found.sessions, found.messages) == (expected.sessions, expected.messages), "half an upgrade"
        with SessionDB(path) as db:
            wanted = [each.id for each in messages if SOME_WORD in f"{each.content} {each.tool_calls}".lower()]
            hits = db.search_messages(SOME_WORD, limit=len(messages), budget_s=PATIENCE_S)
            outcome.unfound += sorted(hit["id"] for hit in hits) != wanted
        assert all(oldfiles.read_plainly(backup) == expected for backup in backups(path)), "a backup is not complete"
    except (AssertionError, StoreError) as exc:
        outcome.complaints.append(f"{path.parent.name}: {exc}")
    outcome.lost = missing_from(path, expected)
    outcome.corrupt = len(flaws(path)) > 0
    outcome.recovered = times if outcome.is_unhurt else 0
    return outcome


def missing_from(path: Path, expected: Expected) -> int:
    """How many messages of an old file are missing or changed in the upgraded one."""
    there = set(map(repr, oldfiles.read_plainly(path).all_messages()))
    return sum(repr(message) not in there for message in expected.all_messages())


def freeze_old_program(trial: Trial) -> Outcome:
    """Upgrade a file while an old program is frozen, in a transaction or between two."""
    outcome = Outcome()
    for strike in (thaw_in_time, thaw_too_late, kill_frozen, freeze_between):
        path = trial.directory / strike.__name__ / "state.db"
        path.parent.mkdir()
        expected = build(11, path, sessions=10)
        with Supervisor(path, trial.random, is_new=False) as supervisor:
            strike(supervisor, trial)
            found = supervisor.judge(1)
        found.acknowledged += len(expected.all_messages())
        found.lost += missing_from(path, expected)
        outcome.add(found)
    return outcome


def thaw_in_time(supervisor: Supervisor, trial: Trial) -> None:
    """Opening the file waits for the frozen transaction, which is then in the upgraded file."""
    program = _start_frozen(supervisor, is_inside=True)
    with Forked(lambda pipe: _open(supervisor.path, inspection.OPEN_TIMEOUT_S, pipe)) as opener:
        supervisor.listen(trial.random.uniform(0.1, 1.5))
        program.signal(signal.SIGCONT)
        assert next_line(opener) == "open"
    supervisor.finish()
    assert supervisor.journal.shared, "the frozen program stored nothing"


def thaw_too_late(supervisor: Supervisor, trial: Trial) -> None:
    """Opening the file raises StoreBusy within the limit, and nothing has changed."""
    program = _start_frozen(supervisor, is_inside=True)
    before = oldfiles.read_plainly(supervisor.path)
    with Forked(lambda pipe: _open(supervisor.path, IMPATIENT_S, pipe)) as opener:
        assert next_line(opener) == StoreBusy.code
    assert oldfiles.read_plainly(supervisor.path) == before
    assert not backups(supervisor.path), "a copy was left of a file that was not upgraded"
    program.signal(signal.SIGCONT)
    supervisor.finish()
    assert supervisor.journal.shared, "the frozen program stored nothing"
    with Forked(lambda pipe: _open(supervisor.path, IMPATIENT_S, pipe)) as opener:
        assert next_line(opener) == "open"


def kill_frozen(supervisor: Supervisor, trial: Trial) -> None:
    """Opening the file continues once the frozen program is dead, without its uncommitted message."""
    program = _start_frozen(supervisor, is_inside=True)
    with Forked(lambda pipe: _open(supervisor.path, inspection.OPEN_TIMEOUT_S, pipe)) as opener:
        supervisor.listen(trial.random.uniform(0.1, 1.5))
        supervisor.kill(program)
        assert next_line(opener) == "open"
    assert not supervisor.journal.shared


def freeze_between(supervisor: Supervisor, trial: Trial) -> None:
    """A program that had the file open keeps writing to the upgraded one."""
    program = _start_frozen(supervisor, is_inside=False)
    with Forked(lambda pipe: _open(supervisor.path, inspection.OPEN_TIMEOUT_S, pipe)) as opener:
        assert next_line(opener) == "open"
    program.signal(signal.SIGCONT)
    supervisor.finish()
    assert len(supervisor.journal.shared) == 1 + LATER


def _start_frozen(supervisor: Supervisor, *, is_inside: bool) -> Forked:
    program = supervisor.add_process(
        Forked(lambda pipe: _write_as_old_program(supervisor.path, pipe, is_inside=is_inside))
    )
    supervisor.listen_until(lambda: supervisor.journal.ready == 1)
    program.wait_until_stopped()
    return program


def _write_as_old_program(path: Path, pipe: Pipe, *, is_inside: bool) -> None:
    """Write as a program of schema 11 does, and freeze in the first transaction or after it."""
    with plain(path) as connection:

        def store(number: int, *, freezes: bool) -> None:
            word = nth_word(STREAM, number)
            pipe.send_line(begun(STREAM, Step("append", SHARED, (Message(word),))))
            connection.execute("BEGIN IMMEDIATE").fetchall()
            connection.execute(
                "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, ?)",
                (SHARED, f"{word} {COMMON}", number),
            ).fetchall()
            if freezes:
                freeze()
            connection.execute("COMMIT").fetchall()
            pipe.send_line(done(STREAM))

        def freeze() -> None:
            pipe.send_line(ready(STREAM))
            os.kill(os.getpid(), signal.SIGSTOP)

        connection.execute("INSERT INTO sessions (id, source, started_at) VALUES (?, 'cli', 1)", (SHARED,)).fetchall()
        store(0, freezes=is_inside)
        if not is_inside:
            freeze()
        for number in range(1, 1 + LATER):
            store(number, freezes=False)


def _open(path: Path, limit_s: float, pipe: Pipe) -> None:
    """Open a file, which upgrades it, and report the result."""
    inspection.OPEN_TIMEOUT_S = limit_s
    try:
        SessionDB(path).close()
    except StoreError as exc:
        pipe.send_line(exc.code)
    else:
        pipe.send_line("open")


FAULTS = (
    Fault("kill-upgrade", "the upgrade of an old file killed, anywhere", kill_upgrade, 8),
    Fault("frozen-program", "a program of schema 11 frozen while its file is upgraded", freeze_old_program, 4),
)
