"""A tool call on one line, and how it ended."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from hermes.agent.models.model import ToolCall
from hermes.agent.safety.approval import refusal_for_user
from hermes.agent.tools.results import ToolResult
from hermes.cli.chat.tool_display.lines import last_lines, output_lines
from hermes.phrases import plural

MAIN_ARGUMENTS = ("command", "path", "query", "url", "name", "action", "text")
"""The argument that says most about a call is shown without its name."""
SHOWN_BELOW = {"edit_file": ("old", "new"), "write_file": ("content",)}
"""Arguments that are not part of the line, because the difference of the file below it shows them."""
MAX_REASON = 300
SHOWN_LINES = 5
"""How many lines of the output of a failed command are shown."""
NOTICEABLE_S = 2.0
"""If a tool that runs no command takes longer, its duration is shown."""

_STATE = re.compile(r"(?:\A|\n)\[([^\n\]]+)\]\s*\Z")
"""The last line of a command's result: how it ended."""


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a call ended."""

    text: str
    """Empty if there is nothing to say."""
    is_failure: bool = False
    lines: tuple[str, ...] = ()
    """The end of the output of a failed command."""


def describe_call(call: ToolCall) -> str:
    """Return the tool and its arguments; the most important one comes first."""
    try:
        arguments = json.loads(call.arguments or "{}")
        return " ".join(_words(call.name, arguments) if isinstance(arguments, dict) else [call.name, call.arguments])
    except (ValueError, RecursionError):  # a model can write anything
        return f"{call.name} {call.arguments}".rstrip()


def _words(tool: str, arguments: dict[str, Any]) -> list[str]:
    main = next((each for each in MAIN_ARGUMENTS if isinstance(value := arguments.get(each), str) and value), None)
    words = [tool, *([arguments.pop(main)] if main else [])]
    for name in SHOWN_BELOW.get(tool, ()):
        arguments.pop(name, None)
    words += [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in arguments.items()]
    return words


def output_of(result: ToolResult) -> str:
    """Return the output of a tool without the line that says how a command ended."""
    reason = _error_of(result.text)
    if reason is not None:
        return refusal_for_user(reason)
    return _STATE.sub("", result.text) if result.exit_code is not None or result.is_error else result.text


def describe_end(result: ToolResult, seconds: float) -> CallEnd:
    """Return how a call ended, and after how many seconds."""
    took = f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    output = output_of(result)
    if result.is_error:
        reason, state = _error_of(result.text), _STATE.search(result.text)
        if reason is not None or state is None:
            return CallEnd(shorten(refusal_for_user(reason or result.text)), is_failure=True)
        how = result.end or state[1]
        return CallEnd(shorten(f"{how}, {took}"), is_failure=True, lines=tuple(last_lines(output, SHOWN_LINES)))
    if result.end:
        return CallEnd(shorten(result.end))
    count = len(output_lines(output))
    size = f", {plural(count, 'line')}" if count else ""
    if result.exit_code is not None:
        state = _STATE.search(result.text)
        how = state[1] if state is not None else f"exit code {result.exit_code}"
        is_failure = result.exit_code != 0
        return CallEnd(f"{how}, {took}{size}", is_failure, tuple(last_lines(output, SHOWN_LINES if is_failure else 0)))
    return CallEnd(f"{took}{size}" if seconds >= NOTICEABLE_S else "")


def shorten(text: str) -> str:
    """Return a reason on one line, cut if it is long."""
    text = " ".join(text.split())
    return text if len(text) <= MAX_REASON else f"{text[: MAX_REASON - 1]}…"


def _error_of(text: str) -> str | None:
    """Return the error in the result of a failed tool; None if it is no description of an error."""
    if not text.startswith('{"error"'):
        return None
    try:
        return str(json.loads(text)["error"])
    except (ValueError, RecursionError):  # the output of a command can begin like an error
        return None
