"""Directives: lines with which the offline model is told word for word what to answer, for tests and for trying out.

!say TEXT              say this; lines that follow belong to it
!think TEXT            think this before
!tool NAME {...}       call a tool; what follows the name is handed to it as it is
!long COUNT [SECONDS]  say so many words, with a pause after each
!fail [CODE]           fail with an error of a model, after what was said
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hermes.errors import ModelError, ModelUnavailable

FAILURES = {each.code: each for each in ModelError.__subclasses__()}
"""The errors that can be asked for."""

MAX_WORDS = 100_000
MAX_PAUSE_S = 60.0

_DIRECTIVE = re.compile(r"!(say|think|tool|long|fail)(?:[ \t]+(.*))?", re.DOTALL)
_LONG = re.compile(r"(\d{1,6})(?:\s+(\d+(?:\.\d+)?))?")


@dataclass(slots=True)
class Script:
    """What is to be answered."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """Names of tools, with their arguments as they were written."""
    pause_s: float = 0.0
    failure: ModelError | None = None


def read_script(message: str) -> Script | None:
    """The script that a message is, or None for a message that is for reading."""
    steps: list[str] = []
    for line in message.strip().splitlines():
        if _DIRECTIVE.fullmatch(line):
            steps.append(line)
        elif not steps:
            return None
        else:
            steps[-1] += f"\n{line}"
    script = Script()
    for step in steps:
        found = _DIRECTIVE.fullmatch(step)
        assert found is not None
        _add_step(script, found[1], (found[2] or "").strip())
    return script if steps else None


def _add_step(script: Script, directive: str, rest: str) -> None:
    match directive:
        case "say":
            script.text += rest
        case "think":
            script.reasoning += rest
        case "tool":
            name, _, arguments = rest.partition(" ")
            script.calls.append((name, arguments.strip() or "{}"))
        case "long":
            found = _LONG.fullmatch(rest)
            count, pause = (int(found[1]), float(found[2] or 0)) if found else (100, 0.0)
            script.text += " ".join(f"word{number}" for number in range(1, min(count, MAX_WORDS) + 1))
            script.pause_s = min(pause, MAX_PAUSE_S)
        case "fail":
            script.failure = FAILURES.get(rest, ModelUnavailable)("this is the failure that was asked for")
