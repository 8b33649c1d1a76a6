"""Files with flipped bits or a missing end, and what `hermes sessions repair` saves."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import apsw

from hermes_state import HermesError, SessionDB
from tests.support.pagemap import page_map, page_size
from tests.support.plainsql import flaws, rows
from tests.torture.command import kill_within, run, time_of
from tests.torture.fault import Fault, Trial
from tests.torture.flips import flip_bits, index_pages
from tests.torture.judge import SAMPLE, look_up
from tests.torture.outcome import Outcome
from tests.torture.words import COMMON, PART, letters, nth_word, word_of

SESSIONS, EACH = 12, 60
DAMAGES, DAMAGES_QUICKLY = 4, 2
REPAIR = ("sessions", "repair", "--yes")

Rows = dict[int, str]
"""The texts of messages, by their ids."""


def fill_store(trial: Trial) -> Path:
    """Create a closed store with messages of all sizes."""
    path = trial.directory / "whole" / "state.db"
    path.parent.mkdir()
    with SessionDB(path) as db:
        for number in range(SESSIONS):
            session, stream = f"session {number}", letters(number, 4)
            db.create_session(session, "cli")
            paddings = [" lorem ipsum" * trial.random.choice((0, 2, 10, 10, 500)) for _ in range(EACH)]
            texts = [f"{nth_word(stream, index)} {COMMON}{padding}" for index, padding in enumerate(paddings)]
            db.append_messages(session, [{"role": "user", "content": text} for text in texts])
    return path


def flip_index(trial: Trial) -> Outcome:
    """Flip bits in a page of an index, of a table or of words: nothing may be lost."""

    def damage(path: Path) -> set[int]:
        flip_bits(path, trial.random.choice(index_pages(path)), trial.random)
        return set()

    return _damage_and_repair(trial, fill_store(trial), damage)


def flip_data(trial: Trial) -> Outcome:
    """Flip bits in a page with messages or sessions, or in the first page: only its own rows may be lost."""

    return _damage_and_repair(trial, fill_store(trial), lambda path: _flip_data(path, trial.random))


def cut_off(trial: Trial) -> Outcome:
    """Cut a file off anywhere: only rows after the cut may be lost."""

    def damage(path: Path) -> set[int]:
        size, messages = page_size(path), page_map(path, "messages")
        length = trial.random.randrange(path.stat().st_size // 10, path.stat().st_size)
        os.truncate(path, length)
        return {row for page, held in messages.keys.items() if page * size > length for row in held}

    return _damage_and_repair(trial, fill_store(trial), damage)


def kill_repair(trial: Trial) -> Outcome:
    """Kill a repair at any moment: the damaged or the repaired file is there, and the next repair finishes."""
    whole = fill_store(trial)
    timed = _copy(whole, "timed")
    flip_bits(timed / "state.db", 1, trial.random)
    takes_s = time_of(timed, *REPAIR)

    def damage(path: Path) -> set[int]:
        lost = _flip_data(path, trial.random)
        kill_within(path.parent, takes_s, trial.random, *REPAIR)
        return lost

    return _damage_and_repair(trial, whole, damage)


def _flip_data(path: Path, random: Random) -> set[int]:
    messages, sessions = page_map(path, "messages"), page_map(path, "sessions")
    page = random.choice([*messages.kinds, *sessions.kinds, 1])
    flip_bits(path, page, random)
    return messages.keys.get(page, set())


def _damage_and_repair(trial: Trial, whole: Path, damage: Callable[[Path], set[int]]) -> Outcome:
    """Damage copies of a store, each in its own way, and repair them; `damage` returns which messages may be lost."""
    outcome = Outcome()
    for number in range(DAMAGES_QUICKLY if trial.is_quick else DAMAGES):
        home = _copy(whole, f"damaged-{number}")
        lost = damage(home / "state.db")
        outcome.add(_repair(trial, home, _texts(whole), lost))
    return outcome


def _copy(whole: Path, name: str) -> Path:
    home = whole.parent.with_name(name)
    home.mkdir()
    shutil.copy(whole, home)
    return home


def _repair(trial: Trial, home: Path, before: Rows, may_be_lost: set[int]) -> Outcome:
    """Check that a repaired store has the messages that were not on a damaged page, and finds them."""
    path = home / "state.db"
    outcome = Outcome(times=1, acknowledged=len(before) - len(may_be_lost))
    done = run(home, *REPAIR)
    outcome.complaints += [f"{home.name}: {done.stderr.strip() or done.stdout.strip()}"] * (done.returncode != 0)
    outcome.corrupt = bool(flaws(path))
    try:
        after = _texts(path)
        sure = before.keys() - may_be_lost
        outcome.lost = sum(after.get(number) != before[number] for number in sure)
        _use(trial, path, after, may_be_lost, outcome)
    except (HermesError, apsw.Error) as exc:
        outcome.complaints.append(f"{home.name}: {exc}; repair said: {done.stdout.strip()}")
    outcome.recovered = int(outcome.is_unhurt)
    return outcome


def _use(trial: Trial, path: Path, texts: Rows, damaged: set[int], outcome: Outcome) -> None:
    """Search a repaired store and write to it; the text on a damaged page may differ from its index."""
    sure = sorted(texts.keys() - damaged)
    with SessionDB(path) as db:
        for query in (COMMON, PART):
            look_up(db, query, {number for number in sure if COMMON in texts[number]}, outcome, besides=damaged)
        for number in trial.random.sample(sure, min(SAMPLE, len(sure))):
            look_up(db, word_of(texts[number]), {number}, outcome, besides=damaged)
        db.ensure_session("afterwards", "cli")
        db.append_message("afterwards", "user", "said afterwards")


def _texts(path: Path) -> Rows:
    # A flipped bit may leave bytes that are not text.
    found = rows(path, "SELECT id, CAST(content AS BLOB) FROM messages")
    return {int(number): bytes(text or b"").decode(errors="replace") for number, text in found}


FAULTS = (
    Fault("flip-index", "bits flipped in a page of an index, then `hermes sessions repair`", flip_index, 8),
    Fault("flip-data", "bits flipped in a page of data, then `hermes sessions repair`", flip_data, 8),
    Fault("cut-off", "the file cut off anywhere, then `hermes sessions repair`", cut_off, 5),
    Fault("kill-repair", "`hermes sessions repair` killed, then run again", kill_repair, 3),
)
