"""Commands that start other work: /background and /restart."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from hermes.gateway.commands import texts
from hermes.gateway.commands.result import CommandResult, OtherMessage

if TYPE_CHECKING:
    from hermes.gateway.commands.context import CommandContext


MOST_TASKS = 10
"""So many background tasks of one chat wait or run at a time: they must not take all turns of the gateway."""


async def background(context: CommandContext) -> CommandResult:
    """Have a task done in a lane of its own."""
    if not context.args:
        return CommandResult(texts.BACKGROUND_USAGE)
    uid, db = context.row["uid"], context.services.db
    key = background_key(context.session_key, uid)
    busy = await db.turns.busy_lanes(background_prefix(context.session_key))
    # A command that runs again after a crash has started its task already.
    if len(busy) >= MOST_TASKS and key not in busy and await db.lanes.get(key) is None:
        return CommandResult(texts.too_many_tasks(MOST_TASKS))
    message = OtherMessage(
        session_key=key,
        payload={
            "text": context.args,
            "source": context.source.to_dict(),
            "type": "text",
            "background": True,
        },
        delivery_id=f"background:{uid}",
        platform=context.source.platform.value,
        kind="normal",
        account=context.row["account"],
    )
    return CommandResult(texts.BACKGROUND_STARTED, other=(message,))


def background_prefix(session_key: str) -> str:
    """Return how the lanes of a chat's background tasks begin."""
    return f"{session_key}:background:"


def background_key(session_key: str, uid: str) -> str:
    """Return the lane of a background task; the same whenever the command runs again."""
    return f"{background_prefix(session_key)}{hashlib.sha256(uid.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


async def restart(context: CommandContext) -> CommandResult:
    """Restart the gateway, once: a command from before the last start has been obeyed."""
    services = context.services
    if not services.access.is_admin(context.source):
        return CommandResult(texts.ONLY_ADMINS)
    if context.row["accepted_at"] < services.started_at:
        return CommandResult(texts.HAS_RESTARTED)
    services.restart()
    return CommandResult(texts.RESTARTING)
