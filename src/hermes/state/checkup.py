"""What a checkup of a store finds: one finding for each check, in a form that every engine shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Values = Mapping[str, object]
"""What a check saw, for programs: whatever JSON can say."""


class Status(StrEnum):
    """How a check ended, the best first."""

    OK = "ok"
    """All of it was looked at, and all is well."""
    NOTE = "note"
    """Nothing that was looked at is wrong, but there is something to know: also that not all was looked at."""
    WARNING = "warning"
    """Something should be done, and nothing is lost so far."""
    ERROR = "error"
    """Something does not work, or is lost if nothing is done."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check answers: how it ended, what was found, and what to do about it."""

    status: Status
    summary: str
    remedy: str = ""
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """Something to look at."""

    name: str
    group: str
    look: Callable[[], Outcome]


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of a check."""

    name: str
    group: str
    status: Status
    summary: str
    remedy: str
    values: Values


def ok(summary: str, /, **values: object) -> Outcome:
    """All is well."""
    return Outcome(Status.OK, summary, values=values)


def note(summary: str, remedy: str = "", /, **values: object) -> Outcome:
    """Something to know."""
    return Outcome(Status.NOTE, summary, remedy, values)


def warning(summary: str, remedy: str, /, **values: object) -> Outcome:
    """Something to do."""
    return Outcome(Status.WARNING, summary, remedy, values)


def error(summary: str, remedy: str, /, **values: object) -> Outcome:
    """Something to do at once."""
    return Outcome(Status.ERROR, summary, remedy, values)


def not_checked(why: str, status: Status = Status.NOTE, remedy: str = "") -> Outcome:
    """Nothing is known, which is not the same as that all is well."""
    return Outcome(status, f"not checked: {why}", remedy, {"checked": False})


def finding(check: Check, explain: Callable[[Exception], Outcome]) -> Finding:
    """Make a check; whatever it runs into is a finding too."""
    try:
        outcome = check.look()
    except Exception as exc:  # noqa: BLE001 - one check that fails must not keep the others from being made
        outcome = explain(exc)
    return Finding(check.name, check.group, outcome.status, outcome.summary, outcome.remedy, outcome.values)


def worst(findings: list[Finding]) -> Status:
    """The worst status of all."""
    order = list(Status)
    return max((each.status for each in findings), key=order.index, default=Status.OK)
