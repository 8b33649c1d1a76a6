"""Threads in which the bot takes part: there, messages are for it also without a mention."""

from __future__ import annotations

from collections import OrderedDict

from hermes.platforms.slack.api import SlackApi
from hermes.platforms.slack.failures import Refused
from hermes.platforms.slack.mrkdwn import mentions

_MOST = 5000
_PAGE, _MOST_PAGES = 200, 5


class Threads:
    """What is known about threads; only that the bot takes part is remembered, as it may begin to at any time."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api
        self._joined: OrderedDict[tuple[str, str], None] = OrderedDict()

    def note(self, channel: str, thread: str) -> None:
        """Remember that the bot takes part in a thread."""
        self._joined[channel, thread] = None
        self._joined.move_to_end((channel, thread))
        if len(self._joined) > _MOST:
            self._joined.popitem(last=False)

    async def contains(self, channel: str, thread: str, user: str) -> bool:
        """Whether the bot has written or was named in a thread; Slack is asked if this process has not seen it."""
        if (channel, thread) in self._joined:
            return True
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            try:
                data = await self._api.ask(
                    "conversations.replies", channel=channel, ts=thread, limit=_PAGE, cursor=cursor
                )
            except Refused as error:
                if error.is_final or error.is_unreadable:
                    return False
                raise
            messages = [each for each in data.get("messages") or () if isinstance(each, dict)]
            if any(each.get("user") == user or mentions(str(each.get("text") or ""), user) for each in messages):
                self.note(channel, thread)
                return True
            more = data.get("response_metadata")
            cursor = str(more.get("next_cursor") or "") if isinstance(more, dict) else None
            if not cursor:
                return False
        return False
