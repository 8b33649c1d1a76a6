"""Repairing a damaged database: every row that can be read goes into a new file, which then takes its place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

from hermes.errors import Conflict, NotADatabase, NotFound, StoreUnavailable
from hermes.state.engine import Report
from hermes.state.spool import Spool
from hermes.state.sqlite.amounts import checked_timeout
from hermes.state.sqlite.files import beside, real_file
from hermes.state.sqlite.rescue.salvage import Salvaged
from hermes.state.sqlite.rescue.workshop import Examined, Workshop
from hermes.state.sqlite.upkeep.backup import alone_in
from hermes.state.sqlite.upkeep.exchange import alone
from hermes.state.sqlite.upkeep.holders import refuse_strangers

TIMEOUT_S = 60.0


class Condition(StrEnum):
    """How a database is."""

    HEALTHY = "healthy"
    EMPTY = "empty"
    """There is nothing in it, and so nothing that could be damaged."""
    DAMAGED = "damaged"
    REPAIRED = "repaired"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found and done."""

    path: Path
    condition: Condition
    damage: tuple[str, ...] = ()
    """Which parts are damaged: header, schema, data, log, index, counts."""
    problems: tuple[str, ...] = ()
    """What exactly is wrong, in words."""
    salvaged: Salvaged | None = None
    """What has been, or would be, brought over; None if nothing is wrong."""
    kept_as: Path | None = None
    """Where the damaged file is now."""
    waiting: int = 0
    """How many messages wait in the spool, to be stored when the store is opened next."""


Agree = Callable[[Outcome], bool]
"""Hears what would be done, and says whether to do it."""


def check(database: Path, *, timeout_s: float = TIMEOUT_S, report: Report | None = None) -> Outcome:
    """Tell what is wrong with a database and what of it could be saved; nothing is changed.

    The caller does not have the database open. Others can write to it, except while it is copied.
    """
    timeout_s = checked_timeout("timeout_s", timeout_s)
    file = _required(database)
    with _place_to_work(file) as place:
        workshop = Workshop(file, place, report)
        try:
            with alone(file, timeout_s) if place == file.parent else nullcontext():
                workshop.copy()
            return _outcome(database, workshop.examine())
        finally:
            workshop.discard()


def repair(
    database: Path, *, agree: Agree | None = None, timeout_s: float = TIMEOUT_S, report: Report | None = None
) -> Outcome:
    """Put all that can be read of a damaged database into a new file, check that, and put it in its place.

    The caller does not have the database open; programs of this project that have it open go on with the new file by
    themselves. While `agree` thinks about it nobody has to wait, and what is written meanwhile is salvaged too. A
    process that dies in here leaves the database as it was, or the repaired one.
    """
    timeout_s = checked_timeout("timeout_s", timeout_s)
    file = _required(database)
    with alone_in(file.parent) as is_certain:
        workshop = Workshop(file, file.parent, report)
        try:
            with alone(file, timeout_s):
                refuse_strangers(file)
                if is_certain:
                    workshop.remove_leftovers()
                outcome = _work(database, workshop)
                if outcome.condition is not Condition.DAMAGED:
                    return outcome
                if agree is None:
                    return _swapped(outcome, workshop)
            if not agree(outcome):
                return outcome
            with alone(file, timeout_s):
                refuse_strangers(file)
                if workshop.was_written():
                    workshop.discard()
                    outcome = _still_agreed(outcome, _work(database, workshop))
                return _swapped(outcome, workshop)
        finally:
            workshop.discard()


def _work(database: Path, workshop: Workshop) -> Outcome:
    workshop.copy()
    examined = workshop.examine()
    if examined.salvaged is not None:
        workshop.complete(examined.salvaged)
    return _outcome(database, examined)


def _outcome(database: Path, examined: Examined) -> Outcome:
    condition = Condition.EMPTY if examined.is_empty else Condition.HEALTHY
    if examined.salvaged is not None:
        condition = Condition.DAMAGED
    return Outcome(
        database,
        condition,
        examined.damage,
        examined.problems,
        examined.salvaged,
        waiting=Spool(beside(real_file(database), ".spool")).waiting(),
    )


def _still_agreed(before: Outcome, now: Outcome) -> Outcome:
    """What there is now, unless more would be lost than somebody agreed to."""
    assert before.salvaged is not None
    if now.salvaged is None or now.salvaged.lost_messages > before.salvaged.lost_messages:
        raise Conflict(f"{now.path} has been changed meanwhile", hint="look at it again; nothing was changed")
    return now


def _swapped(outcome: Outcome, workshop: Workshop) -> Outcome:
    return replace(outcome, condition=Condition.REPAIRED, kept_as=workshop.swap())


def _required(database: Path) -> Path:
    """The file itself, which must be there."""
    file = real_file(database)
    try:
        is_file, is_there = file.is_file(), file.exists()
    except OSError as exc:
        raise StoreUnavailable(f"{database} cannot be reached: {exc.strerror}") from exc
    if not is_there:
        raise NotFound(f"there is no session database at {database}", hint="check HERMES_HOME and sessiondb.path")
    if not is_file:
        raise NotADatabase(f"{database} is a directory or a device", hint="name a file")
    return file


@contextmanager
def _place_to_work(file: Path) -> Iterator[Path]:
    """A directory for copies; where nothing can be written, nobody else does either, and any other place will do."""
    if os.access(file.parent, os.W_OK):
        with alone_in(file.parent):
            yield file.parent
    else:
        with TemporaryDirectory(prefix="hermes-") as place:
            yield Path(place)
