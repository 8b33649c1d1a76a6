"""Who is told what happens during a turn."""

from __future__ import annotations

from hermes.agent.models.model import ToolCall
from hermes.agent.tools.results import ToolResult


class Listener:
    """Hears of a turn as it happens, on the thread of the turn; this one does nothing with it."""

    def text(self, piece: str) -> None:
        """The next piece of the answer."""

    def reasoning(self, piece: str) -> None:
        """The next piece of what the model thinks."""

    def tool_started(self, call: ToolCall) -> None:
        """A tool is about to run."""

    def tool_finished(self, call: ToolCall, result: ToolResult) -> None:
        """A tool has answered, and its answer is stored."""

    def retrying(self, seconds: float, why: str) -> None:
        """The model is asked again after so many seconds."""

    def notice(self, text: str) -> None:
        """Something that the person should know, in one sentence."""
