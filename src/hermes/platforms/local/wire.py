"""The lines of the local socket: each is one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from hermes.gateway.engine.ports import Admission, Delivery, Inbound
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource

MAX_LINE_BYTES: Final = 1024 * 1024
CONTROL_COMMANDS: Final = ("status", "drain", "undrain", "stop", "restart")
EVERY_CHAT: Final = "*"
BAD_REQUEST: Final = "bad_request"
_MAX_ID_CHARACTERS = 512
_MAX_DIGITS = 64


class BadRequest(Exception):
    """A line that cannot be used; `message_id` is the one of the line, if it has one."""

    def __init__(self, message: str, message_id: object = None) -> None:
        super().__init__(message)
        self.message_id = message_id


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a user."""

    message_id: str | int
    """As the client wrote it."""
    inbound: Inbound


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A client wants the replies of a chat, or of every chat."""

    chat_id: str


@dataclass(frozen=True, slots=True)
class Received:
    """A client has a reply."""

    delivery_id: str


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """An operator's request to the gateway itself."""

    command: str
    request: Mapping[str, Any] = field(default_factory=dict)


Request = Message | Subscribe | Received | ControlRequest


def parse_request(line: bytes) -> Request:
    """Return the request in a line; raise `BadRequest` with a sentence that says what is wrong."""
    try:
        data = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadRequest("the line is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the line is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadRequest("the line is not a JSON object")
    message_id = data.get("message_id")
    given_id = message_id if _is_id(message_id) else None
    try:
        return _request_of(data)
    except BadRequest as error:
        raise BadRequest(str(error), given_id) from None


def _request_of(data: Mapping[str, Any]) -> Request:
    match data.get("type"):
        case "message":
            return _message(data)
        case "subscribe":
            if EVERY_CHAT in data and "chat_id" not in data:
                return Subscribe(EVERY_CHAT)
            return Subscribe(_id(data, "chat_id"))
        case "received":
            return Received(_id(data, "delivery_id", _MAX_ID_CHARACTERS * 16))
        case "control":
            command = data.get("command")
            if command not in CONTROL_COMMANDS:
                raise BadRequest(f"command is {_shown(command)}, expected one of {', '.join(CONTROL_COMMANDS)}")
            return ControlRequest(command, data)
        case None:
            raise BadRequest("type is missing")
        case other:
            raise BadRequest(f"type is {_shown(other)}, expected message, subscribe, received or control")


def _message(data: Mapping[str, Any]) -> Message:
    missing = [name for name in ("message_id", "chat_id", "text") if data.get(name) in (None, "")]
    if missing:
        raise BadRequest(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    text = data["text"]
    if not isinstance(text, str):
        raise BadRequest(f"text is {_shown(text)}, expected text")
    if not text.strip():
        raise BadRequest("text is blank")
    message_id, chat_id = _id(data, "message_id"), _id(data, "chat_id")
    if chat_id == EVERY_CHAT:
        raise BadRequest("chat_id is '*', which stands for every chat")
    chat_type = _optional_text(data, "chat_type") or "dm"
    source = SessionSource(
        platform=Platform.LOCAL,
        chat_id=chat_id,
        chat_name=_optional_text(data, "chat_name"),
        chat_type=chat_type,
        # Without a user, a private chat is its user; other chats are shared then, as on platforms that name no users.
        user_id=_optional_id(data, "user_id") or (chat_id if chat_type == "dm" else None),
        user_name=_optional_text(data, "user_name"),
        thread_id=_optional_id(data, "thread_id"),
        message_id=message_id,
    )
    return Message(data["message_id"], Inbound(text=text, source=source, message_id=message_id))


def encode(data: Mapping[str, Any]) -> bytes:
    """Return a line. It contains only ASCII, so that no client takes a character of the text for a line break."""
    return json.dumps(data, separators=(",", ":")).encode("ascii") + b"\n"


def admission_line(message_id: str | int, admission: Admission) -> bytes:
    """Return the line that says what became of a message."""
    if admission.state == "refused":
        return refused_line(message_id, admission.code or "refused", admission.message)
    return encode({"type": "accepted", "message_id": message_id, "state": admission.state})


def refused_line(message_id: object, code: str, message: str) -> bytes:
    """Return the line that says why a line or a message was refused."""
    return encode({"type": "refused", "message_id": message_id, "code": code, "message": message})


def delivery_line(delivery: Delivery) -> bytes:
    """Return the line of a reply, of its preview, or of a notice."""
    thread = {} if delivery.thread_id is None else {"thread_id": delivery.thread_id}
    head = {"delivery_id": delivery.key, "chat_id": delivery.chat_id}
    if delivery.kind == "notice":
        return encode({"type": "notice", **head, **thread, "text": delivery.text})
    answers = {"answers": list(delivery.answers)} if delivery.answers else {}
    line = {"type": "reply", **head, "thread_id": delivery.thread_id, "reply_to": delivery.reply_to, **answers}
    return encode({**line, "text": delivery.text, "final": delivery.is_final})


def control_line(command: str, result: Mapping[str, Any]) -> bytes:
    """Return the line with the result of an operator's request."""
    return encode({"type": "control", "command": command, "result": dict(result)})


def _is_id(value: object) -> TypeGuard[str | int]:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _id(data: Mapping[str, Any], name: str, most: int = _MAX_ID_CHARACTERS) -> str:
    value = data.get(name)
    if value is None or value == "":
        raise BadRequest(f"{name} is missing")
    if not _is_id(value):
        raise BadRequest(f"{name} is {_shown(value)}, expected text or an integer")
    if isinstance(value, int) and value.bit_length() > 3 * _MAX_DIGITS:
        raise BadRequest(f"{name} has too many digits")
    if len(text := str(value)) > most:
        raise BadRequest(f"{name} has {len(text)} characters, at most {most} are allowed")
    return text


def _optional_id(data: Mapping[str, Any], name: str) -> str | None:
    return None if data.get(name) in (None, "") else _id(data, name)


def _optional_text(data: Mapping[str, Any], name: str) -> str | None:
    value = data.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise BadRequest(f"{name} is {_shown(value)}, expected text")
    if len(value) > _MAX_ID_CHARACTERS:
        raise BadRequest(f"{name} has {len(value)} characters, at most {_MAX_ID_CHARACTERS} are allowed")
    return value


def _shown(value: object) -> str:
    """Return a value for an error message, shortened."""
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
