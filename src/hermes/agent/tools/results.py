"""Results of tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes.agent.history.text_limits import limit_text

if TYPE_CHECKING:
    from hermes.agent.safety.diffs import FileDiff

_MAX_ERROR_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call, for the model."""

    text: str
    is_error: bool = False
    exit_code: int | None = None
    """How a command has ended, for the user: its exit code, or the negative number of a signal."""
    end: str = ""
    """How the call has ended, for the user, if that needs other words than those in the text."""
    diff: FileDiff | None = None
    """What the call has changed in a file, for the user."""


def failure(message: str, **details: str) -> ToolResult:
    """Return a result that describes a failure."""
    message = limit_text(message, _MAX_ERROR_CHARACTERS, more="ask for less at once")
    return ToolResult(json.dumps({"error": message, **details}, ensure_ascii=False), is_error=True)
