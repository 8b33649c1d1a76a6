"""Tells chats and those who may approve about requests of permission."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from hermes.errors import HermesError
from hermes.gateway.engine import texts
from hermes.gateway.engine.intents import last_account, notice_intent
from hermes.gateway.keys import build_session_key
from hermes.gateway.people.access import Access
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource, describe_chat
from hermes.log import warn

if TYPE_CHECKING:
    from hermes.gateway.engine.parts import EngineParts
    from hermes.gateway.engine.ports import Adapter
    from hermes.state.lanes.approvals import ApprovalRow
    from hermes.state.lanes.types import Intent


MOST_PENDING = 1000
"""So many requests are looked at when a node starts."""


class ApprovalNotices:
    """Sends each request once to the chat that it comes from, to home channels and to approvers."""

    def __init__(self, parts: EngineParts, adapters: Callable[[], Iterable[Adapter]] = tuple) -> None:
        """Create it; `adapters` returns those of this node, connected or not."""
        self._parts = parts
        self._adapters = adapters
        self._tasks: set[asyncio.Task[None]] = set()

    def requested(self, row: ApprovalRow, account: str) -> None:
        """Send the notices about a request that came through an account; this returns at once."""
        task = asyncio.create_task(self._send(row, account), name="hermes-approval")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def announce_pending(self) -> None:
        """Send the notices about requests whose node ended before it had stored all of them."""
        for row in await self._parts.db.approvals.pending(limit=MOST_PENDING):
            if await self._parts.db.outbox.find(_key_of(row)) is None:
                await self._send(row, await last_account(self._parts.db.outbox, row["session_key"]))

    async def expired(self, row: ApprovalRow) -> None:
        """Let the chat of a request learn that it was not approved in time."""
        lane = await self._parts.db.lanes.get(row["session_key"])
        if lane is None or not lane["origin"]:
            return
        await self._parts.db.inbox.accept(
            row["session_key"],
            {"internal": "approval", "approval_id": row["id"], "text": "", "source": lane["origin"]},
            platform=lane["platform"] or "unknown",
            account=await last_account(self._parts.db.outbox, row["session_key"]),
            delivery_id=f"approval:{row['id']}",
            kind="internal",
            node=self._parts.settings.holder,
        )
        self._parts.arrived(row["session_key"])

    async def _send(self, row: ApprovalRow, account: str) -> None:
        outbox = self._parts.db.outbox
        try:
            lane = await self._parts.db.lanes.get(row["session_key"])
            origin = None if lane is None or not lane["origin"] else SessionSource.from_stored(lane["origin"])
            for source in self._approver_chats():
                through = await self._account_for(source, origin, account)
                await outbox.intend(self._request(row, origin, source, through))
            if origin is not None:  # the last one: it says that the others are stored
                text, ttl_s = texts.approval_wanted(row["id"], row["summary"]), self._parts.settings.reply_ttl_s
                await outbox.intend(notice_intent(_key_of(row), text, origin, account, ttl_s, row["session_key"]))
            self._parts.delivered()
        except HermesError as error:
            warn(__name__, "the request %s was not announced: %s", row["id"], error)

    def _request(self, row: ApprovalRow, origin: SessionSource | None, source: SessionSource, account: str) -> Intent:
        """Return the intent to show a request to those who may approve it."""
        where = "a chat" if origin is None else f"{origin.platform.title} ({texts.shorten(_describe(origin), 80)})"
        # Several people may read a home channel: the whole request is for private chats.
        detail = row["detail"] if source.user_id else ""
        text = texts.approval_request(row["id"], where, detail or row["summary"])
        key = f"{_key_of(row)}:{source.platform.value}:{source.chat_id}"
        return notice_intent(key, text, source, account, self._parts.settings.reply_ttl_s)

    async def _account_for(self, source: SessionSource, origin: SessionSource | None, account: str) -> str:
        """Return the account that reaches an approver: the one of their chat, else one that this node serves."""
        chats = self._parts.gateway_config
        key = build_session_key(source, chats.group_sessions_per_user, chats.thread_sessions_per_user)
        if rows := await self._parts.db.outbox.of_lane(key, limit=1):
            return rows[0]["account"]
        accounts = [each.account for each in self._adapters() if each.platform == source.platform.value]
        is_same = origin is not None and origin.platform == source.platform
        return account if is_same and (account in accounts or not accounts) else next(iter(accounts), "")

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


def _key_of(row: ApprovalRow) -> str:
    """Return the key of the notice to the chat of a request."""
    return f"notice:approval:{row['id']}"


def _describe(origin: SessionSource) -> str:
    """Return who asks and where; chats of the local socket are named like those of a platform."""
    chat, user = origin.chat_name or origin.chat_id, origin.user_name or origin.user_id or "user"
    return describe_chat(origin.chat_type, chat, user, origin.thread_id)
