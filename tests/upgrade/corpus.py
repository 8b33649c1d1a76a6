"""The conversations in every old file, and what a reader must find after an upgrade."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Payload: TypeAlias = dict[str, Json]

Row = TypeVar("Row", "Session", "Message")

FILES = Path(__file__).parent / "files"
SECONDS_PER_ROUND = 30 * 86_400


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the input; a value that the file cannot store has its default."""

    id: int
    session_id: str
    role: str
    timestamp: float
    content: Json = None
    tool_call_id: str | None = None
    tool_calls: Json = None
    tool_name: str | None = None
    token_count: int | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: Json = None
    codex_reasoning_items: Json = None
    codex_message_items: Json = None
    platform_message_id: str | None = None
    observed: bool = False
    active: bool = True


@dataclass(frozen=True, slots=True)
class Session:
    """One session of the input; a value that the file cannot store has its default."""

    id: str
    source: str
    started_at: float
    user_id: str | None = None
    model: str | None = None
    model_config: Json = None
    system_prompt: str | None = None
    parent_session_id: str | None = None
    ended_at: float | None = None
    end_reason: str | None = None
    message_count: int = 0
    tool_call_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    billing_provider: str | None = None
    billing_base_url: str | None = None
    billing_mode: str | None = None
    estimated_cost_usd: float | None = None
    actual_cost_usd: float | None = None
    cost_status: str | None = None
    cost_source: str | None = None
    pricing_version: str | None = None
    title: str | None = None
    api_call_count: int = 0
    cwd: str | None = None
    handoff_state: str | None = None
    handoff_platform: str | None = None
    rewind_count: int = 0
    archived: bool = False


@dataclass(frozen=True, slots=True)
class Topic:
    """A Telegram topic that is bound to a session."""

    chat_id: str
    thread_id: str
    user_id: str
    session_key: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Expected:
    """The content of a file: sessions by start, messages per session in the order they were written."""

    version: int
    sessions: tuple[Session, ...]
    messages: Mapping[str, tuple[Message, ...]]
    meta: Mapping[str, str] = field(default_factory=dict)
    topics: tuple[Topic, ...] = ()

    def session(self, session_id: str) -> Session:
        """The session of that id."""
        return next(session for session in self.sessions if session.id == session_id)

    def all_messages(self) -> tuple[Message, ...]:
        """Every message by id."""
        return tuple(sorted((m for rows in self.messages.values() for m in rows), key=lambda m: m.id))

    def to_json(self) -> str:
        """The text that `from_json` reads, one row a line."""
        parts = {
            "sessions": [asdict(session) for session in self.sessions],
            "messages": [asdict(message) for message in self.all_messages()],
            "topics": [asdict(topic) for topic in self.topics],
        }
        lines = [f'{{"version": {self.version}, "meta": {json.dumps(self.meta, ensure_ascii=False)}']
        for name, rows in parts.items():
            lines.append(f', "{name}": [')
            lines.append(",\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
            lines.append("]")
        return "\n".join([*lines, "}", ""])

    @classmethod
    def from_json(cls, text: str) -> Expected:
        """The inverse of `to_json`."""
        data = json.loads(text)
        return cls(
            version=data["version"],
            sessions=tuple(Session(**row) for row in data["sessions"]),
            messages=by_session([Message(**row) for row in data["messages"]]),
            meta=data["meta"],
            topics=tuple(Topic(**row) for row in data["topics"]),
        )


@dataclass(frozen=True, slots=True)
class Event:
    """One action of a program at one time."""

    at: float
    kind: str
    session_id: str
    payload: Payload


def by_session(messages: list[Message]) -> dict[str, tuple[Message, ...]]:
    """The messages per session, in the given order."""
    grouped: dict[str, list[Message]] = {}
    for message in messages:
        grouped.setdefault(message.session_id, []).append(message)
    return {session_id: tuple(rows) for session_id, rows in grouped.items()}


def limited(expected: Expected, session_columns: set[str], message_columns: set[str]) -> Expected:
    """What a file with only these columns has."""
    return replace(
        expected,
        sessions=tuple(_only(row, session_columns) for row in expected.sessions),
        messages={key: tuple(_only(row, message_columns) for row in rows) for key, rows in expected.messages.items()},
    )


def events(*, sessions: int) -> list[Event]:
    """The actions of a program that writes the first sessions of the corpus, in the order of time.

    More sessions than the corpus has repeat it, each round a month later with its own ids and titles.
    """
    stories = _corpus()["sessions"]
    actions = [
        event
        for number in range(sessions)
        for event in _events_of(stories[number % len(stories)], number // len(stories))
    ]
    return sorted(actions, key=lambda event: event.at)


def meta() -> dict[str, str]:
    """The key/value pairs of the corpus."""
    return cast("dict[str, str]", _corpus()["meta"])


def topic() -> Topic:
    """The one bound Telegram topic of the corpus."""
    row = dict(_corpus()["topic"])
    return Topic(session_id=row.pop("session"), **row)


class Ledger:
    """Records the input of a program, by the documented rules for counters."""

    def __init__(self) -> None:
        """Start empty."""
        self._sessions: dict[str, Session] = {}
        self._messages: list[Message] = []

    def create(self, at: float, session_id: str, payload: Payload) -> None:
        """Record that a session began."""
        self._sessions[session_id] = Session(id=session_id, started_at=at, **cast("dict[str, Any]", payload))

    def append(self, at: float, session_id: str, payload: Payload) -> Message:
        """Record that a message was written; without its own timestamp it has that of the clock."""
        stamped = {"timestamp": at, **payload}
        message = Message(id=len(self._messages) + 1, session_id=session_id, **cast("dict[str, Any]", stamped))
        self._messages.append(message)
        session = self._sessions[session_id]
        calls = len(message.tool_calls) if isinstance(message.tool_calls, list) else 0
        self.change(
            session_id, message_count=session.message_count + 1, tool_call_count=session.tool_call_count + calls
        )
        return message

    def count_tokens(self, session_id: str, payload: Payload) -> None:
        """Record used tokens: added up, or set when the payload says `absolute`."""
        given = cast("dict[str, Any]", payload)
        session = self._sessions[session_id]
        is_absolute = given.get("absolute", False)
        changed: dict[str, Any] = {}
        for name in (*TOKEN_COUNTERS, "api_call_count", "estimated_cost_usd"):
            before = 0 if is_absolute else (getattr(session, name) or 0)
            changed[name] = before + given.get(name, 0)
        changed["estimated_cost_usd"] = float(changed["estimated_cost_usd"])
        if "actual_cost_usd" in given:
            changed["actual_cost_usd"] = given["actual_cost_usd"] + (
                0 if is_absolute else (session.actual_cost_usd or 0)
            )
        for name in ("cost_status", "cost_source", "pricing_version"):
            changed[name] = given.get(name) or getattr(session, name)
        for name in ("billing_provider", "billing_base_url", "billing_mode"):
            changed[name] = getattr(session, name) or given.get(name)
        self.change(session_id, **changed)

    def rewind(self, session_id: str, first_id: int) -> None:
        """Record that all messages of the session from that id on were undone."""
        self._messages = [
            replace(m, active=False) if m.session_id == session_id and m.id >= first_id else m for m in self._messages
        ]
        self.change(session_id, rewind_count=self._sessions[session_id].rewind_count + 1)

    def change(self, session_id: str, **values: Any) -> None:
        """Record that columns of the session got these values."""
        self._sessions[session_id] = replace(self._sessions[session_id], **values)

    def message_at(self, session_id: str, index: int) -> Message:
        """The message at a position of the session."""
        return [message for message in self._messages if message.session_id == session_id][index]

    def close(self, version: int, *, meta: Mapping[str, str], topics: tuple[Topic, ...]) -> Expected:
        """Return everything that was recorded."""
        return Expected(version, tuple(self._sessions.values()), by_session(self._messages), dict(meta), topics)


TOKEN_COUNTERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_CREATED_WITH = ("source", "user_id", "model", "model_config", "system_prompt")


def _corpus() -> dict[str, Any]:
    """The corpus from its file."""
    return cast("dict[str, Any]", json.loads((FILES / "corpus.json").read_text(encoding="utf-8")))


def _events_of(story: dict[str, Any], turn: int) -> list[Event]:
    """The actions on one session."""
    session_id = _renamed(story["id"], turn)
    start = story["starts"] + turn * SECONDS_PER_ROUND
    actions: list[Event] = []

    def add(after: float, kind: str, payload: Payload) -> None:
        actions.append(Event(start + after, kind, session_id, payload))

    born = {key: story[key] for key in _CREATED_WITH if key in story}
    if isinstance(born.get("model_config"), dict):
        born["model_config"] = {
            key: _renamed(value, turn) if key in ("_branched_from", "_delegate_from") else value
            for key, value in born["model_config"].items()
        }
    if "parent" in story:
        born["parent_session_id"] = _renamed(story["parent"], turn)
    add(0, "create", born)
    if "title" in story:
        add(0.5, "title", {"title": story["title"] if turn == 0 else f"{story['title']} ({turn})"})
    if "cwd" in story:
        add(0.5, "cwd", {"cwd": story["cwd"]})
    for row in (*story["messages"], *story.get("tokens", ())):
        kind = "append" if "role" in row else "tokens"
        add(row["after"], kind, {key: value for key, value in row.items() if key != "after"})
    if "rewind" in story:
        add(story["rewind"]["after"], "rewind", {"to": story["rewind"]["to"]})
    if "handoff_platform" in story:
        add(500, "handoff", {"platform": story["handoff_platform"]})
    if "end_reason" in story:
        add(story["ends_after"], "end", {"end_reason": story["end_reason"]})
    if story.get("archived"):
        add(story["ends_after"] + 1, "archive", {})
    return actions


def _renamed(session_id: str, turn: int) -> str:
    """The id of a session in a later round."""
    return session_id if turn == 0 else f"{session_id}_{turn}"


def _only(row: Row, columns: set[str]) -> Row:
    """The row with the default wherever the column is missing."""
    return replace(
        row, **{f.name: f.default for f in fields(row) if f.name not in columns and f.default is not MISSING}
    )
