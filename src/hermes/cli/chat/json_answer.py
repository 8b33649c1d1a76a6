"""`hermes -q TEXT --json`: one object with the answer, for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hermes.cli.chat.terminal.screen import Screen
from hermes.cli.display.terminal import write_json, write_stderr_json
from hermes.cli.display.wrapping import strip_codes
from hermes.errors import HermesError

if TYPE_CHECKING:
    from hermes.agent.turns.turn import TurnOutcome
    from hermes.cli.chat.chat_loop import Chat

SCHEMA = "hermes.answer/1"


class JsonScreen(Screen):
    """Shows nothing of a turn; what else the user should know is one JSON object per line of stderr."""

    def __init__(self) -> None:
        super().__init__(is_quiet=True)

    def print_answer(self, answer: str) -> None:
        """Write nothing: the answer is part of the object at the end."""

    def print_lines(self, lines: list[str]) -> None:
        """Write lines for the user as one warning."""
        write_stderr_json({"warning": {"message": "\n".join(map(strip_codes, lines))}})

    def print_error(self, error: HermesError, hint: str | None = None) -> None:
        """Write an error as JSON."""
        write_stderr_json({"error": _error(error, hint)})

    def print_dim(self, text: str) -> None:
        """Write nothing: progress is for people."""


def write_json_answer(chat: Chat) -> None:
    """Write the object of the last turn; nothing if no message was sent, because an error says why."""
    if chat.outcome is not None:
        write_json({"schema": SCHEMA, "item": _item(chat, chat.outcome)})


def _item(chat: Chat, outcome: TurnOutcome) -> dict[str, Any]:
    usage = asdict(outcome.usage)
    usage.pop("cost_usd")
    conversation = chat.conversation
    row = conversation.store.get_session(outcome.session_id) if conversation.is_stored else None
    return {
        "answer": outcome.text,
        "status": outcome.status,
        "session_id": outcome.session_id if conversation.is_stored else None,
        "title": None if row is None else row["title"],
        "model": conversation.model.name,
        "usage": {**usage, "is_estimated": outcome.is_estimated},
        "cost_usd": outcome.cost,
        "tool_calls": outcome.tool_calls,
        "error": None if outcome.error is None else _error(outcome.error),
    }


def _error(error: HermesError, hint: str | None = None) -> dict[str, str]:
    return {"code": error.code, "message": error.message, "hint": hint or error.hint}
