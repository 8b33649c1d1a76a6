"""Messages that Discord keeps: those that were missed, and those that the bot has sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.gateway.engine.ports import NotSent
from hermes.log import warn
from hermes.platforms.discord.events import as_dict, as_list, snowflake

if TYPE_CHECKING:
    from hermes.platforms.discord.client import Connection

PAGE = 100
_MESSAGES = "/channels/{channel_id}/messages"


async def missed_messages(client: Connection, channel_id: int, after: int, limit: int) -> list[Mapping[str, Any]]:
    """Return the messages of a channel after an id, the oldest first; of too many the newest.

    A channel that does not exist any more, or that the bot may not read, has none.
    """
    found: list[Mapping[str, Any]] = []
    before: int | None = None
    while len(found) < limit:
        query = {"limit": PAGE, **({"before": str(before)} if before else {})}
        try:
            data = await client.http.call("GET", _MESSAGES, channel_id=channel_id, params=query)
        except NotSent as error:
            if error.is_final:
                return []
            raise
        page = _messages(data)
        newer = [each for each in page if _id(each) > after]
        found += newer
        if len(as_list(data)) < PAGE or len(newer) < len(page) or not newer:
            return sorted(found, key=_id)[-limit:]
        before = min(map(_id, newer))
    if found:
        warn(__name__, "channel %s has more new messages than are fetched; the oldest are left out", channel_id)
    return sorted(found, key=_id)[-limit:] if limit else []


async def messages_since(client: Connection, place: int, first: int, most_pages: int) -> tuple[list[Any], bool]:
    """Return the messages of a channel from an id on, the oldest first, and whether these are all of them.

    Without permission to read the history Discord returns nothing, so a list that lacks `first` proves nothing.
    """
    found: list[Mapping[str, Any]] = []
    after = first - 1
    for _ in range(most_pages):
        query = {"limit": PAGE, "after": str(after)}
        data = await client.http.call("GET", _MESSAGES, channel_id=place, params=query)
        page = _messages(data)
        found += sorted(page, key=_id)
        if len(as_list(data)) < PAGE or not page:
            return found, any(_id(each) == first for each in found)
        after = _id(found[-1])
    return found, False


def _messages(data: object) -> list[Mapping[str, Any]]:
    return [as_dict(each) for each in as_list(data) if _id(as_dict(each))]


def _id(message: Mapping[str, Any]) -> int:
    return snowflake(message.get("id")) or 0
