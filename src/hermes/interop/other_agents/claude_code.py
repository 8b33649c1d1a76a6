"""Sessions of Claude Code: files of lines, in which the threads of agents stand among those of the person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes.errors import InvalidValue
from hermes.interop.jsonl.encoding import decode
from hermes.interop.jsonl.lines import Line, lines_of, parsed
from hermes.interop.other_agents.claude_code_messages import MADE_UP_MODEL, Spending, Turns
from hermes.interop.other_agents.message_fields import is_storable, moment_of, text_of
from hermes.interop.other_agents.replay import Reader, Replay
from hermes.interop.source import Examined, Tell
from hermes.state.import_export.session_checks import EXPORT_SCHEMA, CheckedSession, check_session, shorten_title
from hermes.state.rows import Row

SOURCE = "claude-code"

TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""The kinds of lines that name a session, and where the name stands; the later ones count more."""
PASSED_OVER = frozenset(
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
"""The kinds of lines that are known, and tell nothing of what was said."""


def is_claude_code(record: Mapping[str, Any]) -> bool:
    """Whether an object is a line of such a file."""
    kind = text_of(record.get("type"))
    if kind in ("user", "assistant"):
        return isinstance(record.get("sessionId"), str) and isinstance(record.get("message"), dict)
    if kind == "summary":
        return isinstance(record.get("leafUuid"), str)
    return kind in PASSED_OVER | TITLES.keys() and ("sessionId" in record or "messageId" in record)


@dataclass(slots=True)
class _Thread:
    """A conversation in a file: the person's, or one that an agent had for itself."""

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
        """The id of its session here."""
        return f"{SOURCE}_{self.session_id}" + (f"_{self.agent}" if self.agent else "")

    def note(self, entry: Mapping[str, Any], line: Line, now: float) -> bool:
        """Take a line in; False if nothing can be made of it."""
        try:
            said = self.turns.take(entry)
        except RecursionError:
            return False
        if not all(is_storable(each, now) for each in said):
            return False
        self.messages += len(said)
        self.replay.note(line)
        self.started_at = moment_of(entry.get("timestamp")) if self.started_at is None else self.started_at
        self.cwd = self.cwd or text_of(entry.get("cwd")) or None
        if entry["type"] == "assistant":
            model = text_of(entry["message"].get("model"))
            self.model = model if model and model != MADE_UP_MODEL else self.model
            self.spending.take(entry)
        return True


class ClaudeCode:
    """A file of Claude Code."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads: dict[tuple[str, str], _Thread] = {}
        self._roots: dict[str, str] = {}
        """Where the threads of agents begin, by the uuids of all their lines."""
        self._speakers: dict[str, str] = {}
        """Whose session each uuid is of."""
        self._summaries: dict[str, str] = {}
        self._titles: dict[str, dict[str, str]] = {}
        self._found: list[CheckedSession] = []

    def examine(self, now: float, tell: Tell) -> Examined:
        """Go through the whole file and check all that is in it."""
        skipped = 0
        trouble: InvalidValue | None = None
        try:
            with self._path.open("rb") as file:
                for line in lines_of(file, self._path, self._path.stat().st_size):
                    skipped += not self._note(parsed(line, self._path), line, now)
                    tell(len(line.data))
        except InvalidValue as error:
            trouble = error
        for thread in self._threads.values():
            if thread.messages:
                thread.spending.finish(now)
                self._found.append(check_session(self._head(thread), now, thread.replay))
        return Examined([session.id for session in self._found], skipped, trouble)

    def sessions(self, now: float, tell: Tell) -> Iterator[CheckedSession]:
        """The sessions that were found; only after they were."""
        yield from self._found
        tell(self._path.stat().st_size)

    def _note(self, entry: Mapping[str, Any], line: Line, now: float) -> bool:
        kind = text_of(entry.get("type"))
        if kind in TITLES:
            return self._note_title(kind, entry)
        if kind not in ("user", "assistant"):
            return kind in PASSED_OVER
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
        """What names the agent whose thread a line is of; nothing for the person's own."""
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
