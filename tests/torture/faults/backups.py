"""Backups that are killed while other processes write."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.plainsql import flaws, rows
from tests.torture.command import run, start, time_of
from tests.torture.fault import Fault, Trial
from tests.torture.journal import SHARED
from tests.torture.outcome import Outcome
from tests.torture.supervisor import Supervisor
from tests.torture.words import word_of

WRITERS = 2
KILLS, KILLS_QUICKLY = 10, 3
BACKUP = ("sessions", "backup", "--keep", "100", "--json")


def kill_backup(trial: Trial) -> Outcome:
    """Kill backups at any moment while processes write: an incomplete one never counts, and the next is complete."""
    kills = KILLS_QUICKLY if trial.is_quick else KILLS
    with Supervisor(trial.store, trial.random) as supervisor:
        for _ in range(WRITERS):
            supervisor.start_writer(threads=1)
        takes_s = time_of(trial.directory, *BACKUP)
        for _ in range(kills):
            with start(trial.directory, *BACKUP) as victim:
                supervisor.listen(trial.random.uniform(0, takes_s))
                victim.kill()
        known = set(supervisor.journal.shared)
        last = run(trial.directory, *BACKUP)
        supervisor.kill_all_writers()
        outcome = supervisor.judge(kills)
    assert last.returncode == 0, last.stderr
    outcome.complaints += _flaws_of_backups(trial.directory, Path(json.loads(last.stdout)["item"]["path"]), known)
    outcome.recovered = kills if outcome.is_unhurt else 0
    return outcome


def _flaws_of_backups(home: Path, last: Path, known: set[str]) -> list[str]:
    """Errors of finished backups: each must be undamaged, and the last must have every message acknowledged before."""
    backups = (home / "backups").glob("*.db")
    found = [f"{backup.name} counts, but is damaged: {flaw}" for backup in backups for flaw in flaws(backup)[:1]]
    there = {word_of(text) for (text,) in rows(last, "SELECT content FROM messages WHERE session_id = ?", SHARED)}
    found += [f"{last.name} lacks {len(known - there)} messages"] * bool(known - there)
    return found + [f"{each.name} was left behind" for each in (home / "backups").glob("*.partial*")]


FAULTS = (Fault("kill-backup", "`hermes sessions backup` killed while processes write", kill_backup, 3),)
