"""Which topic of a private chat a message belongs to, and which session the topic continues."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hermes.errors import InvalidValue, UnknownSession
from hermes.gateway.platform import Platform

if TYPE_CHECKING:
    from hermes.gateway.engine.ports import Inbound
    from hermes.gateway.entry import SessionEntry
    from hermes.gateway.source import SessionSource
    from hermes.gateway.store.aio import AsyncSessionStore
    from hermes.state.asynchronous.session_db import AsyncSessionDB
    from hermes.state.lanes.types import Lease
    from hermes.state.owner import Owner

LOBBY_COMMANDS: Final = frozenset({"approve", "deny", "help", "restart", "sessions", "status", "topic", "usage"})
"""The commands that are answered outside of topics."""
_LOBBY_THREADS = (None, "", "1")


class Topics:
    """Topics as users have chosen them with `/topic`; other chats stay as they are."""

    def __init__(self, db: AsyncSessionDB, store: AsyncSessionStore) -> None:
        self._db = db
        self._store = store

    async def place(self, inbound: Inbound, command: str | None) -> Inbound | None:
        """Return a message with the topic that it belongs to; None if it is outside of topics, where nothing is talked.

        Some apps of Telegram send replies without their topic: they belong to the topic that was used last.
        """
        source = inbound.source
        if not is_private(source) or not is_lobby(source) or not await self.is_enabled(source):
            return inbound
        if command in LOBBY_COMMANDS:
            return inbound
        if inbound.is_reply and command is None:
            rows = await self._db.list_telegram_topic_bindings_for_chat(chat_id=source.chat_id)
            last = next((row for row in rows if row["user_id"] == source.user_id), None)
            if last is not None:
                return replace(inbound, source=replace(source, thread_id=last["thread_id"]))
        return None

    async def is_enabled(self, source: SessionSource) -> bool:
        """Whether the user of a private chat has chosen topics for it."""
        user_id = source.user_id or ""
        return await self._db.is_telegram_topic_mode_enabled(chat_id=source.chat_id, user_id=user_id)

    async def follow(
        self, key: str, source: SessionSource, entry: SessionEntry, *, is_new_lane: bool, owner: Owner, lease: Lease
    ) -> SessionEntry:
        """Return the session of a topic's lane, after the topic and its lane agree: the newer choice counts.

        A lane that was removed meanwhile continues the session that its topic has.
        """
        if not is_private(source) or is_lobby(source) or not await self.is_enabled(source):
            return entry
        place = {"chat_id": source.chat_id, "thread_id": source.thread_id or ""}
        row = await self._db.get_telegram_topic_binding(**place)
        if row is not None and row["session_id"] == entry.session_id:
            return entry
        if row is not None and (is_new_lane or row["updated_at"] > entry.created_at.timestamp()):
            view = self._db.for_owner(owner)
            tip = await view.get_compression_tip(row["session_id"])
            if tip != entry.session_id and await view.get_session(tip) is not None:
                return await self._switch(key, entry, tip, owner, lease)
        await self.bind(key, source, entry.session_id)
        return entry

    async def bind(self, key: str, source: SessionSource, session_id: str) -> bool:
        """Let a topic continue a session; return False if another topic does."""
        try:
            await self._db.bind_telegram_topic(
                chat_id=source.chat_id,
                thread_id=source.thread_id or "",
                user_id=source.user_id or "",
                session_key=key,
                session_id=session_id,
            )
        except (InvalidValue, UnknownSession):  # it was just deleted, or linked to another topic
            return False
        return True

    async def _switch(self, key: str, entry: SessionEntry, tip: str, owner: Owner, lease: Lease) -> SessionEntry:
        try:
            switched = await self._store.switch_session(key, tip, owner=owner, lease=lease)
        except UnknownSession:  # it was just deleted
            return entry
        if switched is None:
            return entry
        await self._db.delete_session_if_empty(entry.session_id)
        return switched


def is_private(source: SessionSource) -> bool:
    """Whether a chat can have topics that its user chooses."""
    return source.platform is Platform.TELEGRAM and source.chat_type == "dm" and bool(source.user_id and source.chat_id)


def is_lobby(source: SessionSource) -> bool:
    """Whether a message was written outside of the topics of a chat."""
    return source.thread_id in _LOBBY_THREADS
