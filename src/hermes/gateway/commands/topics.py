"""The command /topic: topics of a private chat on Telegram."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.errors import AmbiguousSession
from hermes.gateway.commands import texts
from hermes.gateway.commands.lane import asked_lane, view_of
from hermes.gateway.commands.result import CommandResult
from hermes.gateway.commands.switching import named_session, resume
from hermes.gateway.topics import texts as topic_texts
from hermes.gateway.topics.routing import is_lobby, is_private

if TYPE_CHECKING:
    from hermes.gateway.commands.context import CommandContext

_MOST_LISTED = 10


async def topic(context: CommandContext) -> CommandResult:
    """Turn topics on or off, show what a topic continues, or continue a session in it."""
    source, choice = context.source, context.args.strip()
    if not is_private(source):
        return CommandResult(topic_texts.ONLY_PRIVATE)
    if choice.lower() in ("help", "?"):
        return CommandResult(topic_texts.HELP)
    if choice.lower() == "off":
        await context.services.db.disable_telegram_topic_mode(chat_id=source.chat_id)
        return CommandResult(topic_texts.DISABLED)
    is_enabled = await context.services.db.is_telegram_topic_mode_enabled(
        chat_id=source.chat_id, user_id=source.user_id or ""
    )
    if choice.lower() == "on" or (not choice and not is_enabled):
        return await _enable(context)
    if not is_enabled:
        return CommandResult(topic_texts.NOT_ENABLED)
    if not choice:
        return await (_overview(context) if is_lobby(source) else _linked(context))
    return CommandResult(topic_texts.IN_A_TOPIC) if is_lobby(source) else await _continue(context)


async def _enable(context: CommandContext) -> CommandResult:
    source = context.source
    has_topics, may_create = await context.services.topics_of(source.platform.value, context.row["account"])
    if has_topics is False:
        return CommandResult(topic_texts.NOT_ALLOWED)
    await context.services.db.enable_telegram_topic_mode(
        chat_id=source.chat_id,
        user_id=source.user_id or "",
        has_topics_enabled=has_topics,
        allows_users_to_create_topics=may_create,
    )
    return CommandResult(topic_texts.ENABLED)


async def _overview(context: CommandContext) -> CommandResult:
    db, chat, user = context.services.db, context.source.chat_id, context.source.user_id or ""
    rows = await db.list_telegram_topic_bindings_for_chat(chat_id=chat)
    unlinked = await db.list_unlinked_telegram_sessions_for_user(chat_id=chat, user_id=user, limit=_MOST_LISTED)
    entries = [
        topic_texts.listed(row["id"], texts.shorten(row["title"] or row["preview"], texts.MAX_ECHO))
        for row in unlinked
        if row["message_count"]
    ]
    return CommandResult(topic_texts.overview(len(rows), entries))


async def _linked(context: CommandContext) -> CommandResult:
    lane = await asked_lane(context)
    row = await view_of(context, lane).get_session(lane.session_id) if lane.session_id else None
    if row is None:
        return CommandResult(topic_texts.NOTHING_LINKED)
    return CommandResult(topic_texts.linked(texts.session_name(row["id"], row["title"])))


async def _continue(context: CommandContext) -> CommandResult:
    """Continue a session of the user in this topic, as `/resume` does, unless another topic continues it."""
    db, source = context.services.db, context.source
    lane = await asked_lane(context)
    try:
        session_id = await named_session(context, lane, context.args)
    except AmbiguousSession:
        return CommandResult(texts.SEVERAL_SESSIONS)
    linked = None if session_id is None else await db.get_telegram_topic_binding_by_session(session_id=session_id)
    if linked is not None and (linked["chat_id"], linked["thread_id"]) != (source.chat_id, source.thread_id):
        return CommandResult(topic_texts.ELSEWHERE)
    return await resume(context)
