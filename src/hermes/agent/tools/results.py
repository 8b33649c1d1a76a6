"""What tools answer."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hermes.agent.history.text_limits import limit_text

_MAX_ERROR_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answers to the model."""

    text: str
    is_error: bool = False


def failure(message: str, **details: str) -> ToolResult:
    """A result that says what went wrong."""
    message = limit_text(message, _MAX_ERROR_CHARACTERS, more="look at less at once")
    return ToolResult(json.dumps({"error": message, **details}, ensure_ascii=False), is_error=True)
