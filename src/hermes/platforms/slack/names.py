"""Names of users and chats, and kinds of chats, which Slack is asked about at most once an hour."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from hermes.gateway.engine.ports import MaybeSent, NotSent
from hermes.platforms.slack.api import SlackApi
from hermes.platforms.slack.events import ChatKind
from hermes.platforms.slack.failures import Refused

_MOST = 2000
_GOOD_FOR_S = 3600.0
_PATIENCE_S = 5.0
_METHODS = {"user": "users.info", "channel": "conversations.info"}
_MAX_NAME = 80


class Names:
    """What is known about users and chats."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api
        self._known: OrderedDict[str, tuple[float, Mapping[str, Any]]] = OrderedDict()

    async def of_user(self, user: str) -> str | None:
        """Return the name that a user shows to others; None if Slack does not tell."""
        found = await self._get(user, "user")
        profile = found.get("profile")
        shown = profile.get("display_name") if isinstance(profile, dict) else None
        return _one_line(shown) or _one_line(found.get("real_name")) or _one_line(found.get("name"))

    async def of_users(self, users: Sequence[str]) -> Mapping[str, str]:
        """Return the names of users, without those that Slack does not tell."""
        names = await asyncio.gather(*(self.of_user(user) for user in users))
        return {user: name for user, name in zip(users, names, strict=True) if name}

    async def of_chat(self, channel: str) -> str | None:
        """Return the name of a channel; None if it has none."""
        return _one_line((await self._chat(channel)).get("name"))

    async def kind_of_chat(self, channel: str) -> ChatKind:
        """Return the kind of a chat, which is a channel if the bot may not know; raise if Slack cannot be asked now."""
        found = await self._chat(channel, is_needed=True)
        return "im" if found.get("is_im") else "mpim" if found.get("is_mpim") else "channel"

    async def _chat(self, channel: str, *, is_needed: bool = False) -> Mapping[str, Any]:
        return await self._get(channel, "channel", is_needed=is_needed)

    async def _get(self, key: str, kind: Literal["user", "channel"], *, is_needed: bool = False) -> Mapping[str, Any]:
        """Return an object that Slack describes, empty if it does not tell; a name is not worth a failure."""
        now = time.monotonic()
        until, known = self._known.get(key, (0.0, {}))
        if now < until:
            return known
        try:
            async with asyncio.timeout(_PATIENCE_S):
                found = (await self._api.ask(_METHODS[kind], **{kind: key})).get(kind)
        except (NotSent, MaybeSent, TimeoutError) as error:
            if not isinstance(error, Refused) or not (error.is_final or error.is_unreadable):
                if is_needed and not known:
                    raise NotSent("Slack does not say what kind of chat it is") from error
                return known
            found = None
        known = found if isinstance(found, dict) else {}
        self._known[key] = (now + _GOOD_FOR_S, known)
        self._known.move_to_end(key)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
        return known


def _one_line(name: object) -> str | None:
    """Return a name for one line of text; None if it is none."""
    text = "".join(each if each.isprintable() else " " for each in name[:_MAX_NAME]) if isinstance(name, str) else ""
    return " ".join(text.split()) or None
