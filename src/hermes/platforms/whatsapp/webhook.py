"""What Meta sends to the webhook: signatures, and messages in a notification; pure."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermes.platforms.whatsapp.statuses import Status

MAX_BYTES = 4 * 1024 * 1024
"""The platform sends at most 3 MB."""
MAX_MESSAGES = 1000
_MAX_ID = 512
_PHONE = re.compile(r"\+?[0-9]{1,20}")
_FILES = {"image": "image", "audio": "audio", "video": "video", "document": "document", "sticker": "image"}


@dataclass(frozen=True, slots=True)
class FileReference:
    """A file of a message, which the Graph API has."""

    media_id: str
    mime: str
    name: str


@dataclass(frozen=True, slots=True)
class WhatsAppMessage:
    """A message of a user."""

    message_id: str
    sender: str
    """The phone number, as digits."""
    name: str | None
    text: str
    kind: str = "text"
    file: FileReference | None = None
    answers: str | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """What one request to the webhook says about a phone number."""

    messages: Sequence[WhatsAppMessage] = ()
    statuses: Sequence[Status] = ()
    other_number: str = ""
    """Another phone number of the same app, which this adapter does not serve."""


def is_signed(body: bytes, signature: str, secret: str) -> bool:
    """Whether the header `X-Hub-Signature-256` belongs to a body."""
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.strip().encode("utf-8", "replace"))


def same_word(given: str, expected: str) -> bool:
    """Whether two secret words are equal, compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode("utf-8", "replace"))


def read_notification(body: bytes, phone_number_id: str) -> Notification:
    """Return what a notification says, in order; what has another form is left out. Raise ValueError for no JSON."""
    try:
        data = json.loads(body)
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None
    messages: list[WhatsAppMessage] = []
    statuses: list[Status] = []
    other = ""
    for value in _values(data):
        number, own = _numbers(value)
        if number != phone_number_id:
            other = "".join(each for each in number[:40] if each.isprintable())
            continue
        names = dict(_names(value))
        found = (_message(_dict(each), names) for each in _list(value.get("messages")))
        messages += [each for each in found if each is not None and each.sender != own]
        statuses += [each for one in _list(value.get("statuses")) if (each := _status(_dict(one)))]
    return Notification(messages[:MAX_MESSAGES], statuses[:MAX_MESSAGES], other)


def _values(data: object) -> Iterator[Mapping[str, Any]]:
    for entry in _list(_dict(data).get("entry")):
        for change in _list(_dict(entry).get("changes")):
            if _dict(change).get("field") == "messages":
                yield _dict(_dict(change).get("value"))


def _numbers(value: Mapping[str, Any]) -> tuple[str, str]:
    """Return the id of the phone number that a notification is about, and the number itself as digits."""
    about = _dict(value.get("metadata"))
    shown = _text(about.get("display_phone_number"))
    return _text(about.get("phone_number_id")), "".join(each for each in shown if each in "0123456789")


def _names(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for contact in _list(value.get("contacts")):
        user, name = _text(_dict(contact).get("wa_id")), _text(_dict(_dict(contact).get("profile")).get("name"))
        if user and name:
            yield user, "".join(each for each in name[:200] if each.isprintable())


def _message(data: Mapping[str, Any], names: Mapping[str, str]) -> WhatsAppMessage | None:
    message_id, sender, kind = _id(data.get("id")), _id(data.get("from")), _text(data.get("type"))
    if not message_id or not sender or not _PHONE.fullmatch(sender) or _text(data.get("group_id")) or not kind:
        return None
    about = _dict(data.get(kind))
    file = _file(about) if kind in _FILES else None
    text = _content(kind, about)
    if text is None or (kind in _FILES and file is None):
        return None
    return WhatsAppMessage(
        message_id,
        sender.removeprefix("+"),
        names.get(sender),
        text,
        _FILES.get(kind, "text"),
        file,
        _id(_dict(data.get("context")).get("id")),
    )


def _content(kind: str, about: Mapping[str, Any]) -> str | None:
    """Return the text of a message of some kind; None if it is not answered, as reactions are."""
    if kind == "text":
        return _text(about.get("body")) or None
    if kind == "button":
        return _text(about.get("text")) or None
    if kind == "interactive":
        chosen = _dict(about.get("button_reply")) or _dict(about.get("list_reply"))
        return _text(chosen.get("title")) or None
    if kind == "location":
        return f"[location: {about.get('latitude')!s:.20}, {about.get('longitude')!s:.20}]"
    return _text(about.get("caption")) if kind in _FILES else None


def _file(about: Mapping[str, Any]) -> FileReference | None:
    media_id = _id(about.get("id"))
    if not media_id:
        return None
    mime = _text(about.get("mime_type")).partition(";")[0].strip()
    usable = 0 < len(mime) < 100 and mime.isascii() and mime.isprintable()
    return FileReference(media_id, mime if usable else "application/octet-stream", _text(about.get("filename"))[:200])


def _status(data: Mapping[str, Any]) -> Status | None:
    message_id, state = _id(data.get("id")), data.get("status")
    if not message_id or state not in ("sent", "delivered", "read", "failed"):
        return None
    error = _dict(next(iter(_list(data.get("errors"))), {}))
    code, title = error.get("code"), _text(error.get("title")) or _text(error.get("message"))
    return Status(
        message_id,
        _id(data.get("biz_opaque_callback_data")) or "",
        state == "failed",
        code if isinstance(code, int) and not isinstance(code, bool) else None,
        "".join(each for each in title[:200] if each.isprintable()),
    )


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value[:MAX_MESSAGES] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _id(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_ID and value.isprintable() else None
