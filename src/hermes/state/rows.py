"""Row types, and the one place where values are encoded for a database and decoded from it.

A database's text cannot hold every Python string: no database stores lone surrogates, PostgreSQL no NUL. Such a string,
and every list or dict, is stored as `MARK` followed by JSON. Plain text is stored unchanged.
"""

from __future__ import annotations

import json
import math
from binascii import crc32
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.errors import InvalidValue
from hermes.ids import OWN_UID
from hermes.log import warn
from hermes.state import json_text
from hermes.state.json_text import is_unicode

Row = dict[str, Any]
"""One row of a table, by column name."""

AnyRow = Mapping[str, Any]
"""A row of any type, read-only."""

MARK = "\x01json:"
OLD_MARK = "\x00json:"
"""The prefix of structured content in files of older versions."""

SESSION_TEXT = (
    "model",
    "system_prompt",
    "model_config",
    "preview",
    "cwd",
    "end_reason",
    "cost_status",
    "cost_source",
    "pricing_version",
    "billing_provider",
    "billing_base_url",
    "billing_mode",
    "handoff_platform",
    "handoff_error",
    "imported_from",
    "platform",
    "error",
)
"""The columns of a session that hold free text, also under the names that queries give them."""

LATER_COLUMNS = ("imported_from",)
"""The columns that a read-only store with an older schema may lack."""

FREE_TEXT = ("tool_name", "tool_call_id", "finish_reason", "platform_message_id", "reasoning", "reasoning_content")
"""The columns of a message besides its content that hold free text."""

MAX_INTEGER = 2**63 - 1


class Stored(str):
    """Text that is already in its stored form."""

    __slots__ = ()


def encode_text(value: str) -> str:
    """Return the stored form of a string."""
    if "\0" in value or value.startswith(MARK) or not (value.isascii() or is_unicode(value)):
        return Stored(MARK + json_text.dumps_ascii(value))
    return value


def decode_text(value: Any) -> Any:
    """Return the string that `encode_text` encoded; other values pass through."""
    if type(value) is str and value[:1] == "\x01" and value.startswith(MARK):
        try:
            return json_text.loads(value[len(MARK) :])
        except (ValueError, RecursionError):
            return value
    return value


def encode_json(value: Any) -> str:
    """Return JSON text, readable (not escaped) where the database can hold it."""
    try:
        return json_text.dumps(value)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidValue(f"this value cannot be stored as JSON: {exc}") from None


def encode_content(content: Any) -> str | None:
    """Return the stored form of a message's content: None, text, a list or a dict."""
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list | tuple | dict):
        try:
            _check_structure(content)
        except RecursionError:
            raise InvalidValue("content is nested too deeply, or contains itself") from None
        return Stored(MARK + encode_json(content))
    raise InvalidValue(
        f"content must be None, str, list or dict, not {type(content).__name__}",
        hint="convert it to text or to a list of content parts",
    )


def decode_content(stored: Any) -> Any:
    """Return the content that `encode_content` encoded, also from rows of older files."""
    if not isinstance(stored, str) or stored[:1] not in ("\x00", "\x01"):
        return stored
    for mark in (MARK, OLD_MARK):
        if stored.startswith(mark):
            try:
                return json_text.loads(stored[len(mark) :])
            except (ValueError, RecursionError):
                warn(__name__, "a message's structured content is not valid JSON; showing it as text")
                return stored
    return stored


def decode_json(stored: Any, *, otherwise: Any, what: str) -> Any:
    """Return parsed JSON, or `otherwise` (with a warning) if the text is broken."""
    try:
        return json_text.loads(stored)
    except (TypeError, ValueError, RecursionError):
        warn(__name__, "%s of a stored message is not valid JSON", what)
        return otherwise


def session_row(columns: Sequence[str], values: Sequence[Any]) -> Row:
    """Return a session as a dict of the given columns."""
    row = dict(zip(columns, values, strict=True))
    if "system_prompt" in row:
        # Only a complete row has the system prompt.
        for column in LATER_COLUMNS:
            row.setdefault(column, None)
    for column in SESSION_TEXT:
        if row.get(column):
            row[column] = decode_text(row[column])
    return row


def message_row(columns: Sequence[str], values: Sequence[Any]) -> Row:
    """Return a message as a dict of all its columns, with content and tool calls decoded."""
    row = dict(zip(columns, values, strict=True))
    if row["uid"] is None:
        row["uid"] = derived_uid(row["id"], row["timestamp"], row["role"], row["content"])
    for column in FREE_TEXT:
        if row[column]:
            row[column] = decode_text(row[column])
    if row["content"]:
        row["content"] = decode_content(row["content"])
    if row["tool_calls"] is not None:
        row["tool_calls"] = decode_json(row["tool_calls"], otherwise=[], what="tool_calls")
    return row


def derived_uid(message_id: int, timestamp: Any, role: Any, stored_content: Any) -> str:
    """Return the uid of a message that an older or foreign program stored without one; it never changes."""
    identity = f"{timestamp}:{role}:{stored_content}".encode(errors="surrogatepass")
    return f"{OWN_UID}row-{message_id}-{crc32(identity):08x}"


def uid_of(message_id: int, uid: str | None, timestamp: Any, role: Any, stored_content: Any) -> str:
    """Return a message's uid, derived from the row if another program stored it without one."""
    return uid if uid is not None else derived_uid(message_id, timestamp, role, stored_content)


def flatten_text(content: Any) -> str:
    """Return the visible text of a content value."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else [content]
    texts = [
        part if isinstance(part, str) else part["text"]
        for part in parts
        if isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str))
    ]
    return " ".join(texts) if texts else "[multimodal content]"


def part_text(part: Any) -> str:
    """Return the text of one part of a content value, or its type in brackets."""
    if part is None:
        return ""
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    if isinstance(part, dict) and isinstance(part.get("type"), str):
        return f"[{part['type']}]"
    return json.dumps(part, ensure_ascii=False)


def make_preview(content: Any) -> str:
    """Return the preview of a conversation for lists: one line of at most 60 characters and an ellipsis."""
    head = flatten_text(content)[:63].replace("\n", " ").replace("\r", " ").strip()
    return head[:60] + "..." if len(head) > 60 else head


def one_line(content: Any, width: int) -> str:
    """Return a content value as one line of at most `width` characters."""
    text = " ".join(flatten_text(content).split())
    return text if len(text) <= width else text[: width - 3] + "..."


def count_tool_calls(tool_calls: Any) -> int:
    """Return the number of calls in a tool_calls value."""
    if tool_calls is None:
        return 0
    return len(tool_calls) if isinstance(tool_calls, list | tuple) else 1


def tool_names(tool_calls: Any) -> list[str]:
    """Return the names of the called functions, in order."""
    if not isinstance(tool_calls, list | tuple):
        return []
    names = []
    for call in tool_calls:
        if isinstance(call, Mapping):
            function = call.get("function")
            name = (function.get("name") if isinstance(function, Mapping) else None) or call.get("name")
            if isinstance(name, str) and name:
                names.append(name)
    return names


def parse_timestamp(value: Any, now: float) -> float:
    """Return the time of a number, numeric string or datetime; `now` for anything else."""
    try:
        if hasattr(value, "timestamp"):
            value = value.timestamp()
        moment = now if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError, OSError):
        return now
    return moment if math.isfinite(moment) else now


def require_identifier(value: Any, name: str) -> str:
    """Return `value` if every database can store it as an identifier: a nonempty string, valid Unicode, no NUL."""
    if not isinstance(value, str):
        raise InvalidValue(f"{name} must be a string, not {type(value).__name__}")
    if not value:
        raise InvalidValue(f"{name} must not be empty")
    if "\0" in value or not (value.isascii() or is_unicode(value)):
        raise InvalidValue(f"{name} must be valid text without NUL characters: {value!r}")
    return value


def optional_identifier(value: Any, name: str) -> str | None:
    """Return `value` if it is an identifier or None."""
    return None if value is None else require_identifier(value, name)


def optional_text(value: Any, name: str) -> str | None:
    """Return `value` if it is a string or None."""
    if value is not None and not isinstance(value, str):
        raise InvalidValue(f"{name} must be a string or None, not {type(value).__name__}")
    return value


def optional_integer(value: Any, name: str) -> int | None:
    """Return `value` if it is a whole number that a database can hold, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidValue(f"{name} must be a whole number, not {type(value).__name__}")
    if not -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
        raise InvalidValue(f"{name} is too large to store: {value}")
    return value


def require_flag(value: Any, name: str) -> int:
    """Return 1 or 0 for a boolean value."""
    if not isinstance(value, bool | int):
        raise InvalidValue(f"{name} must be true or false, not {value!r}")
    return int(bool(value))


def require_integer(value: Any, name: str) -> int:
    """Return `value` if it is a whole number, such as a limit."""
    number = optional_integer(value, name)
    if number is None:
        raise InvalidValue(f"{name} must be a whole number, not None")
    return number


def optional_number(value: Any, name: str) -> float | None:
    """Return `value` if it is a finite number, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValue(f"{name} must be a finite number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidValue(f"{name} must be a finite number")
    return number


def optional_amount(value: Any, name: str) -> int | None:
    """Return `value` if it is a whole number that is not negative, or None."""
    number = optional_integer(value, name)
    if number is not None and number < 0:
        raise InvalidValue(f"{name} must not be negative: {number}")
    return number


def optional_cost(value: Any, name: str) -> float | None:
    """Return `value` if it is a finite number that is not negative, or None."""
    number = optional_number(value, name)
    if number is not None and number < 0:
        raise InvalidValue(f"{name} must not be negative: {number}")
    return number


def require_number(value: Any, name: str) -> float:
    """Return `value` if it is a finite number."""
    number = optional_number(value, name)
    if number is None:
        raise InvalidValue(f"{name} must be a number, not None")
    return number


def _check_structure(value: Any) -> None:
    """Raise InvalidValue for keys that are not strings, because JSON would silently change them."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidValue(f"keys of structured content must be strings, not {key!r}")
            _check_structure(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_structure(item)
