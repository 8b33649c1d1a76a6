"""Events of Matrix as messages; pure, and content with unexpected types is no message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

MESSAGE, ENCRYPTED, MEMBER = "m.room.message", "m.room.encrypted", "m.room.member"
NAME, TOPIC = "m.room.name", "m.room.topic"
EVENT, USER, ROOM = "$", "@", "!"
"""The signs with which ids begin."""
_TEXTS = frozenset({"m.text", "m.emote", "m.location"})
_FILES: Mapping[str, str] = {"m.image": "image", "m.audio": "audio", "m.video": "video", "m.file": "document"}
_MAX_ID = 255


@dataclass(frozen=True, slots=True)
class MediaAddress:
    """A file on a homeserver."""

    server: str
    media_id: str
    name: str
    mime: str


@dataclass(frozen=True, slots=True)
class RoomMessage:
    """A message of another user."""

    event_id: str
    sender: str
    text: str
    kind: str = "text"
    thread_id: str | None = None
    reply_to: str | None = None
    mentions: frozenset[str] | None = None
    """The users that the message names; None if the sender's program does not tell."""
    media: MediaAddress | None = None


def read_message(event: object, own_id: str) -> RoomMessage | None:
    """Return the message of an event; None for what is not answered: own messages, notices, edits, other types."""
    if not isinstance(event, dict) or event.get("type") != MESSAGE:
        return None
    event_id, sender = identifier(event.get("event_id"), EVENT), identifier(event.get("sender"), USER)
    content = as_dict(event.get("content"))
    body, kind = content.get("body"), content.get("msgtype")
    if not event_id or not sender or sender == own_id or not isinstance(body, str) or not isinstance(kind, str):
        return None
    relation = as_dict(content.get("m.relates_to"))
    if relation.get("rel_type") == "m.replace":
        return None
    reply_to = _reply_to(relation)
    thread_id = identifier(relation.get("event_id"), EVENT) if relation.get("rel_type") == "m.thread" else None
    common = {"thread_id": thread_id, "reply_to": reply_to, "mentions": _mentions(content)}
    if kind in _TEXTS:
        text = strip_quote(body) if reply_to else body
        return RoomMessage(event_id, sender, text, **common)  # type: ignore[arg-type]
    if kind not in _FILES:
        return None
    name = content.get("filename")
    has_caption = isinstance(name, str) and name != body
    media = _media(content, name if isinstance(name, str) and name else body)
    return RoomMessage(event_id, sender, body if has_caption else "", kind=_FILES[kind], media=media, **common)  # type: ignore[arg-type]


def strip_quote(body: str) -> str:
    """Return the text of a reply without the quoted lines that older programs put before it."""
    if not body.startswith("> <"):
        return body
    lines = body.split("\n")
    first = next((number for number, line in enumerate(lines) if not line.startswith(">")), len(lines))
    return "\n".join(lines[first:]).lstrip("\n")


def is_membership(event: object, user_id: str, *states: str) -> bool:
    """Whether an event changes the membership of a user to one of these states."""
    if not isinstance(event, dict) or event.get("type") != MEMBER or event.get("state_key") != user_id:
        return False
    before = as_dict(as_dict(event.get("unsigned")).get("prev_content")).get("membership")
    now = as_dict(event.get("content")).get("membership")
    return now in states and now != before


def since_own_arrival(events: list[Any], own_id: str) -> list[Any]:
    """Return the events after the account was invited or joined, if that is among them; else all."""
    for number in range(len(events) - 1, -1, -1):
        if is_membership(events[number], own_id, "invite"):
            return events[number:]
        if is_membership(events[number], own_id, "join") and not _was_invited(events[number]):
            return events[number:]
    return events


def invitation(invite_state: object, own_id: str) -> tuple[str, bool] | None:
    """Return who invites the account, and whether to a direct chat; None if the events do not say."""
    events = as_dict(invite_state).get("events")
    for event in events if isinstance(events, list) else []:
        found = as_dict(event)
        content = as_dict(found.get("content"))
        if found.get("type") != MEMBER or found.get("state_key") != own_id or content.get("membership") != "invite":
            continue
        if sender := identifier(found.get("sender"), USER):
            return sender, content.get("is_direct") is True
    return None


def direct_rooms(content: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return the direct rooms of each user, from the account data `m.direct`."""
    return {user: frozenset(str(room) for room in rooms) for user, rooms in content.items() if isinstance(rooms, list)}


def as_dict(value: object) -> Mapping[str, Any]:
    """Return a value that is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


def identifier(value: object, sign: str) -> str | None:
    """Return an id that begins with the sign of its kind and can be stored; None for anything else.

    Without the sign, a sender could name another user as the thread of a message, and so end that user's session.
    """
    if not isinstance(value, str) or not 1 < len(value) <= _MAX_ID or not value.isprintable():
        return None
    return value if value.startswith(sign) else None


def _was_invited(event: Mapping[str, Any]) -> bool:
    return bool(as_dict(as_dict(event.get("unsigned")).get("prev_content")).get("membership") == "invite")


def _reply_to(relation: Mapping[str, Any]) -> str | None:
    """Return the message that is answered; in a thread the last message stands there for older programs."""
    if relation.get("rel_type") == "m.thread" and relation.get("is_falling_back") is True:
        return None
    return identifier(as_dict(relation.get("m.in_reply_to")).get("event_id"), EVENT)


def _mentions(content: Mapping[str, Any]) -> frozenset[str] | None:
    if "m.mentions" not in content:
        return None
    users = as_dict(content["m.mentions"]).get("user_ids")
    return frozenset(str(each) for each in users[:1000]) if isinstance(users, list) else frozenset()


def _media(content: Mapping[str, Any], name: str) -> MediaAddress | None:
    url = content.get("url")
    if not isinstance(url, str) or not url.startswith("mxc://") or len(url) > 1000:
        return None
    server, _, media_id = url.removeprefix("mxc://").partition("/")
    if not server or not media_id or "/" in media_id or {server, media_id} & {".", ".."}:
        return None
    mime = as_dict(content.get("info")).get("mimetype")
    usable = isinstance(mime, str) and mime.isascii() and mime.isprintable() and len(mime) < 100
    return MediaAddress(server, media_id, name[:200], str(mime) if usable else "application/octet-stream")


Scope = Literal["room", "auto", "thread"]


def thread_of(message: RoomMessage, scope: Scope, *, is_direct: bool) -> str | None:
    """Return the thread of a message; depending on the setting, a message outside of threads begins one."""
    if message.thread_id:
        return message.thread_id
    return message.event_id if scope == "thread" or (scope == "auto" and not is_direct) else None
