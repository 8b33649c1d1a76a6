"""The files of messages, and content that is neither text nor a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from telegram import Message

_MAX_NAME = 200
_MAX_MIME = 100


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message, which is still at Telegram."""

    file_id: str
    kind: str
    name: str
    mime: str
    size: int = 0


def attachment_of(message: Message) -> Attachment | None:
    """Return the file of a message; of a photo, the largest size."""
    if message.photo:
        photo = max(message.photo, key=lambda each: each.width * each.height)
        return _attachment(photo, "image", "photo.jpg", "image/jpeg")
    kinds: tuple[tuple[str, Any, str, str], ...] = (
        ("audio", message.voice, "voice.ogg", "audio/ogg"),
        ("audio", message.audio, "audio.mp3", "audio/mpeg"),
        ("video", message.video, "video.mp4", "video/mp4"),
        ("video", message.video_note, "video.mp4", "video/mp4"),
        ("video", message.animation, "animation.mp4", "video/mp4"),
        ("file", message.document, "file", "application/octet-stream"),
    )
    for kind, file, name, mime in kinds:
        if file is not None:
            return _attachment(file, kind, name, mime)
    return None


def other_content(message: Message) -> str:
    """Return a line about content that is neither text nor a file; empty if there is nothing to say."""
    if message.sticker is not None:
        return f"[sticker {_line(message.sticker.emoji)}]".replace(" ]", "]")
    if message.venue is not None:
        place = message.venue.location
        return f"[venue {_line(message.venue.title)}, {_line(message.venue.address)} {_position(place)}]"
    if message.location is not None:
        return f"[location {_position(message.location)}]"
    if message.contact is not None:
        return f"[contact {_line(message.contact.first_name)} {_line(message.contact.phone_number)}]"
    if message.poll is not None:
        return f"[poll: {_line(message.poll.question)}]"
    if message.dice is not None:
        return f"[dice {_line(message.dice.emoji)} {message.dice.value}]"
    return ""


def _attachment(file: Any, kind: str, name: str, mime: str) -> Attachment:
    size = file.file_size if type(file.file_size) is int else 0
    own_name, own_mime = getattr(file, "file_name", None), getattr(file, "mime_type", None)
    if not isinstance(file.file_id, str) or not file.file_id:
        raise ValueError("a file has no id")
    known_mime = str(own_mime) if _is_mime(own_mime) else mime
    return Attachment(file.file_id, kind, _line(own_name)[:_MAX_NAME] or name, known_mime, size)


def _is_mime(text: object) -> bool:
    return isinstance(text, str) and len(text) < _MAX_MIME and text.isascii() and text.isprintable() and "/" in text


def _position(place: Any) -> str:
    return f"{float(place.latitude):.6f}, {float(place.longitude):.6f}"


def _line(text: object) -> str:
    """Return text of a user on one line, without characters that do not show."""
    if not isinstance(text, str):
        return ""
    return "".join(each if each.isprintable() else " " for each in text[:1000]).strip()
