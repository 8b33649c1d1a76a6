"""What Meta sends to the webhook: signatures, and messages in a notification; pure."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hermes.gateway.whatsapp import normalize_whatsapp_identifier

MAX_MESSAGES = 1000
_MAX_ID = 500
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
class SendFailure:
    """The platform could not deliver a message that it had accepted."""

    message_id: str
    code: int | None


def is_signed(body: bytes, signature: str, secret: str) -> bool:
    """Whether the header `X-Hub-Signature-256` belongs to a body."""
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.strip().encode("utf-8", "replace"))


def same_word(given: str, expected: str) -> bool:
    """Whether two secret words are equal, compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode("utf-8", "replace"))


def read_notification(body: bytes, phone_number_id: str) -> list[WhatsAppMessage | SendFailure]:
    """Return the messages and failures of a notification, in order; what has another form is left out."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return []
    found: list[WhatsAppMessage | SendFailure] = []
    for value in _values(data):
        if _text(_dict(value.get("metadata")).get("phone_number_id")) != phone_number_id:
            continue
        names = dict(_names(value))
        found += [message for each in _list(value.get("messages")) if (message := _message(_dict(each), names))]
        found += [failure for each in _list(value.get("statuses")) if (failure := _failure(_dict(each)))]
    return found[:MAX_MESSAGES]


def _values(data: object) -> Iterator[Mapping[str, Any]]:
    for entry in _list(_dict(data).get("entry")):
        for change in _list(_dict(entry).get("changes")):
            if _dict(change).get("field") == "messages":
                yield _dict(_dict(change).get("value"))


def _names(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for contact in _list(value.get("contacts")):
        user, name = _text(_dict(contact).get("wa_id")), _text(_dict(_dict(contact).get("profile")).get("name"))
        if user and name:
            yield user, "".join(each for each in name[:200] if each.isprintable())


def _message(data: Mapping[str, Any], names: Mapping[str, str]) -> WhatsAppMessage | None:
    message_id, sender, kind = _id(data.get("id")), _id(data.get("from")), _text(data.get("type"))
    canonical = normalize_whatsapp_identifier(sender) if sender else ""
    if not message_id or not sender or not canonical or not kind:
        return None
    about = _dict(data.get(kind))
    file = _file(about) if kind in _FILES else None
    text = _content(kind, about)
    if text is None or (kind in _FILES and file is None):
        return None
    return WhatsAppMessage(
        message_id,
        canonical,
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


def _failure(data: Mapping[str, Any]) -> SendFailure | None:
    message_id = _id(data.get("id"))
    if data.get("status") != "failed" or not message_id:
        return None
    code = _dict(next(iter(_list(data.get("errors"))), {})).get("code")
    return SendFailure(message_id, code if isinstance(code, int) else None)


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value[:MAX_MESSAGES] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _id(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_ID and value.isprintable() else None
