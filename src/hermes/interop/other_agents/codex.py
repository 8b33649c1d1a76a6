"""Sessions of the Codex CLI: one file per session, one line per event."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hermes.errors import InvalidValue
from hermes.interop.jsonl.encoding import decode
from hermes.interop.jsonl.lines import Line, bad_line, lines_of, parse_line
from hermes.interop.other_agents.codex_messages import Spending, Turns
from hermes.interop.other_agents.message_fields import is_storable, moment_of, text_of
from hermes.interop.other_agents.replay import Reader, Replay
from hermes.interop.source import ByteProgress, Examined
from hermes.state.import_export.session_checks import EXPORT_SCHEMA, CheckedSession, check_session
from hermes.state.rows import Row

SOURCE = "codex"
PROVIDER = "openai"

META, CONTEXT, ITEM, EVENT, COMPACTED = "session_meta", "turn_context", "response_item", "event_msg", "compacted"
KINDS = (META, CONTEXT, ITEM, EVENT, COMPACTED)


class Entry(NamedTuple):
    """A line, independent of the version of the program that wrote it."""

    kind: str
    payload: Mapping[str, Any]
    at: float | None


def is_codex(record: Mapping[str, Any]) -> bool:
    """Whether an object is a line of a Codex CLI file."""
    if record.get("type") in KINDS:
        return isinstance(record.get("payload"), dict)
    return _is_old_meta(record)


def entry_of(record: Mapping[str, Any]) -> Entry:
    """Return the entry on a line; the first versions wrote items without an envelope."""
    kind = text_of(record.get("type"))
    at = moment_of(record.get("timestamp"))
    if isinstance(record.get("payload"), dict):
        return Entry(kind, record["payload"], at)
    if _is_old_meta(record):
        return Entry(META, record, at)
    return Entry("" if "record_type" in record else ITEM, record, at)


class Codex:
    """A session file of the Codex CLI."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._meta: Mapping[str, Any] = {}
        self._started_at: float | None = None
        self._cwd: str | None = None
        self._model: str | None = None
        self._turns = Turns()
        self._spending = Spending()
        self._replay = Replay(path, _reader)
        self._messages = 0
        self._found: list[CheckedSession] = []

    def examine(self, now: float, progress: ByteProgress) -> Examined:
        """Read and check the whole file."""
        skipped = 0
        trouble: InvalidValue | None = None
        try:
            with self._path.open("rb") as file:
                for line in lines_of(file, self._path, self._path.stat().st_size):
                    skipped += not self._note(entry_of(parse_line(line, self._path)), line, now)
                    progress(len(line.data))
            if not text_of(self._meta.get("id")):
                raise bad_line(self._path, 1, "the file has no session id")
        except InvalidValue as error:
            trouble = error
        if self._messages and text_of(self._meta.get("id")):
            self._found.append(check_session(self._head(), now, self._replay))
        return Examined([session.id for session in self._found], skipped, trouble)

    def sessions(self, now: float, progress: ByteProgress) -> Iterator[CheckedSession]:
        """Yield the sessions that `examine` found; call `examine` first."""
        yield from self._found
        progress(self._path.stat().st_size)

    def _note(self, entry: Entry, line: Line, now: float) -> bool:
        """Process a line; return False if it is of an unknown kind."""
        payload = entry.payload
        self._started_at = entry.at if self._started_at is None else self._started_at
        match entry.kind:
            case "session_meta":
                # A session that continues another repeats the metadata of that one.
                self._meta = self._meta or payload
                self._cwd = self._cwd or text_of(payload.get("cwd")) or None
            case "turn_context":
                self._model = text_of(payload.get("model")) or self._model
                self._cwd = self._cwd or text_of(payload.get("cwd")) or None
            case "event_msg":
                self._spending.take(payload, entry.at, self._model)
            case "response_item" | "compacted":
                return self._note_item(entry, line, now)
            case _:
                return False
        return True

    def _note_item(self, entry: Entry, line: Line, now: float) -> bool:
        try:
            messages = self._turns.take(entry.payload, uid_of(line), entry.at)
        except RecursionError:
            return False
        if messages is None or not all(is_storable(each, now) for each in messages):
            return False
        self._messages += len(messages)
        self._replay.note(line)
        return True

    def _head(self) -> Row:
        started = moment_of(self._meta.get("timestamp"))
        parent = text_of(self._meta.get("forked_from_id"))
        provider = text_of(self._meta.get("model_provider")) or PROVIDER
        head: Row = {
            "schema": EXPORT_SCHEMA,
            "id": f"{SOURCE}_{self._meta['id']}",
            "source": SOURCE,
            "started_at": self._started_at if started is None else started,
            "model": self._model,
            "cwd": self._cwd,
            "system_prompt": text_of(self._meta.get("instructions")) or None,
            "usage": [{**each, "billing_provider": provider} for each in self._spending.bookings],
        }
        if parent:
            head |= {"parent_session_id": f"{SOURCE}_{parent}", "child_kind": "branch"}
        return head


def _reader() -> Reader:
    turns = Turns()

    def messages_of(line: Line) -> list[Row]:
        entry = entry_of(decode(line.data))
        return turns.take(entry.payload, uid_of(line), entry.at) or []

    return messages_of


def uid_of(line: Line) -> str:
    """Return an id for a line that is stable when the file grows: lines have no ids, but are only ever appended."""
    return f"{line.number}-{crc32(line.data.strip()):08x}"


def _is_old_meta(record: Mapping[str, Any]) -> bool:
    return "type" not in record and isinstance(record.get("id"), str) and "instructions" in record
