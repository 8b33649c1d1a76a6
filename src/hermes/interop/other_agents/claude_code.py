"""Sessions of Claude Code: JSON lines files that mix the user's threads with those of sub-agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes.errors import InvalidValue
from hermes.interop.jsonl.encoding import decode
from hermes.interop.jsonl.lines import Line, lines_of, parse_line
from hermes.interop.other_agents.claude_code_messages import SYNTHETIC_MODEL, Spending, Turns
from hermes.interop.other_agents.message_fields import is_storable, moment_of, text_of
from hermes.interop.other_agents.replay import Reader, Replay
from hermes.interop.source import ByteProgress, Examined
from hermes.state.import_export.session_checks import EXPORT_SCHEMA, CheckedSession, check_session, shorten_title
from hermes.state.rows import Row

SOURCE = "claude-code"

TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""The kinds of lines with a title, and the key of the title; later kinds take precedence."""
IGNORED_KINDS = frozenset(
    (
        "agent-name",
        "attachment",
        "file-history-snapshot",
        "last-prompt",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "system",
        "tag",
    )
)
"""The known kinds of lines without a message."""


def is_claude_code(record: Mapping[str, Any]) -> bool:
    """Whether an object is a line of a Claude Code file."""
    kind = text_of(record.get("type"))
    if kind in ("user", "assistant"):
        return isinstance(record.get("sessionId"), str) and isinstance(record.get("message"), dict)
    if kind == "summary":
        return isinstance(record.get("leafUuid"), str)
    return kind in IGNORED_KINDS | TITLES.keys() and ("sessionId" in record or "messageId" in record)


@dataclass(slots=True)
class _Thread:
    """A conversation in a file: the user's, or that of a sub-agent."""

    session_id: str
    agent: str
    replay: Replay
    started_at: float | None = None
    cwd: str | None = None
    model: str | None = None
    messages: int = 0
    turns: Turns = field(default_factory=Turns)
    spending: Spending = field(default_factory=Spending)

    @property
    def id(self) -> str:
        """The id of the imported session."""
        return f"{SOURCE}_{self.session_id}" + (f"_{self.agent}" if self.agent else "")

    def note(self, entry: Mapping[str, Any], line: Line, now: float) -> bool:
        """Process a line; return False if it holds no message that can be stored."""
        try:
            messages = self.turns.take(entry)
        except RecursionError:
            return False
        if not all(is_storable(each, now) for each in messages):
            return False
        self.messages += len(messages)
        self.replay.note(line)
        self.started_at = moment_of(entry.get("timestamp")) if self.started_at is None else self.started_at
        self.cwd = self.cwd or text_of(entry.get("cwd")) or None
        if entry["type"] == "assistant":
            model = text_of(entry["message"].get("model"))
            self.model = model if model and model != SYNTHETIC_MODEL else self.model
            self.spending.take(entry)
        return True


class ClaudeCode:
    """A session file of Claude Code."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads: dict[tuple[str, str], _Thread] = {}
        self._roots: dict[str, str] = {}
        """The first line of a sub-agent's thread, by the uuid of each of its lines."""
        self._speakers: dict[str, str] = {}
        """The session id of each line, by uuid."""
        self._summaries: dict[str, str] = {}
        self._titles: dict[str, dict[str, str]] = {}
        self._found: list[CheckedSession] = []

    def examine(self, now: float, progress: ByteProgress) -> Examined:
        """Read and check the whole file."""
        skipped = 0
        trouble: InvalidValue | None = None
        try:
            with self._path.open("rb") as file:
                for line in lines_of(file, self._path, self._path.stat().st_size):
                    skipped += not self._note(parse_line(line, self._path), line, now)
                    progress(len(line.data))
        except InvalidValue as error:
            trouble = error
        for thread in self._threads.values():
            if thread.messages:
                thread.spending.finish(now)
                self._found.append(check_session(self._head(thread), now, thread.replay))
        return Examined([session.id for session in self._found], skipped, trouble)

    def sessions(self, now: float, progress: ByteProgress) -> Iterator[CheckedSession]:
        """Yield the sessions that `examine` found; call `examine` first."""
        yield from self._found
        progress(self._path.stat().st_size)

    def _note(self, entry: Mapping[str, Any], line: Line, now: float) -> bool:
        kind = text_of(entry.get("type"))
        if kind in TITLES:
            return self._note_title(kind, entry)
        if kind not in ("user", "assistant"):
            return kind in IGNORED_KINDS
        session_id, uuid = entry.get("sessionId"), entry.get("uuid")
        if not isinstance(session_id, str) or not isinstance(uuid, str) or not isinstance(entry.get("message"), dict):
            return False
        self._speakers[uuid] = session_id
        key = (session_id, self._agent(entry, uuid))
        thread = self._threads.get(key) or _Thread(*key, Replay(self._path, _reader))
        if not thread.note(entry, line, now):
            return False
        self._threads[key] = thread
        return True

    def _agent(self, entry: Mapping[str, Any], uuid: str) -> str:
        """The name of the sub-agent that a line belongs to; empty for the user's own thread."""
        if entry.get("isSidechain") is not True:
            return ""
        root = self._roots[uuid] = self._roots.get(text_of(entry.get("parentUuid")), uuid)
        return text_of(entry.get("agentId")) or root

    def _note_title(self, kind: str, entry: Mapping[str, Any]) -> bool:
        title = entry.get(TITLES[kind])
        if not isinstance(title, str):
            return False
        if kind == "summary":
            self._summaries[text_of(entry.get("leafUuid"))] = title
        else:
            self._titles.setdefault(text_of(entry.get("sessionId")), {})[kind] = title
        return True

    def _title(self, thread: _Thread) -> str | None:
        if thread.agent:
            return None
        # A file may begin with the summaries of other sessions.
        own = [text for leaf, text in self._summaries.items() if self._speakers.get(leaf) == thread.session_id]
        named = {"summary": own[-1]} if own else {}
        named |= self._titles.get(thread.session_id, {})
        best = max(named, key=list(TITLES).index, default=None)
        return None if best is None else shorten_title(named[best])

    def _head(self, thread: _Thread) -> Row:
        head: Row = {
            "schema": EXPORT_SCHEMA,
            "id": thread.id,
            "source": SOURCE,
            "started_at": thread.started_at,
            "model": thread.model,
            "cwd": thread.cwd,
            "title": self._title(thread),
            "usage": thread.spending.bookings,
        }
        if thread.agent:
            head |= {"parent_session_id": f"{SOURCE}_{thread.session_id}", "child_kind": "delegate"}
        return head


def _reader() -> Reader:
    turns = Turns()
    return lambda line: turns.take(decode(line.data))
