"""Commands that start a new session or stop the present one: /new and /stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.errors import InvalidTitle, TitleTaken
from hermes.gateway.commands import texts
from hermes.gateway.commands.lane import AskedLane, asked_lane, fresh_lane, view_of
from hermes.gateway.commands.result import CommandResult

if TYPE_CHECKING:
    from hermes.gateway.commands.context import CommandContext
    from hermes.gateway.entry import SessionEntry

_PAGE = 200
_OF_PEOPLE = ("normal", "queue", "steer", "command")


async def new(context: CommandContext) -> CommandResult:
    """Start a new session in the lane; older messages that wait or are held are discarded."""
    services, key = context.services, context.session_key
    lane = await asked_lane(context)
    await context.confirm_lease()
    discarded = 0 if lane.is_foreign else await _discard_older(context)
    before = await services.store.peek(context.source) if lane.row is not None else None
    if before is not None:
        await _finalize(context, before)
    entry = await services.store.reset_session(key, lease=context.lease) if before is not None else None
    if entry is None:
        entry = await fresh_lane(context, lane)
    services.brain.forget(key)
    services.brain.set_model(key, None)
    title, refused = await _give_title(context, lane, entry.session_id)
    if before is not None:
        await services.emit("session:end", _event(context, before.session_id, reason="new_session"))
    await services.emit("session:reset", _event(context, entry.session_id, reason="new_session"))
    text = texts.new_session(title, before.session_id if before is not None else None, discarded)
    return CommandResult(texts.lines((text, refused)))


async def stop(context: CommandContext) -> CommandResult:
    """Suspend the lane, so that its next message starts a new session, and hold its queued messages."""
    services, key = context.services, context.session_key
    lane = await asked_lane(context)
    if lane.is_foreign:
        return CommandResult(texts.NOTHING_TO_STOP)
    held = await services.db.turns.hold(context.lease, reason="/stop")
    services.brain.forget(key)
    if lane.row is None or not await services.store.suspend_session(key, lease=context.lease):
        return CommandResult(texts.NOTHING_TO_STOP)
    # A command that runs again after a crash finds the messages held already.
    held = max(held, len(await services.db.inbox.held(key, limit=_PAGE)))
    return CommandResult(texts.stopped(lane.session_id, held))


async def _discard_older(context: CommandContext) -> int:
    """Discard the messages of the lane that are older than the command, and return how many users have sent."""
    db, lease = context.services.db, context.lease
    await db.turns.unhold(lease)
    count = 0
    while True:
        waiting = await db.inbox.waiting(context.session_key, limit=_PAGE)
        older = [row for row in waiting if row["id"] < context.row["id"]]
        if not older:
            return count
        ids = [row["id"] for row in older]
        await db.turns.settle(lease, ids, state="discarded", reason=f"/{context.name} started a new session")
        count += sum(row["kind"] in _OF_PEOPLE for row in older)


async def _finalize(context: CommandContext, entry: SessionEntry) -> None:
    services = context.services
    if services.finalize is not None:
        await services.finalize(entry, "new_session", context.lease)
    else:
        await services.emit("on_session_finalize", _event(context, entry.session_id, reason="new_session"))


async def _give_title(context: CommandContext, lane: AskedLane, session_id: str) -> tuple[str | None, str]:
    """Give the new session the requested title; return it, or why there is none."""
    if not context.args:
        return None, ""
    view = view_of(context, lane)
    try:
        title = view.sanitize_title(context.args)
        if title is None:
            return None, texts.title_refused(texts.EMPTY_TITLE)
        await view.set_session_title(session_id, title)
    except TitleTaken:
        return None, texts.title_refused(texts.title_taken(context.args))
    except InvalidTitle as error:
        return None, texts.title_refused(texts.failed(error))
    return title, ""


def _event(context: CommandContext, session_id: str, **more: str) -> dict[str, Any]:
    """Return what a hook learns: plain values."""
    source = context.source
    return {
        "session_key": context.session_key,
        "session_id": session_id,
        "platform": source.platform.value,
        "chat_id": source.chat_id,
        "user_id": source.user_id,
        **more,
    }
