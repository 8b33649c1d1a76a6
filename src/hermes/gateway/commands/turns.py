"""Commands about the messages of a session: /retry, /undo and /compress."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hermes.gateway.commands import texts
from hermes.gateway.commands.lane import AskedLane, asked_lane, change_extra, fenced_view, view_of
from hermes.gateway.commands.result import CommandResult, TurnSpec
from hermes.state.rows import flatten_text

if TYPE_CHECKING:
    from hermes.agent.compression.compress import CompressionResult
    from hermes.agent.conversation import Conversation
    from hermes.gateway.commands.context import CommandContext

UNDO = "undo"
"""The key in a lane's `extra` with the target of the last /undo: a command that runs again undoes nothing more."""
MOST_TURNS = 1000
_HERE = re.compile(r"(?:up to )?here(?:\s+([1-9][0-9]?))?", re.IGNORECASE)
_KEPT = 2


async def retry(context: CommandContext) -> CommandResult:
    """Have the last message answered again."""
    lane = await asked_lane(context)
    if (refusal := _refusal(lane, texts.NOTHING_TO_RETRY)) is not None:
        return refusal
    if not await view_of(context, lane).list_recent_user_messages(lane.session_id, 1):
        return CommandResult(texts.NOTHING_TO_RETRY)
    await context.services.store.update_session(context.session_key)
    return CommandResult(turn=TurnSpec(is_retry=True))


async def undo(context: CommandContext) -> CommandResult:
    """Undo the last turns."""
    count = _parse_count(context.args)
    if count is None:
        return CommandResult(texts.undo_usage(context.args))
    lane = await asked_lane(context)
    target = _noted_target(context, lane)
    if target is None and (refusal := _refusal(lane, texts.NOTHING_TO_UNDO)) is not None:
        return refusal
    target = target or await _undo_target(context, lane, count)
    if target is None:
        return CommandResult(texts.NOTHING_TO_UNDO)
    undone = await fenced_view(context, lane).rewind_to_message(target["session"], target["message"])
    await context.services.store.update_session(context.session_key, last_prompt_tokens=0)
    context.services.brain.forget(context.session_key)
    text = flatten_text(undone["target_message"]["content"])
    return CommandResult(texts.undone(target["turns"], undone["rewound_count"], text))


async def compress(context: CommandContext) -> CommandResult:
    """Replace the older messages of the session with a summary."""
    lane = await asked_lane(context)
    if (refusal := _refusal(lane, texts.NOTHING_TO_COMPRESS)) is not None:
        return refusal
    here = _HERE.fullmatch(context.args)
    focus, keep = (None, int(here[1] or _KEPT)) if here else (context.args or None, None)

    def work(conversation: Conversation) -> CompressionResult:
        return conversation.compress(focus, keep)

    services, key = context.services, context.session_key
    done = await services.brain.work(key, lane.session_id, lane.owner, context.lease, work)
    if not done.is_changed:
        return CommandResult(texts.not_compressed(done.reason))
    await services.store.update_session(key, last_prompt_tokens=0)
    services.brain.forget(key)
    return CommandResult(
        texts.compressed(done.messages_before, done.messages_after, done.tokens_before, done.tokens_after)
    )


def _noted_target(context: CommandContext, lane: AskedLane) -> dict[str, Any] | None:
    """Return the target that this same command has noted, before a crash."""
    noted = None if lane.row is None else lane.row["extra"].get(UNDO)
    return noted if isinstance(noted, dict) and noted.get("uid") == context.row["uid"] else None


async def _undo_target(context: CommandContext, lane: AskedLane, count: int) -> dict[str, Any] | None:
    """Return the message to undo from, and note it before anything is undone; None if there is none."""
    recent = await view_of(context, lane).list_recent_user_messages(lane.session_id, count)
    if not recent:
        return None
    target = {
        "uid": context.row["uid"],
        "session": lane.session_id,
        "message": recent[-1]["id"],
        "turns": len(recent),
    }
    await change_extra(context.services.db, context.session_key, lambda extra: {**extra, UNDO: target})
    return target


def _parse_count(text: str) -> int | None:
    """Return the number of turns; None if the text is no number."""
    if not text:
        return 1
    if not (text.isascii() and text.isdecimal() and int(text[:9]) > 0):
        return None
    return min(int(text[:9]), MOST_TURNS)


def _refusal(lane: AskedLane, nothing: str) -> CommandResult | None:
    """Return why a command cannot work on the lane's messages; None if it can."""
    if lane.row is None or not lane.row["message_count"]:
        return CommandResult(nothing)
    return CommandResult(texts.IS_STOPPED) if lane.row["suspended"] else None
