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
class CheckResult:
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
    run: Callable[[], CheckResult]


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of a check."""

    name: str
    group: str
    status: Status
    summary: str
    remedy: str
    values: Values


def ok(summary: str, /, **values: object) -> CheckResult:
    """All is well."""
    return CheckResult(Status.OK, summary, values=values)


def note(summary: str, remedy: str = "", /, **values: object) -> CheckResult:
    """Something to know."""
    return CheckResult(Status.NOTE, summary, remedy, values)


def warning(summary: str, remedy: str, /, **values: object) -> CheckResult:
    """Something to do."""
    return CheckResult(Status.WARNING, summary, remedy, values)


def error(summary: str, remedy: str, /, **values: object) -> CheckResult:
    """Something to do at once."""
    return CheckResult(Status.ERROR, summary, remedy, values)


def not_checked(why: str, status: Status = Status.NOTE, remedy: str = "") -> CheckResult:
    """Nothing is known, which is not the same as that all is well."""
    return CheckResult(status, f"not checked: {why}", remedy, {"checked": False})


def run_check(check: Check, explain: Callable[[Exception], CheckResult]) -> Finding:
    """Make a check; whatever it runs into is a finding too."""
    try:
        outcome = check.run()
    except Exception as exc:  # noqa: BLE001 - one check that fails must not keep the others from being made
        outcome = explain(exc)
    return Finding(check.name, check.group, outcome.status, outcome.summary, outcome.remedy, outcome.values)


def worst_status(findings: list[Finding]) -> Status:
    """The worst status of all."""
    order = list(Status)
    return max((each.status for each in findings), key=order.index, default=Status.OK)
