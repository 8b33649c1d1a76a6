"""The content of messages that the bot sends; pure."""

from __future__ import annotations

import hashlib
import json
import mimetypes
from typing import Any

from hermes.platforms.base.adapter import Part
from hermes.platforms.base.media import MediaFile
from hermes.platforms.matrix.events import EVENT, as_dict, identifier
from hermes.platforms.matrix.formatting import FORMAT, to_html

TEXT_LIMIT = 16_000
"""An event has at most 64 KB, and an edit contains its text twice."""
_MOST_HTML = 24_000
"""A longer form of a text is left out, so that an edit with both texts stays below the limit."""
MARK = "hermes_sessions.transaction"
"""The field of a message with its transaction id, by which the message is found where the homeserver forgets ids."""
_MSGTYPES = {"image": "m.image", "audio": "m.audio", "video": "m.video", "file": "m.file"}


def encoded_length(text: str) -> int:
    """Return the length of a text in an event, in bytes."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))


def transaction_of(key: str) -> str:
    """Return the transaction id of a message: the same for the same key, and short enough for every server."""
    return f"hermes-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"


def message_content(part: Part) -> dict[str, Any]:
    """Return the content of a new message, in its thread and as a reply if it is one."""
    content = {**_text_content(part), MARK: transaction_of(part.key)}
    if relation := relation_of(part):
        content["m.relates_to"] = relation
    return content


def edit_content(message_id: str, part: Part) -> dict[str, Any]:
    """Return the content that replaces the text of a message."""
    new = _text_content(part)
    return {
        "msgtype": new["msgtype"],
        "body": f"* {part.text}",
        "m.mentions": {},
        "m.new_content": new,
        "m.relates_to": {"rel_type": "m.replace", "event_id": message_id},
    }


def file_content(part: Part, file: MediaFile, url: str, size: int) -> dict[str, Any]:
    """Return the content of a message with a file that the homeserver has."""
    content: dict[str, Any] = {
        "msgtype": _MSGTYPES[file.kind],
        "body": file.caption or file.path.name,
        "filename": file.path.name,
        "url": url,
        "info": {"mimetype": mime_of(file), "size": size},
        "m.mentions": {},
    }
    if relation := relation_of(part):
        content["m.relates_to"] = relation
    return content


def mime_of(file: MediaFile) -> str:
    """Return the type of a file, by its name."""
    return mimetypes.guess_type(file.path.name)[0] or "application/octet-stream"


def marked(events: list[Any], own_id: str) -> dict[str, str]:
    """Return the ids of the account's own messages by their marks."""
    found = {}
    for event in map(as_dict, events):
        mark, event_id = as_dict(event.get("content")).get(MARK), identifier(event.get("event_id"), EVENT)
        if event.get("sender") == own_id and isinstance(mark, str) and event_id is not None:
            found[mark] = event_id
    return found


def relation_of(part: Part) -> dict[str, Any] | None:
    """Return the relation of a message to its thread and to the message that it answers."""
    reply_to, thread_id = part.reply_to, part.delivery.thread_id
    if thread_id:
        answered = {"event_id": reply_to or thread_id}
        return {
            "rel_type": "m.thread",
            "event_id": thread_id,
            "is_falling_back": reply_to is None,
            "m.in_reply_to": answered,
        }
    return {"m.in_reply_to": {"event_id": reply_to}} if reply_to else None


def _text_content(part: Part) -> dict[str, Any]:
    # Without an explicit empty list, names in an answer would alert their users.
    kind = "m.notice" if part.delivery.kind == "notice" else "m.text"
    content: dict[str, Any] = {"msgtype": kind, "body": part.text, "m.mentions": {}}
    formatted = to_html(part.text)
    if formatted is not None and encoded_length(formatted) <= _MOST_HTML:
        content |= {"format": FORMAT, "formatted_body": formatted}
    return content
