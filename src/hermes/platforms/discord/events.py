"""Messages of Discord as the gateway needs them; pure, and nothing that a sender writes is trusted to have a type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_MESSAGE, _REPLY = 0, 19
"""The types of messages that people write; joins, pins, new threads and results of commands are others."""
_FORWARD = 1
_MAX_ID = 2**63
_MAX_NAME = 100
_MAX_QUOTED = 2000
_MAX_FILES = 10
_MAX_MENTIONS = 1000
_ANONYMOUS = "0000"
"""The discriminator of a webhook."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file on Discord's servers."""

    url: str
    name: str
    mime: str
    size: int


@dataclass(frozen=True, slots=True)
class DiscordMessage:
    """A message of a person."""

    id: int
    channel_id: int
    user_id: str
    user_name: str
    text: str
    mentions: frozenset[str] = frozenset()
    role_mentions: frozenset[str] = frozenset()
    roles: frozenset[str] | None = None
    """The roles of the author; None if Discord does not tell."""
    attachments: tuple[Attachment, ...] = ()
    replied_user: str | None = None
    quoted: str | None = None


def read_message(data: object, own_id: str) -> DiscordMessage | None:
    """Return the message of an event; None if no person wrote it; raise ValueError if it is malformed."""
    if not isinstance(data, dict):
        raise ValueError("it is no object")
    message_id, channel_id = snowflake(data.get("id")), snowflake(data.get("channel_id"))
    kind, author, content = data.get("type"), data.get("author"), data.get("content")
    if message_id is None or channel_id is None:
        raise ValueError("an id is missing")
    if not isinstance(kind, int) or not isinstance(author, dict) or not isinstance(content, str):
        raise ValueError("the type, the author or the content is missing")
    user = snowflake(author.get("id"))
    if user is None:
        raise ValueError("the author has no id")
    if kind not in (_MESSAGE, _REPLY) or not is_person(data, author) or str(user) == own_id:
        return None
    answered = as_dict(data.get("referenced_message")) if kind == _REPLY else {}
    quoted = answered.get("content")
    member = as_dict(data.get("member"))
    forwarded = _forwarded(data)
    return DiscordMessage(
        id=message_id,
        channel_id=channel_id,
        user_id=str(user),
        user_name=_name(member, author),
        text="\n".join(each for each in (content, *_described(data), *_described_forward(forwarded)) if each),
        mentions=_ids(data.get("mentions"), "id"),
        role_mentions=_ids(data.get("mention_roles")),
        roles=_ids(member.get("roles")) if "roles" in member else None,
        attachments=(*_attachments(data), *_attachments(forwarded))[:_MAX_FILES],
        replied_user=str(as_dict(answered.get("author")).get("id") or "") or None,
        quoted=quoted[:_MAX_QUOTED] if isinstance(quoted, str) and quoted else None,
    )


def is_person(data: Mapping[str, Any], author: Mapping[str, Any]) -> bool:
    """Whether a person wrote a message: no bot, no webhook, whatever name it shows, and not Discord itself."""
    if data.get("webhook_id") is not None or data.get("application_id") is not None:
        return False
    if author.get("bot") or author.get("system"):
        return False
    return bool(author.get("discriminator") != _ANONYMOUS)


def without_mention(text: str, own_id: str, own_roles: Iterable[str] = ()) -> str:
    """Return a text without mentions of the bot at its beginning and end."""
    names = [f"<@{own_id}>", f"<@!{own_id}>", *(f"<@&{role}>" for role in own_roles)]
    rest, before = text.strip(), ""
    while rest != before:
        before = rest
        for name in names:
            if rest.startswith(name):
                rest = rest[len(name) :].lstrip(" \n:,")
            if rest.endswith(name):
                rest = rest[: -len(name)].rstrip()
    return rest


def as_command(text: str, prefix: str) -> str:
    """Return a text in which the prefix of commands is a slash, which Discord's program keeps for itself."""
    after = text[len(prefix) : len(prefix) + 1]
    return "/" + text[len(prefix) :] if prefix and text.startswith(prefix) and after.isalpha() else text


def kind_of(attachments: tuple[Attachment, ...]) -> str:
    """Return what a message contains, by its first file."""
    if not attachments:
        return "text"
    main = attachments[0].mime.partition("/")[0]
    return main if main in ("image", "audio", "video") else "document"


def snowflake(value: object) -> int | None:
    """Return an id of Discord as a number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    text = str(value)
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        return None
    number = int(text)
    return number if 0 < number < _MAX_ID else None


def as_dict(value: object) -> Mapping[str, Any]:
    """Return a value that is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a value that is a list; else an empty one."""
    return value if isinstance(value, list) else []


def line(value: object, most: int = _MAX_NAME) -> str:
    """Return a text on one line; an empty one for anything else."""
    return "".join(each for each in value[:most] if each.isprintable()) if isinstance(value, str) else ""


def _name(member: Mapping[str, Any], author: Mapping[str, Any]) -> str:
    """Return the name that people see here: a user has one in each server."""
    return line(member.get("nick")) or line(author.get("global_name")) or line(author.get("username"))


def _ids(values: object, key: str = "") -> frozenset[str]:
    """Return the ids of a list of ids or of objects that have one."""
    found = (snowflake(as_dict(each).get(key) if key else each) for each in as_list(values)[:_MAX_MENTIONS])
    return frozenset(str(each) for each in found if each is not None)


def _forwarded(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message that this one forwards."""
    if as_dict(data.get("message_reference")).get("type") != _FORWARD:
        return {}
    snapshots = as_list(data.get("message_snapshots"))
    return as_dict(as_dict(snapshots[0]).get("message")) if snapshots else {}


def _described(data: Mapping[str, Any]) -> list[str]:
    """Return lines about content that is no text."""
    lines = [f"[sticker: {line(as_dict(each).get('name'))}]" for each in as_list(data.get("sticker_items"))[:3]]
    question = line(as_dict(as_dict(data.get("poll")).get("question")).get("text"), 300)
    return [*lines, f"[poll: {question}]"] if question else lines


def _described_forward(forwarded: Mapping[str, Any]) -> list[str]:
    content = forwarded.get("content")
    return ["[forwarded message]", content] if isinstance(content, str) and content else []


def _attachments(data: Mapping[str, Any]) -> list[Attachment]:
    found = []
    for each in as_list(data.get("attachments"))[:_MAX_FILES]:
        about = as_dict(each)
        url, size, mime = about.get("url"), about.get("size"), about.get("content_type")
        is_mime = isinstance(mime, str) and mime.isascii() and mime.isprintable() and 0 < len(mime) < 100
        found.append(
            Attachment(
                url if isinstance(url, str) else "",
                line(about.get("filename"), 200) or "file",
                str(mime) if is_mime else "application/octet-stream",
                size if isinstance(size, int) else 0,
            )
        )
    return found
