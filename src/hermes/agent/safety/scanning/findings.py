"""What a scan of a command has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["allow", "warn", "block"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why a command is dangerous."""

    rule: str
    """The name of the rule, such as `pipe_to_interpreter`."""
    text: str
    """A sentence for the user, without a dot; nothing in it can act on a terminal."""


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The result of a scan."""

    verdict: Verdict = "allow"
    findings: tuple[Finding, ...] = ()
    note: str = ""
    """A remark for the user, such as why a command was not scanned."""


class ScanFailed(Exception):
    """Tirith gave no verdict."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class CommandNotScannable(ScanFailed):
    """The command cannot be passed to Tirith; its author may intend that, so it counts as blocked."""
