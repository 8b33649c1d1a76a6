"""Run a command by its name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from hermes.errors import HermesError, InvalidValue, StaleLease, StoreError
from hermes.gateway.commands import approvals, control, information, starting, switching, texts, topics, turns
from hermes.gateway.commands.result import CommandResult

if TYPE_CHECKING:
    from hermes.gateway.commands.context import CommandContext

Handler = Callable[["CommandContext"], Awaitable[CommandResult]]

HANDLERS: Final[dict[str, Handler]] = {
    "approve": approvals.approve,
    "background": control.background,
    "branch": switching.branch,
    "compress": turns.compress,
    "deny": approvals.deny,
    "help": information.show_help,
    "model": information.model,
    "new": starting.new,
    "queue": information.queue,
    "restart": control.restart,
    "resume": switching.resume,
    "retry": turns.retry,
    "sessions": switching.sessions,
    "status": information.status,
    "steer": information.steer,
    "stop": starting.stop,
    "title": switching.title,
    "topic": topics.topic,
    "undo": turns.undo,
    "usage": information.usage,
}


async def run_command(context: CommandContext) -> CommandResult:
    """Run a command and return its result; it can run again after a crash.

    Raise `StaleLease` if another node has the lane, and `StoreError` if the database fails. Other errors are the reply.
    """
    handler = HANDLERS.get(context.name)
    if handler is None:
        raise InvalidValue(f"there is no command /{context.name}")
    try:
        return await handler(context)
    except (StaleLease, StoreError):
        raise
    except HermesError as error:
        return CommandResult(texts.failed(error))
