"""Scripts: lines in a message that tell the offline model exactly what to answer, for tests and experiments.

!say TEXT              answer with this text; the lines that follow belong to it
!think TEXT            reason with this text first
!tool NAME {...}       call a tool; the text after the name becomes its arguments, unchanged
!long COUNT [SECONDS]  answer with so many words, with a pause after each
!fail [CODE]           fail with this model error, after the text
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hermes.errors import ModelError, ModelUnavailable

FAILURES = {each.code: each for each in ModelError.__subclasses__()}
"""The model errors that `!fail` can raise, by code."""

MAX_WORDS = 100_000
MAX_PAUSE_S = 60.0

_DIRECTIVE = re.compile(r"!(say|think|tool|long|fail)\b(?:[ \t]+(.*))?", re.DOTALL)
_LONG = re.compile(r"(\d{1,6})(?:\s+(\d+(?:\.\d+)?))?")


@dataclass(slots=True)
class Script:
    """An answer of the offline model."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """Names of tools with their arguments, unchanged."""
    pause_s: float = 0.0
    failure: ModelError | None = None


def is_directive(message: str) -> bool:
    """Whether a message begins with a directive."""
    return _DIRECTIVE.match(message) is not None


def read_script(message: str) -> Script | None:
    """Parse a message as a script; return None if it is an ordinary message."""
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
            script.failure = FAILURES.get(rest, ModelUnavailable)("this failure was requested with !fail")
