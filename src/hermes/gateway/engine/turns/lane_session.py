"""The session of a lane at the start of a turn: which one it is, what is new about it, and what the model learns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from hermes.gateway.context import build_session_context
from hermes.gateway.decide import ResetReason, decide
from hermes.gateway.engine import texts
from hermes.gateway.engine.intents import notice_intent
from hermes.gateway.engine.turns.sender_labels import label_senders, name_of
from hermes.gateway.keys import build_session_key, is_shared_multi_user_session, lane_owner, session_user
from hermes.gateway.prompt import build_session_context_prompt, build_turn_note
from hermes.gateway.redaction import hash_user_id
from hermes.gateway.store.lane_entries import chosen_model, entry_from_row
from hermes.ids import new_session_id
from hermes.state.lanes.types import Decision, Keep, LaneRow, NewSession, Start

if TYPE_CHECKING:
    from hermes.gateway.engine.messages import Message
    from hermes.gateway.engine.parts import EngineParts
    from hermes.gateway.entry import SessionEntry
    from hermes.gateway.source import SessionSource
    from hermes.state.lanes.types import Intent, Lease
    from hermes.state.owner import Owner


@dataclass(frozen=True, slots=True)
class LaneSession:
    """The session that a turn runs in."""

    entry: SessionEntry
    owner: Owner
    is_shared: bool
    is_new: bool
    notes: Sequence[str]
    context: str
    skills: Sequence[str] = ()
    """The skills that belong to the chat, which its sessions get when they start."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The name of each sender, if users share the session."""


async def open_lane_session(parts: EngineParts, key: str, messages: Sequence[Message], lease: Lease) -> LaneSession:
    """Return the session of a lane; rules may start a new one, and the old one is finalized then."""
    last = messages[-1]
    source = last.source
    is_shared = is_shared_source(parts, source)
    owner = lane_owner(source, key, is_shared=is_shared)
    row = await parts.db.lanes.get(key)
    before = None if row is None else entry_from_row(row)
    if last.is_background or _key_of(parts, source) != key:
        is_shared, owner = _kept_owner(row, source, key, is_shared=is_shared)
        entry = await _resolve_by_key(parts, key, source, owner)
    else:
        if before is not None and (reason := await _end_reason(parts, before)) is not None:
            await parts.finalize(before, reason, lease)
        # A session of another owner can only come from an import; it is not continued.
        is_foreign = row is not None and row["owner"] != owner.stored
        entry = await parts.store.get_or_create_session(source, force_new=is_foreign, lease=lease)
        if parts.topics is not None:
            entry = await parts.topics.follow(key, source, entry, is_new_lane=row is None, owner=owner, lease=lease)
    has_changed = before is not None and before.session_id != entry.session_id
    parts.brain.set_model(key, None if has_changed else chosen_model(row))
    if entry.was_auto_reset:
        notice = _reset_notice(parts, entry, last, key)
        if notice is not None:
            await parts.db.outbox.intend(notice)
            parts.delivered()
    is_new = row is None or has_changed or not row["message_count"]
    context = build_session_context(source, parts.gateway_config, entry)
    return LaneSession(
        entry=entry,
        owner=owner,
        is_shared=is_shared,
        is_new=is_new,
        notes=tuple(_notes(parts, entry, messages)),
        context=build_session_context_prompt(context, redact_pii=parts.gateway_config.redact_pii),
        skills=bound_skills(parts.config.channel_skills, messages),
        labels=await label_senders(parts.db, key, messages) if is_shared else {},
    )


def bound_skills(channel_skills: Mapping[str, Sequence[str]], messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the skills of a chat and of its topic, from the settings and from its adapter, each once."""
    source = messages[-1].source
    chats = [each for each in (source.parent_chat_id, source.chat_id) if each]
    places = [f"{source.platform.value}:{chat}" for chat in chats]
    if source.thread_id:
        places += [f"{place}:{source.thread_id}" for place in places]
    names = [name for place in places for name in channel_skills.get(place, ())]
    return tuple(dict.fromkeys([*names, *(name for each in messages for name in each.skills)]))


def is_shared_source(parts: EngineParts, source: SessionSource) -> bool:
    """Whether several users share the lane of a message."""
    return is_shared_multi_user_session(
        source,
        group_sessions_per_user=parts.gateway_config.group_sessions_per_user,
        thread_sessions_per_user=parts.gateway_config.thread_sessions_per_user,
    )


def text_for_model(message: Message, *, is_shared: bool, redacts: bool = False, label: str | None = None) -> str:
    """Return the text of a user's message; in a shared session it begins with the name of its sender, or with `label`.

    With `redacts`, a hash stands for that name where the platform allows it. Its files are no part of the text: the
    brain reads them and names them.
    """
    parts = []
    if message.reply_to_text:
        parts.append(f'[In reply to: "{texts.shorten(message.reply_to_text, 500)}"]')
    if message.text:
        parts.append(message.text)
    text = "\n".join(parts) or ("" if message.media else "[empty message]")
    name = _sender_name(message.source, label, redacts=redacts) if is_shared else ""
    return f"[{name}] {text}".rstrip(" ") if name else text


async def _end_reason(parts: EngineParts, entry: SessionEntry) -> str | None:
    """Return why the session of a lane ends now and must be finalized; None if it continues, or was finalized."""
    if entry.expiry_finalized:
        return None
    policy = parts.gateway_config.get_reset_policy(entry.platform, entry.chat_type)
    now = datetime.fromtimestamp(parts.clock(), parts.gateway_config.zone)
    reason = decide(entry, policy, now, has_processes=False)
    if reason is None or reason is ResetReason.SUSPENDED:
        return None if reason is None else "session_stopped"
    if parts.has_processes is not None and await asyncio.to_thread(parts.has_processes, entry.session_key):
        reason = decide(entry, policy, now, has_processes=True)
    return None if reason is None else "session_expired"


def _sender_name(source: SessionSource, label: str | None, *, redacts: bool) -> str:
    if redacts and source.platform.allows_redaction:
        user = source.participant or source.user_name
        return hash_user_id(user) if user else ""
    return name_of(source) if label is None else label


def _notes(parts: EngineParts, entry: SessionEntry, messages: Sequence[Message]) -> list[str]:
    notes = []
    if entry.was_auto_reset:
        notes.append(texts.reset_note(entry.auto_reset_reason))
    if entry.resume_pending and _is_fresh(parts, entry):
        has_message = any(each.internal is None for each in messages)
        notes.append(texts.resume_note(entry.resume_reason, has_message=has_message))
    notes += [note for note in (build_turn_note(messages[-1].source),) if note]
    return notes


def _is_fresh(parts: EngineParts, entry: SessionEntry) -> bool:
    marked = entry.last_resume_marked_at or entry.updated_at
    freshness_s = parts.settings.freshness_s
    return freshness_s <= 0 or parts.clock() - marked.timestamp() <= freshness_s


def _reset_notice(parts: EngineParts, entry: SessionEntry, message: Message, key: str) -> Intent | None:
    """Return the notice about a reset, if the policy wants one and there was something to lose."""
    policy = parts.gateway_config.get_reset_policy(entry.platform, entry.chat_type)
    is_wanted = entry.auto_reset_reason == "suspended" or (
        policy.notify
        and entry.reset_had_activity
        and message.source.platform.value not in policy.notify_exclude_platforms
    )
    if not is_wanted:
        return None
    text = texts.reset_notice(entry.auto_reset_reason, policy.idle_minutes, policy.at_hour)
    ttl_s = parts.settings.reply_ttl_s
    return notice_intent(f"notice:reset:{entry.session_id}", text, message.source, message.account, ttl_s, key)


def _key_of(parts: EngineParts, source: SessionSource) -> str:
    config = parts.gateway_config
    return build_session_key(source, config.group_sessions_per_user, config.thread_sessions_per_user)


def _kept_owner(row: LaneRow | None, source: SessionSource, key: str, *, is_shared: bool) -> tuple[bool, Owner]:
    """Return whether users share a lane, and its owner, as they were when its session started.

    The settings may have changed since then: messages that waited meanwhile are answered in the session that their
    sender wrote in.
    """
    if row is not None:
        for each in (is_shared, not is_shared):
            owner = lane_owner(source, key, is_shared=each)
            if row["owner"] == owner.stored:
                return each, owner
    return is_shared, lane_owner(source, key, is_shared=is_shared)


async def _resolve_by_key(parts: EngineParts, key: str, source: SessionSource, owner: Owner) -> SessionEntry:
    """Return the session of a lane that has a key of its own, such as that of a background task."""
    session = NewSession(
        new_session_id(parts.clock()), source.platform.value, session_user(source), owner.stored or key
    )

    def choose(row: LaneRow | None, now: float) -> Decision:
        if row is not None:
            return Keep()
        return Start(
            session,
            {"platform": source.platform.value, "chat_type": source.chat_type[:200], "origin": source.to_dict()},
        )

    resolved = await parts.db.lanes.resolve(key, choose, now=parts.clock())
    return entry_from_row(resolved.lane)
