"""Conversations of the API: each is one lane, and its id is part of the ids of its answers."""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermes.gateway.keys import build_session_key
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.ids import new_session_id
from hermes.platforms.http.errors import ApiError
from hermes.platforms.http.principals import PLATFORM, owner_of_principal
from hermes.state.lanes.types import Decision, Keep, LaneRow, NewSession, Start
from hermes.state.sessions.lists.browsing import conversation_session_ids, find_conversations

if TYPE_CHECKING:
    from hermes.state.asynchronous.session_db import AsyncSessionDB

_CONVERSATION = re.compile(r"conv_([0-9a-f]{32})")
_ANSWER = re.compile(r"(?:resp_|chatcmpl-)([0-9a-f]{32})([0-9a-f]{24})")


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of a principal; the same digits are another one for another principal."""

    principal: str
    digits: str
    continues: str | None = None
    """The session that it continues from its first message on, if it is known by the id of one that has no lane."""

    @property
    def id(self) -> str:
        """The id that clients use."""
        return f"conv_{self.digits}"

    @property
    def source(self) -> SessionSource:
        """Where its messages come from."""
        return SessionSource(
            platform=Platform.API_SERVER,
            chat_id=f"{self.principal}/{self.digits}",
            user_id=self.principal,
            user_name=self.principal,
        )

    @property
    def key(self) -> str:
        """The key of its lane."""
        return build_session_key(self.source)


def new_conversation(principal: str, idempotency_key: str | None = None, *, route: str = "retry") -> Conversation:
    """Return a new conversation; with an idempotency key it is the same at every attempt on a route."""
    if idempotency_key is None:
        return Conversation(principal, secrets.token_hex(16))
    return Conversation(principal, _digits(route, principal, idempotency_key)[:32])


def new_message_digits(idempotency_key: str | None) -> str:
    """Return the id of a message; with an idempotency key it is the same at every attempt."""
    return secrets.token_hex(12) if idempotency_key is None else _digits("message", idempotency_key)[:24]


def answered_message(principal: str, answer_id: str) -> tuple[Conversation, str]:
    """Return the conversation and the message of the id of an answer; raise `ApiError` if it is none."""
    match = _ANSWER.fullmatch(answer_id)
    if match is None:
        raise missing_response()
    return Conversation(principal, match[1]), match[2]


def missing_response() -> ApiError:
    """Return the error for a response that does not exist, or belongs to another principal."""
    return ApiError(404, "not_found", "there is no such response")


def text_mark(text: str) -> str:
    """Return what recognizes a text whose message is repeated."""
    return _digits("text", text)[:16]


async def named_conversation(db: AsyncSessionDB, principal: str, name: str) -> Conversation:
    """Return the conversation with an id, the one that continues a session, or the one with a name of the client."""
    match = _CONVERSATION.fullmatch(name)
    if match is not None:
        return Conversation(principal, match[1])
    session = await db.for_owner(owner_of_principal(principal)).get_session(name)
    if session is None:
        return Conversation(principal, _digits("name", principal, name)[:32])
    prefix = f"{principal}/"
    lane = await db.lanes.find_by_session(name)
    chat = str((lane["origin"] or {}).get("chat_id", "")) if lane is not None else ""
    if chat.startswith(prefix):
        return Conversation(principal, chat.removeprefix(prefix))
    digits = _digits("session", principal, name)[:32]
    is_new = await db.lanes.get(Conversation(principal, digits).key) is None
    return Conversation(principal, digits, continues=name if is_new else None)


async def start(db: AsyncSessionDB, conversation: Conversation, history: Sequence[dict[str, Any]] = ()) -> None:
    """Store a conversation with the messages that it begins with, if it does not exist."""
    owner, source = owner_of_principal(conversation.principal), conversation.source
    session_id = conversation.continues or f"{new_session_id()}{secrets.token_hex(8)}"

    def choose(row: LaneRow | None, now: float) -> Decision:
        if row is not None:
            return Keep(touch=False)
        new = NewSession(session_id, PLATFORM, conversation.principal, owner.stored)
        return Start(new, {"platform": PLATFORM, "chat_type": "dm", "origin": source.to_dict()})

    resolved = await db.lanes.resolve(conversation.key, choose)
    view = db.for_owner(owner)
    if conversation.continues:
        await view.reopen_session(session_id)
    elif resolved.is_new_session and history:
        await view.append_messages(session_id, history)


async def sessions_of(db: AsyncSessionDB, principal: str, session_id: str) -> list[str]:
    """Return all sessions of the conversation with a session: a compressed one has several."""
    owner = owner_of_principal(principal)
    found = await asyncio.to_thread(find_conversations, db.store, [session_id], owner=owner)
    if session_id not in found:
        return []
    ids = await asyncio.to_thread(conversation_session_ids, db.store, found[session_id])
    view = db.for_owner(owner)
    return [each for each in ids if await view.get_session(each) is not None]


def _digits(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
