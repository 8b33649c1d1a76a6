"""Findings of a checkup: one for each check, in a form that every engine shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Values = Mapping[str, object]
"""Details of a finding for programs: any JSON values."""


class Status(StrEnum):
    """The result of a check, best first."""

    OK = "ok"
    """Everything was checked and is fine."""
    NOTE = "note"
    """Nothing is wrong, but the user should know something, such as that not everything was checked."""
    WARNING = "warning"
    """The user should act; nothing is lost so far."""
    ERROR = "error"
    """Something does not work, or data will be lost without action."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check: its status, what it found, and what to do."""

    status: Status
    summary: str
    remedy: str = ""
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a store."""

    name: str
    group: str
    run: Callable[[], CheckResult]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a named check."""

    name: str
    group: str
    status: Status
    summary: str
    remedy: str
    values: Values


def ok(summary: str, /, **values: object) -> CheckResult:
    """Return a result without problems."""
    return CheckResult(Status.OK, summary, values=values)


def note(summary: str, remedy: str = "", /, **values: object) -> CheckResult:
    """Return a result that the user should know."""
    return CheckResult(Status.NOTE, summary, remedy, values)


def warning(summary: str, remedy: str, /, **values: object) -> CheckResult:
    """Return a result that the user should act on."""
    return CheckResult(Status.WARNING, summary, remedy, values)


def error(summary: str, remedy: str, /, **values: object) -> CheckResult:
    """Return a result that the user must act on at once."""
    return CheckResult(Status.ERROR, summary, remedy, values)


def not_checked(why: str, status: Status = Status.NOTE, remedy: str = "") -> CheckResult:
    """Return a result that says why nothing was checked."""
    return CheckResult(status, f"not checked: {why}", remedy, {"checked": False})


def run_check(check: Check, explain: Callable[[Exception], CheckResult]) -> Finding:
    """Run a check; an exception becomes a finding too."""
    try:
        outcome = check.run()
    except Exception as exc:  # noqa: BLE001 - a failing check must not stop the others
        outcome = explain(exc)
    return Finding(check.name, check.group, outcome.status, outcome.summary, outcome.remedy, outcome.values)


def worst_status(findings: list[Finding]) -> Status:
    """Return the worst status of all findings."""
    order = list(Status)
    return max((each.status for each in findings), key=order.index, default=Status.OK)
