"""Sessions of an import: checked and encoded, ready to be inserted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hermes.errors import InvalidValue
from hermes.state.json_text import loads_or_keep
from hermes.state.messages.drafts import JSON_FIELDS, MESSAGE_FIELDS, Draft, draft_message
from hermes.state.rows import (
    Row,
    encode_json,
    optional_identifier,
    optional_integer,
    optional_number,
    optional_text,
    parse_timestamp,
    require_flag,
    require_identifier,
)
from hermes.state.sessions.lineage.kinds import kind_from_markers, parse_kind
from hermes.state.sessions.records import new_session
from hermes.state.sessions.title_rules import MAX_TITLE_LENGTH, sanitize
from hermes.state.usage.counters import COSTS, COUNTERS
from hermes.state.usage.events import OPENING_KIND, reconcile_counters

EXPORT_SCHEMA = "hermes.export/1"
"""The mark of an export in which JSON columns are values, not the text that is stored."""

CARRIED: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("ended_at", *COSTS), optional_number),
    **dict.fromkeys(("archived", "pinned"), require_flag),
    **dict.fromkeys(("rewind_count", *COUNTERS), optional_integer),
    **dict.fromkeys(
        (
            "end_reason",
            "billing_provider",
            "billing_base_url",
            "billing_mode",
            "cost_status",
            "cost_source",
            "pricing_version",
        ),
        optional_text,
    ),
}
"""Columns that an import copies in addition to those of a new session, and how each is checked."""

BOOKING_KINDS = ("delta", "absolute", OPENING_KIND)
REWIND_ACTIONS = ("rewind", "restore")
UNDECIDED = "?"
"""The kind of a child that another program created and that is not decided yet."""


@dataclass(frozen=True, slots=True)
class CheckedSession:
    """A session to import."""

    values: Row
    """The columns that it is created with."""
    carried: Row
    """The columns that are set after that."""
    title: str | None
    parent_id: str | None
    kind: str | None
    """The kind of child; an empty string for none, None if it must be derived from the parent."""
    opening: list[Row]
    """The usage event for the part of its counters that no other event explains."""
    usage: list[Row]
    """Its usage events."""
    rewinds: list[Row]
    messages: Iterable[Mapping[str, Any]]
    """As given; read more than once."""
    tells_values: bool
    """Whether JSON columns are values; otherwise they may be JSON text."""
    latest: float | None = None
    """Later timestamps are set to this moment; None keeps all timestamps."""
    adds_to_own: bool = False
    """Whether it may add to sessions that were created here, and be linked to them."""

    @property
    def id(self) -> str:
        """The id in the export."""
        session_id: str = self.values["id"]
        return session_id


def check_session(
    data: Mapping[str, Any], now: float, messages: Iterable[Mapping[str, Any]] | None = None
) -> CheckedSession:
    """Check an exported session, except its messages, which are those in `data` unless they are given."""
    if not isinstance(data, Mapping):
        raise InvalidValue(f"an exported session is a dict, not {type(data).__name__}")
    values = _session_values(data, now)
    if messages is None:
        messages = data.get("messages") or []
        if not isinstance(messages, list):
            raise InvalidValue("the messages of an exported session are a list")
    carried = {name: check(data[name], name) for name, check in CARRIED.items() if data.get(name) is not None}
    usage = [_check_usage(each) for each in _dicts(data, "usage")]
    start = {"at": values["started_at"], "model": values["model"], "billing_provider": carried.get("billing_provider")}
    counters, opening = reconcile_counters(carried, usage, start)
    # Our exports state the kind of a child, even if there is none; for others it is derived.
    is_stated = "child_kind" in data and data["child_kind"] != UNDECIDED
    return CheckedSession(
        values=values,
        carried={**carried, **counters},
        title=sanitize(data.get("title")),
        parent_id=optional_identifier(data.get("parent_session_id") or None, "parent_session_id"),
        kind=values["child_kind"] or ("" if is_stated else None),
        opening=opening,
        usage=usage,
        rewinds=[_rewind(each) for each in _dicts(data, "rewinds")],
        messages=messages,
        tells_values=data.get("schema") == EXPORT_SCHEMA,
    )


def shorten_title(text: str) -> str | None:
    """Return as much of another program's title as can be a title here."""
    return sanitize(text[:MAX_TITLE_LENGTH].encode("utf-8", "ignore").decode())


def iter_drafts(session: CheckedSession, now: float) -> Iterator[Draft]:
    """Yield the messages of a session, each checked when it is read."""
    for position, message in enumerate(session.messages):
        if not isinstance(message, Mapping):
            raise InvalidValue(f"message {position} of session {session.id!r} is not a dict")
        fields = {name: value for name, value in message.items() if value is not None and name in MESSAGE_FIELDS}
        if not session.tells_values:
            for name in JSON_FIELDS:
                if isinstance(fields.get(name), str):
                    fields[name] = loads_or_keep(fields[name])
        if not fields.get("uid"):
            fields["uid"] = _uid_of(session.id, position, message)
        active = message.get("active")
        made = draft_message(fields, now, active=active is None or bool(active))
        if session.latest is not None and made.values["timestamp"] > session.latest:
            made.values["timestamp"] = session.latest
        yield made


def _session_values(data: Mapping[str, Any], now: float) -> Row:
    fields = ("model", "model_config", "system_prompt", "user_id", "cwd", "owner")
    values = new_session(
        require_identifier(data.get("id"), "id"),
        data.get("source") or "unknown",
        parse_timestamp(data.get("started_at"), now),
        **{name: data.get(name) for name in fields},
    )
    if data.get("schema") == EXPORT_SCHEMA and "owner" in data:
        # A session without an owner belongs to the terminal; a user id must not give it another owner.
        values["owner"] = data["owner"] or None
    kind = data.get("child_kind")
    marked = kind_from_markers(values["model_config"], is_old=True)
    return {**values, "child_kind": parse_kind(None if kind == UNDECIDED else kind) or marked}


def _dicts(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    given = data.get(name) or []
    if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
        raise InvalidValue(f"the {name} of an exported session is a list of dicts")
    return given


def _check_usage(given: Mapping[str, Any]) -> Row:
    return {
        "at": _required_number(given, "at"),
        "kind": _one_of(given, "kind", BOOKING_KINDS),
        **{name: optional_text(given.get(name), name) for name in ("model", "billing_provider")},
        **{name: optional_integer(given.get(name), name) or 0 for name in COUNTERS},
        **{name: optional_number(given.get(name), name) for name in COSTS},
    }


def _rewind(given: Mapping[str, Any]) -> Row:
    return {
        "action": _one_of(given, "action", REWIND_ACTIONS),
        "target_uid": optional_text(given.get("target_uid"), "target_uid"),
        "message_count": optional_integer(given.get("message_count"), "message_count") or 0,
        "at": _required_number(given, "at"),
    }


def _required_number(given: Mapping[str, Any], name: str) -> float:
    number = optional_number(given.get(name), name)
    if number is None:
        raise InvalidValue(f"{name} must be a number, not None")
    return number


def _one_of(given: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    value = given.get(name)
    if value not in known:
        raise InvalidValue(f"{name} must be one of {', '.join(known)}, not {value!r}")
    return str(value)


def _uid_of(session_id: str, position: int, message: Mapping[str, Any]) -> str:
    """Return a uid for a message without one: the same each time the same export is read."""
    from hashlib import sha256

    identity = encode_json([session_id, position, message.get("role"), message.get("content")])
    return f"import-{sha256(identity.encode()).hexdigest()[:16]}"
