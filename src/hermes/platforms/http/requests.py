"""Bodies and queries of requests, checked.

A body is decoded in two steps: its fields stay as bytes until one is used, and each is read as one type. So a body of
10 MB full of brackets costs milliseconds, and no values are made that no route uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from hermes.platforms.http.errors import ApiError

if TYPE_CHECKING:
    from starlette.requests import Request

T = TypeVar("T")
MAX_NAME_CHARACTERS = 256
MOST_MESSAGES, MOST_PARTS = 2000, 1000
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ESCAPED = 6
"""How many bytes of JSON a character may take."""


class _Part(msgspec.Struct):
    type: str = ""
    text: str | None = None


class _Message(msgspec.Struct):
    role: str | None = None
    content: str | list[_Part] | None = None


class _Id(msgspec.Struct):
    id: str


_TEXT_OR_ID: Any = str | _Id
_TEXT_OR_MESSAGES: Any = str | list[_Message]


def bad(message: str, code: str = "invalid_value", param: str | None = None) -> ApiError:
    """Return the error for a wrong value."""
    return ApiError(400, code, message, param=param)


class Fields:
    """The fields of a JSON object; null counts as missing."""

    def __init__(self, raw: Mapping[str, msgspec.Raw]) -> None:
        self.given = frozenset(raw)
        """The names of all fields, also of those that are null."""
        self._raw = {name: value for name, value in raw.items() if bytes(memoryview(value)[:5]) != b"null"}

    def text(self, name: str, most: int = MAX_NAME_CHARACTERS) -> str | None:
        """Return a text; raise `ApiError` if it is no text or too long."""
        if name not in self._raw:
            return None
        value = self._read(name, str, _ESCAPED * most + 2)
        if len(value) > most or "\0" in value:
            raise bad(f"{name} must be text with at most {most} characters", param=name)
        return value

    def flag(self, name: str) -> bool:
        """Return a truth value; False if it is missing."""
        return name in self._raw and self._read(name, bool, 100)

    def number(self, name: str) -> int | None:
        """Return a whole number."""
        return self._read(name, int, 100) if name in self._raw else None

    def inner(self, name: str) -> Fields:
        """Return the fields of an object; none if it is missing."""
        return Fields(self._read(name, dict[str, msgspec.Raw], 1_000_000)) if name in self._raw else Fields({})

    def is_empty(self, name: str) -> bool:
        """Whether a list or an object is missing or has no content."""
        return name not in self._raw or bytes(self._raw[name]).translate(None, b" \t\r\n") in (b"[]", b"{}")

    def id_or_object(self, name: str) -> str | None:
        """Return an id, given as a text or as an object with an id."""
        if name not in self._raw:
            return None
        found: str | _Id = self._read(name, _TEXT_OR_ID, 10_000)
        text = found if isinstance(found, str) else found.id
        if not 1 <= len(text) <= MAX_NAME_CHARACTERS or "\0" in text:
            raise bad(f"{name} must be an id, or an object with an id", param=name)
        return text

    def messages(self, name: str, *, needs_user: bool = True) -> list[dict[str, str]]:
        """Return messages as role and text; one text is a message of the user.

        Raise `ApiError` if one cannot be read, or if the last one is not the user's.
        """
        if name not in self._raw:
            raise bad(f"{name} is missing", param=name)
        found: str | list[_Message] = self._read(name, _TEXT_OR_MESSAGES)
        given = [_Message("user", found)] if isinstance(found, str) else found
        if not 1 <= len(given) <= MOST_MESSAGES:
            raise bad(f"{name} must be a list of 1 to {MOST_MESSAGES} messages", param=name)
        messages = [_read_message(each, f"{name}[{place}]") for place, each in enumerate(given)]
        if needs_user and (messages[-1]["role"] != "user" or not messages[-1]["content"].strip()):
            raise bad("the last message must be one of the user, with text", param=name)
        return [each for each in messages if each["content"] or each["role"] == "user"]

    def _read(self, name: str, kind: type[T], most_bytes: int | None = None) -> T:
        raw = self._raw[name]
        if most_bytes is not None and memoryview(raw).nbytes > most_bytes:
            raise bad(f"{name} is too long", param=name)
        try:
            value: T = msgspec.json.decode(raw, type=kind)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise bad(f"{name}: {error}", param=name) from None
        return value


async def read_fields(request: Request) -> Fields:
    """Return the fields of a body, which may be empty; raise `ApiError` if it is no JSON object."""
    body = await request.body()
    try:
        return Fields(_FIELDS.decode(body or b"{}"))
    except (msgspec.ValidationError, RecursionError):
        raise bad("the body is not a JSON object", "invalid_json") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise bad("the body is not JSON", "invalid_json") from None


def idempotency_key(request: Request) -> str | None:
    """Return what a client sends along with each attempt at a request; None if it sends nothing."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 1 <= len(key) <= 255:
        raise bad("Idempotency-Key must have 1 to 255 characters", param="Idempotency-Key")
    return key


def page_size(request: Request, usual: int = 20, most: int = 100) -> int:
    """Return the `limit` of a list."""
    text = request.query_params.get("limit", str(usual))
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 6 and 1 <= int(text) <= most):
        raise bad(f"limit must be a whole number from 1 to {most}", param="limit")
    return int(text)


def message_number(text: str | None, prefix: str = "") -> int | None:
    """Return the number in the id of a stored message, as a page begins after it; raise `ApiError` if it is none."""
    if text is None:
        return None
    digits = text.removeprefix(prefix)
    if not (text.startswith(prefix) and digits.isascii() and digits.isdigit() and len(digits) < 18):
        raise bad("after must be the id of a message", param="after")
    return int(digits)


def _read_message(message: _Message, name: str) -> dict[str, str]:
    role = _ROLES.get(message.role or "")
    if role is None:
        raise bad(f"{name} must be a message of system, developer, user or assistant", param=name)
    text = _text_of(message.content, name)
    if "\0" in text:
        raise bad(f"{name} contains characters that cannot be stored", param=name)
    return {"role": role, "content": text}


def _text_of(content: str | Sequence[_Part] | None, name: str) -> str:
    if isinstance(content, str):
        return content
    if len(content or ()) > MOST_PARTS:
        raise bad(f"{name} has more than {MOST_PARTS} parts", param=name)
    texts = []
    for part in content or ():
        if part.type not in _TEXT_PARTS or part.text is None:
            raise bad(f"{name} may contain only text parts", "unsupported_content", name)
        texts.append(part.text)
    return "\n".join(texts)
