"""Old files whose upgrade is cut short, or kept waiting by a program that knows nothing of it."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from hermes.state.sqlite import schema
from hermes_state import SessionDB, StoreBusy, StoreError
from tests.support.plainsql import flaws, plain
from tests.torture.crew import PATIENCE_S
from tests.torture.disk import Countdown, Disk, die
from tests.torture.fault import Fault, Place
from tests.torture.forked import Forked, Voice, next_word
from tests.torture.journal import SHARED, Message, Step, begun, done, ready
from tests.torture.outcome import Outcome
from tests.torture.ship import Ship
from tests.torture.words import COMMON, nth_word
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


def kill_upgrade(place: Place) -> Outcome:
    """Kill upgrades before a statement, in the middle of one, and over a page, each at a random one of all."""
    old = place.directory / "old.db"
    expected = build(place.random.randint(1, 11), old, sessions=place.random.choice((10, 10, 120)))
    outcome = Outcome()
    for unit in UNITS:
        total = _total(_copied(old, f"{unit}-whole"), unit)
        for number in range(KILLS_QUICKLY if place.is_quick else KILLS):
            path = _copied(old, f"{unit}-{number}")
            was_killed = _kill(path, unit, place.random.randint(1, total))
            outcome.add(_judged(path, expected, times=int(was_killed)))
    return outcome


def _copied(old: Path, name: str) -> Path:
    path = old.parent / name / "state.db"
    path.parent.mkdir()
    shutil.copy(old, path)
    return path


def _total(path: Path, unit: str) -> int:
    """How much an upgrade has of a unit."""

    def count(voice: Voice) -> None:
        countdown = _countdown(unit, ENDLESS)
        _upgrade(path, unit, countdown)
        voice.say(str(ENDLESS - countdown.left))

    with Forked(count) as whole:
        return int(next_word(whole))


def _kill(path: Path, unit: str, left: int) -> bool:
    """Have an upgrade die; False if it got to its end before, since threads do not always need as many steps."""
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


def _judged(path: Path, expected: Expected, times: int) -> Outcome:
    """After a kill the file is the old one or the new one; opened again, it is the new one and nothing is missing."""
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
    """How many messages of an old file are not, value by value, in what became of it."""
    there = set(map(repr, oldfiles.read_plainly(path).all_messages()))
    return sum(repr(message) not in there for message in expected.all_messages())


def freeze_old_program(place: Place) -> Outcome:
    """Upgrade a file while a program of its time is frozen, in a transaction or between two."""
    outcome = Outcome()
    for strike in (thaw_in_time, thaw_too_late, kill_frozen, freeze_between):
        path = place.directory / strike.__name__ / "state.db"
        path.parent.mkdir()
        expected = build(11, path, sessions=10)
        with Ship(path, place.random, is_new=False) as ship:
            strike(ship, place)
            found = ship.judge(1)
        found.acknowledged += len(expected.all_messages())
        found.lost += missing_from(path, expected)
        outcome.add(found)
    return outcome


def thaw_in_time(ship: Ship, place: Place) -> None:
    """Whoever opens the file waits for the frozen transaction, and has it in the upgraded file."""
    program = _frozen(ship, is_inside=True)
    with Forked(lambda voice: _open(ship.path, schema.OPEN_TIMEOUT_S, voice)) as opener:
        ship.listen(place.random.uniform(0.1, 1.5))
        program.signal(signal.SIGCONT)
        assert next_word(opener) == "open"
    ship.finish()
    assert ship.journal.shared, "the frozen program stored nothing"


def thaw_too_late(ship: Ship, place: Place) -> None:
    """Whoever opens the file is told that it is busy, within the limit, and nothing has changed."""
    program = _frozen(ship, is_inside=True)
    before = oldfiles.read_plainly(ship.path)
    with Forked(lambda voice: _open(ship.path, IMPATIENT_S, voice)) as opener:
        assert next_word(opener) == StoreBusy.code
    assert oldfiles.read_plainly(ship.path) == before
    assert not backups(ship.path), "a copy was left of a file that was not upgraded"
    program.signal(signal.SIGCONT)
    ship.finish()
    assert ship.journal.shared, "the frozen program stored nothing"
    with Forked(lambda voice: _open(ship.path, IMPATIENT_S, voice)) as opener:
        assert next_word(opener) == "open"


def kill_frozen(ship: Ship, place: Place) -> None:
    """Whoever opens the file goes on as soon as the frozen program is dead; what it had not committed is not there."""
    program = _frozen(ship, is_inside=True)
    with Forked(lambda voice: _open(ship.path, schema.OPEN_TIMEOUT_S, voice)) as opener:
        ship.listen(place.random.uniform(0.1, 1.5))
        ship.kill(program)
        assert next_word(opener) == "open"
    assert not ship.journal.shared


def freeze_between(ship: Ship, place: Place) -> None:
    """A program that had the file open goes on writing to the upgraded one, as if nothing had happened."""
    program = _frozen(ship, is_inside=False)
    with Forked(lambda voice: _open(ship.path, schema.OPEN_TIMEOUT_S, voice)) as opener:
        assert next_word(opener) == "open"
    program.signal(signal.SIGCONT)
    ship.finish()
    assert len(ship.journal.shared) == 1 + LATER


def _frozen(ship: Ship, *, is_inside: bool) -> Forked:
    program = ship.take_aboard(Forked(lambda voice: _be_old(ship.path, voice, is_inside=is_inside)))
    ship.listen_until(lambda: ship.journal.ready == 1)
    program.wait_until_stopped()
    return program


def _be_old(path: Path, voice: Voice, *, is_inside: bool) -> None:
    """Write as a program of schema 11 does, and freeze in the first transaction or after it."""
    with plain(path) as connection:

        def store(number: int, *, freezes: bool) -> None:
            word = nth_word(STREAM, number)
            voice.say(begun(STREAM, Step("append", SHARED, (Message(word),))))
            connection.execute("BEGIN IMMEDIATE").fetchall()
            connection.execute(
                "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, ?)",
                (SHARED, f"{word} {COMMON}", number),
            ).fetchall()
            if freezes:
                freeze()
            connection.execute("COMMIT").fetchall()
            voice.say(done(STREAM))

        def freeze() -> None:
            voice.say(ready(STREAM))
            os.kill(os.getpid(), signal.SIGSTOP)

        connection.execute("INSERT INTO sessions (id, source, started_at) VALUES (?, 'cli', 1)", (SHARED,)).fetchall()
        store(0, freezes=is_inside)
        if not is_inside:
            freeze()
        for number in range(1, 1 + LATER):
            store(number, freezes=False)


def _open(path: Path, limit_s: float, voice: Voice) -> None:
    """Open a file, which upgrades it, and say what came of it."""
    schema.OPEN_TIMEOUT_S = limit_s
    try:
        SessionDB(path).close()
    except StoreError as exc:
        voice.say(exc.code)
    else:
        voice.say("open")


FAULTS = (
    Fault("kill-upgrade", "the upgrade of an old file killed, anywhere", kill_upgrade, 8),
    Fault("frozen-program", "a program of schema 11 frozen while its file is upgraded", freeze_old_program, 4),
)
