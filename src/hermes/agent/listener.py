"""The listener: receives the events of a turn."""

from __future__ import annotations

from hermes.agent.models.model import ToolCall
from hermes.agent.tools.results import ToolResult


class Listener:
    """Receives the events of a turn, on the thread of the turn; this base class ignores them."""

    def text(self, piece: str) -> None:
        """Receive the next piece of the answer."""

    def reasoning(self, piece: str) -> None:
        """Receive the next piece of the model's reasoning."""

    def tool_started(self, call: ToolCall) -> None:
        """Called before a tool runs."""

    def tool_output(self, tail: str) -> None:
        """Called several times a second while a command runs, with the end of its output so far."""

    def tool_finished(self, call: ToolCall, result: ToolResult) -> None:
        """Called after a tool has run and its result is stored."""

    def retrying(self, seconds: float, why: str) -> None:
        """Called before the model is asked again, in `seconds`."""

    def notice(self, text: str) -> None:
        """Receive one sentence for the user."""
