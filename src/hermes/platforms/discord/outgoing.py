"""Messages to Discord, each with a nonce by which Discord recognizes a repeated one for some minutes."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hermes.gateway.delivery.receipts import FINISHED_IDS, MESSAGE_IDS
from hermes.gateway.engine.ports import Delivery, MaybeSent, NotSent, Receipt
from hermes.platforms.base.adapter import Part
from hermes.platforms.base.media import MAX_FILE_BYTES, MediaFile
from hermes.platforms.discord.events import as_dict, as_list, snowflake
from hermes.platforms.discord.history import messages_since

if TYPE_CHECKING:
    from hermes.platforms.discord.client import Connection

TEXT_LIMIT = 2000
NONCE_S = 60.0
"""How long a nonce is surely remembered; Discord says "a few minutes"."""
_NO_MENTIONS: Mapping[str, Any] = {"parse": [], "replied_user": False}
"""What a model writes never alerts people."""
_EMPTY = "\u200b"
_MOST_KNOWN = 500
_MOST_PAGES = 5
_MOST_CURSOR = 8
_FILE_S = 40.0
_BYTES = "application/octet-stream"
_PLACE = "/channels/{channel_id}/messages"
_ONE = "/channels/{channel_id}/messages/{message_id}"


class Outgoing:
    """Sends, changes and finds messages."""

    def __init__(self, client: Callable[[], Connection]) -> None:
        self._client = client
        self._known: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """The ids and texts of the bot's messages, by nonce."""
        self._tried_at: OrderedDict[str, float] = OrderedDict()

    def note_own(self, data: Mapping[str, Any]) -> None:
        """Take over a message of the bot that the gateway reports, perhaps before the response to the request."""
        nonce, message_id, content = data.get("nonce"), snowflake(data.get("id")), data.get("content")
        if isinstance(nonce, str) and 0 < len(nonce) <= 25 and message_id and isinstance(content, str):
            _remember(self._known, nonce, (str(message_id), content))

    async def post(self, part: Part) -> str:
        """Send a message, unless Discord turned out to have it; return its id."""
        nonce = nonce_of(part.key)
        known = self._known.get(nonce)
        if known is None:
            _remember(self._tried_at, nonce, asyncio.get_running_loop().time())
            data = as_dict(
                await self._client().http.call("POST", _PLACE, channel_id=_place_of(part.delivery), json=_payload(part))
            )
            message_id, content = snowflake(data.get("id")), data.get("content")
            if message_id is None:
                raise MaybeSent("Discord returned no id of the message")
            known = (str(message_id), content if isinstance(content, str) else part.text)
            _remember(self._known, nonce, known)
        if not _is_same(known[1], part.text):
            # Discord has a message with this nonce already: a preview whose result was lost.
            await self.edit(known[0], part)
        return known[0]

    async def edit(self, message_id: str, part: Part) -> None:
        """Change the text of a message."""
        body = {"content": _content(part.text), "allowed_mentions": _NO_MENTIONS}
        number, place = _checked(message_id), _place_of(part.delivery)
        await self._client().http.call("PATCH", _ONE, channel_id=place, message_id=number, json=body)
        _remember(self._known, nonce_of(part.key), (message_id, part.text))

    async def post_file(self, part: Part, file: MediaFile) -> str:
        """Send a file and return the id of its message."""
        from discord import File
        from discord.http import Route

        if (await asyncio.to_thread(file.path.stat)).st_size > MAX_FILE_BYTES:
            raise NotSent(f"the file is larger than {MAX_FILE_BYTES // 1024 // 1024} MB", is_final=True)
        http, place = self._client().http, _place_of(part.delivery)
        payload = {**_payload(part), "content": file.caption[:TEXT_LIMIT], "nonce": nonce_of(f"{part.key} {file.path}")}
        payload["attachments"] = [{"id": 0, "filename": file.path.name}]
        opened = await asyncio.to_thread(File, file.path, file.path.name)
        try:
            form = [
                {"name": "payload_json", "value": json.dumps(payload)},
                {"name": "files[0]", "value": opened.fp, "filename": file.path.name, "content_type": _BYTES},
            ]
            route = Route("POST", _PLACE, channel_id=place)
            data = as_dict(await http.run(lambda: http.request(route, files=[opened], form=form), _FILE_S))
        finally:
            opened.close()
        message_id = snowflake(data.get("id"))
        if message_id is None:
            raise MaybeSent("Discord returned no id of the message")
        return str(message_id)

    async def delete(self, message_id: str, chat: Delivery) -> None:
        """Delete a message of the bot."""
        number, place = _checked(message_id), _place_of(chat)
        await self._client().http.call("DELETE", _ONE, channel_id=place, message_id=number)

    async def find(self, delivery: Delivery, parts: Sequence[Part], own_id: str) -> Receipt | None:
        """Return the receipt of a delivery that Discord has completely; raise `NotSent` if some of it is missing.

        Return None if that cannot be told. What Discord has is remembered, and not sent a second time.
        """
        finished, previews = _listed(delivery, FINISHED_IDS), _listed(delivery, MESSAGE_IDS)
        shown = [*finished, *previews[len(finished) :]]
        first = max((each for each in map(snowflake, (delivery.reply_to, *delivery.answers)) if each), default=None)
        own, is_complete = await self._own_since(delivery, first, own_id)
        found = _matches(parts, own, shown)
        for part, message in zip(parts, found, strict=True):
            if message is not None:
                _remember(self._known, nonce_of(part.key), (str(message["id"]), _text_of(message)))
        known = [self._known.get(nonce_of(part.key)) for part in parts]
        if all(each is not None and _is_same(each[1], part.text) for each, part in zip(known, parts, strict=True)):
            return Receipt([each[0] for each in known if each is not None])
        # A message whose id is known is changed once more, which does no harm.
        missing = [part for part, each in list(zip(parts, known, strict=True))[len(shown) :] if each is None]
        is_unlike = not any(_is_same(_text_of(each), part.text) for each in own for part in missing)
        if not missing or (is_complete and is_unlike) or all(map(self._is_recent, missing)):
            raise NotSent("Discord does not have the message")
        return None

    async def _own_since(
        self, delivery: Delivery, first: int | None, own_id: str
    ) -> tuple[list[Mapping[str, Any]], bool]:
        if first is None:
            return [], False
        try:
            found, is_complete = await messages_since(self._client(), _place_of(delivery), first, _MOST_PAGES)
        except NotSent as error:
            if error.is_final:
                return [], False
            raise MaybeSent(str(error)) from error  # the question is repeated later
        own = [each for each in found if str(as_dict(each.get("author")).get("id")) == own_id]
        return own, is_complete

    def _is_recent(self, part: Part) -> bool:
        """Whether Discord still recognizes the nonce of a part, so that sending it again is safe."""
        tried_at = self._tried_at.get(nonce_of(part.key))
        return tried_at is not None and asyncio.get_running_loop().time() < tried_at + NONCE_S


def nonce_of(key: str) -> str:
    """Return the nonce of a message: at most 25 characters, the same for the same key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:25]


def text_length(text: str) -> int:
    """Return the length of a text as Discord's programs count it, in which an emoji has two characters."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _matches(
    parts: Sequence[Part], own: Sequence[Mapping[str, Any]], shown: Sequence[str]
) -> list[Mapping[str, Any] | None]:
    """Return the message of each part, so far as one is surely it."""
    found: list[Mapping[str, Any] | None] = []
    free = list(own)
    for index, part in enumerate(parts):
        message_id = shown[index] if index < len(shown) else ""
        before = found[-1] if found else None
        follower = next((after for each, after in pairwise(own) if each is before), None)
        candidates = [each for each in free if each.get("id") == message_id or each.get("nonce") == nonce_of(part.key)]
        replies = [each for each in free if part.reply_to and _reply_to(each) == part.reply_to]
        candidates += [each for each in replies if _is_same(_text_of(each), part.text)]
        candidates += [each for each in replies if is_beginning(_text_of(each), part.text)]
        if follower is not None and _is_same(_text_of(follower), part.text):
            candidates.append(follower)
        match = candidates[0] if candidates else None
        free = [each for each in free if each is not match]
        found.append(match)
    return found


def is_beginning(shown: str, text: str) -> bool:
    """Whether a message shows the beginning of a text, perhaps with the sign of a preview behind it."""
    shown = shown.strip()
    return any(text.startswith(shown[:end]) for end in range(len(shown), max(3, len(shown) - _MOST_CURSOR), -1))


def _text_of(message: Mapping[str, Any]) -> str:
    return str(message.get("content"))


def _reply_to(message: Mapping[str, Any]) -> str:
    return str(as_dict(message.get("message_reference")).get("message_id"))


def _payload(part: Part) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "content": _content(part.text),
        "nonce": nonce_of(part.key),
        "enforce_nonce": True,
        "allowed_mentions": _NO_MENTIONS,
    }
    if (reply_to := snowflake(part.reply_to)) is not None:
        payload["message_reference"] = {"message_id": str(reply_to), "fail_if_not_exists": False}
    return payload


def _place_of(delivery: Delivery) -> int:
    return _checked(delivery.thread_id or delivery.chat_id)


def _checked(value: str) -> int:
    """Return an id as a number: no other text becomes a part of an address."""
    number = snowflake(value)
    if number is None:
        raise NotSent(f"{value[:50]!r} is not an id of Discord", is_final=True)
    return number


def _content(text: str) -> str:
    """Return a text that can be sent: not empty, and without halves of characters."""
    return text.encode("utf-8", "replace").decode("utf-8") if text.strip() else _EMPTY


def _is_same(shown: str, text: str) -> bool:
    """Whether a message has a text; Discord removes blanks around it."""
    return shown.strip() == _content(text).strip()


def _listed(delivery: Delivery, name: str) -> list[str]:
    return [str(each) for each in as_list(dict(delivery.preview or {}).get(name))]


def _remember(known: OrderedDict[str, Any], key: str, value: object) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > _MOST_KNOWN:
        known.popitem(last=False)
