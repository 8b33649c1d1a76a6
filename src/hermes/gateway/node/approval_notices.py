"""Tells chats and those who may approve about requests of permission."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes.errors import HermesError
from hermes.gateway.engine import texts
from hermes.gateway.engine.intents import last_account, notice_intent
from hermes.gateway.people.access import Access
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource, describe_chat
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.gateway.engine.parts import EngineParts
    from hermes.state.lanes.approvals import ApprovalRow
    from hermes.state.lanes.types import Intent


class ApprovalNotices:
    """Sends each request once to the chat that it comes from, to home channels and to approvers."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._tasks: set[asyncio.Task[None]] = set()

    def requested(self, row: ApprovalRow) -> None:
        """Send the notices about a request; this returns at once."""
        task = asyncio.create_task(self._send(row), name="hermes-approval")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, row: ApprovalRow) -> None:
        try:
            lane = await self._parts.db.lanes.get(row["session_key"])
            origin = None if lane is None or not lane["origin"] else SessionSource.from_stored(lane["origin"])
            account = await last_account(self._parts.db.outbox, row["session_key"])
            for intent in self._intents(row, origin, account):
                await self._parts.db.outbox.intend(intent)
            self._parts.delivered()
        except HermesError as error:
            warn(__name__, "the request %s was not announced: %s", row["id"], error)

    def _intents(self, row: ApprovalRow, origin: SessionSource | None, account: str) -> list[Intent]:
        ttl_s, number = self._parts.settings.reply_ttl_s, row["id"]
        intents = []
        if origin is not None:
            text = texts.approval_wanted(number, row["summary"])
            key = f"notice:approval:{number}"
            intents.append(notice_intent(key, text, origin, account, ttl_s, row["session_key"]))
        where = "a chat" if origin is None else f"{origin.platform.title} ({texts.shorten(_describe(origin), 80)})"
        for source in self._approver_chats():
            # Several people may read a home channel: the whole request is for private chats.
            detail = row["detail"] if source.user_id else ""
            text = texts.approval_request(number, where, detail or row["summary"])
            key = f"notice:approval:{number}:{source.platform.value}:{source.chat_id}"
            intents.append(notice_intent(key, text, source, "", ttl_s))
        return intents

    def _approver_chats(self) -> list[SessionSource]:
        """Return the home channels, and the private chats of those who may approve."""
        config, chats = self._parts.gateway_config, {}
        for platform in config.get_connected_platforms():
            home = config.get_home_channel(platform)
            if home is not None:
                chats[platform.value, home.chat_id] = SessionSource(platform, home.chat_id, thread_id=home.thread_id)
        for name, user in sorted(Access.of(self._parts.config).approvers):
            chats.setdefault((name, user), SessionSource(Platform.from_stored(name), user, user_id=user))
        return list(chats.values())


def _describe(origin: SessionSource) -> str:
    """Return who asks and where; chats of the local socket are named like those of a platform."""
    chat, user = origin.chat_name or origin.chat_id, origin.user_name or origin.user_id or "user"
    return describe_chat(origin.chat_type, chat, user, origin.thread_id)
