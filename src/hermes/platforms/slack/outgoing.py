"""Messages to Slack, each with metadata by which it is found again."""

from __future__ import annotations

import hashlib
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from typing import Any

from hermes.gateway.engine.ports import Delivery, MaybeSent, NotSent, Receipt
from hermes.platforms.base.adapter import Part
from hermes.platforms.slack.api import SlackApi
from hermes.platforms.slack.failures import Refused
from hermes.platforms.slack.mrkdwn import to_mrkdwn

EVENT_TYPE = "hermes_message"
_PAGE, _MOST_PAGES = 200, 5
_MOST_FOUND = 500
_NO_NAMES: Mapping[str, Any] = {"parse": "none", "link_names": False}
"""Words such as @channel in a text notify no user; the default differs between Slack's methods."""


class Outgoing:
    """Sends, changes and finds messages."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api
        self._found: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Messages that Slack turned out to have: their id and the digest of their text, by key."""

    async def post(self, part: Part) -> str:
        """Send a message, unless Slack turned out to have it; return its id."""
        known = self._found.get(part.key)
        if known is not None:
            message_id, digest = known
            if digest != digest_of(part):
                await self.edit(message_id, part)
            return message_id
        data = await self._api.call(
            lambda client: client.chat_postMessage(
                channel=part.delivery.chat_id,
                text=to_mrkdwn(part.text) or " ",
                thread_ts=part.delivery.thread_id,
                metadata=_metadata(part),
                client_msg_id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{part.key} {digest_of(part)}")),
                unfurl_links=False,
                unfurl_media=False,
                **_NO_NAMES,
            )
        )
        if not isinstance(data.get("ts"), str):
            raise MaybeSent("Slack's response has no id of the message")
        return str(data["ts"])

    async def edit(self, message_id: str, part: Part) -> None:
        """Change the text of a message."""
        await self._api.call(
            lambda client: client.chat_update(
                channel=part.delivery.chat_id,
                ts=message_id,
                text=to_mrkdwn(part.text) or " ",
                metadata=_metadata(part),
                **_NO_NAMES,
            )
        )

    def forget(self, delivery: Delivery) -> None:
        """Forget the messages of a delivery, of which one does not exist any more."""
        for key in [each for each in self._found if each == delivery.key or each.startswith(f"{delivery.key}#")]:
            del self._found[key]

    async def find(self, delivery: Delivery, parts: list[Part], bot_user: str) -> Receipt | None:
        """Return the messages of a delivery that Slack has; raise `NotSent` if not all of them, None if it cannot tell.

        Those that it has are remembered, and not sent a second time. Marks of other authors do not count.
        """
        keys = {part.key: part for part in parts}
        since = max((each for each in (delivery.reply_to, *delivery.answers) if each and _is_ts(each)), default=None)
        is_complete = False
        async for message, is_last in self._messages(delivery, since):
            is_complete = is_last
            key, digest = _key_of(message)
            if key in keys and message.get("user") == bot_user and isinstance(message.get("ts"), str):
                self._found[key] = (str(message["ts"]), digest)
                if len(self._found) > _MOST_FOUND:
                    self._found.popitem(last=False)
        found = [self._found.get(part.key) for part in parts]
        ids = [
            each[0]
            for each, part in zip(found, parts, strict=True)
            if each is not None and (each[1] == digest_of(part) or not delivery.is_final)
        ]
        if len(ids) == len(parts):
            return Receipt(ids)
        if is_complete:
            raise NotSent("Slack does not have the message")
        return None

    async def _messages(self, delivery: Delivery, since: str | None) -> AsyncIterator[tuple[Mapping[str, Any], bool]]:
        """Yield the latest messages of a chat, and whether these are all that matter; at the end an empty one."""
        cursor: str | None = None
        method = "conversations.replies" if delivery.thread_id else "conversations.history"
        for _ in range(_MOST_PAGES):
            try:
                data = await self._api.ask(
                    method,
                    channel=delivery.chat_id,
                    ts=delivery.thread_id,
                    limit=_PAGE,
                    include_all_metadata="true",
                    oldest=since,
                    cursor=cursor,
                )
            except Refused as error:
                if error.is_unreadable:
                    return
                raise MaybeSent(str(error)) from error  # the question is repeated later
            except NotSent as error:
                raise MaybeSent(str(error)) from error
            for each in data.get("messages") or ():
                if isinstance(each, dict):
                    yield each, False
            more = data.get("response_metadata")
            cursor = str(more.get("next_cursor") or "") if isinstance(more, dict) else ""
            if not cursor or not data.get("has_more"):
                yield {}, True
                return


def digest_of(part: Part) -> str:
    """Return what tells the text of a message from others."""
    return hashlib.sha256(part.text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _metadata(part: Part) -> dict[str, Any]:
    return {"event_type": EVENT_TYPE, "event_payload": {"key": part.key, "digest": digest_of(part)}}


def _key_of(message: Mapping[str, Any]) -> tuple[str, str]:
    metadata = message.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("event_type") != EVENT_TYPE:
        return "", ""
    payload = metadata.get("event_payload")
    return (str(payload.get("key")), str(payload.get("digest"))) if isinstance(payload, dict) else ("", "")


def _is_ts(text: str) -> bool:
    seconds, dot, rest = text.partition(".")
    return bool(dot) and text.isascii() and seconds.isdigit() and rest.isdigit()
