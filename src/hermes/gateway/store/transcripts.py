"""Transcripts of sessions: in the database, and as JSONL files where that is configured or the database is away."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from hermes.errors import HermesError, InvalidValue, MessageSpooled, NotFound
from hermes.gateway.store.connection import Connection
from hermes.gateway.store.files.file_lanes import FileLanes
from hermes.gateway.store.files.journal import FILENAME as JOURNAL
from hermes.gateway.store.files.replay import REJECTED
from hermes.home import ensure_private_dir, private_opener, write_private_atomic
from hermes.ids import new_caller_uid
from hermes.log import warn
from hermes.state.provider import SessionDBProvider

_FIELDS = ("content", "tool_name", "tool_calls", "tool_call_id", "timestamp", "observed", "finish_reason")
_REASONING = (
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
)
_MIN_TURNS = 10
_MAX_TURNS = 1_000_000
_MAX_NAME = 160


class Transcripts:
    """The messages of sessions, for `SessionStore`."""

    def __init__(self, connection: Connection, *, writes_files: bool) -> None:
        self._connection = connection
        self._writes_files = writes_files

    def append(self, session_id: str, message: Mapping[str, Any], *, skip_db: bool) -> None:
        """Store a message; with `skip_db` only in the configured file, because the agent has stored it."""
        fields = message_fields(message)
        uid = str(message.get("uid") or new_caller_uid())
        if not skip_db:
            self._connection.run(
                lambda db: self._append(db, session_id, fields, uid),
                lambda files: self._append_to_journal(files, session_id, fields, uid),
            )
        if self._writes_files and self._connection.failure is None:
            self._append_line(session_id, fields)

    def rewrite(self, session_id: str, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Replace all messages of a session; on failure the old ones stay, and this returns False."""
        try:
            drafts = [message_fields(message) for message in messages]
            return self._connection.run(
                lambda db: self._replace(db, session_id, drafts),
                lambda files: self._rewrite_journal(files, session_id, drafts),
            )
        except (HermesError, OSError) as error:
            warn(__name__, "the messages of session %s were not replaced: %s", session_id, error)
            return False

    def load(self, session_id: str) -> list[dict[str, Any]]:
        """Return the messages of a session as a conversation; without a database those of its file."""
        return self._connection.run(
            lambda db: cast("list[dict[str, Any]]", db.get_messages_as_conversation(session_id)),
            lambda files: [_without_uid(line) for line in self._read_lines(session_id)],
        )

    def rewind(self, session_id: str, n: int) -> dict[str, Any] | None:
        """Undo the last `n` turns of the user; None if there are none."""
        count = min(n, _MAX_TURNS) if isinstance(n, int) and n > 1 else 1
        return self._connection.run(
            lambda db: _rewind(db, session_id, count),
            lambda files: self._rewind_lines(files, session_id, count),
        )

    def _append(self, db: SessionDBProvider, session_id: str, fields: dict[str, Any], uid: str) -> None:
        try:
            db.append_message(session_id, **fields, uid=uid)
        except MessageSpooled:
            return  # it is durable, and the store replays it
        except (NotFound, InvalidValue) as error:
            warn(__name__, "a message of session %s goes to its file: %s", session_id, error)
            self._append_line(session_id, {**fields, "uid": uid})

    def _append_to_journal(self, files: FileLanes, session_id: str, fields: dict[str, Any], uid: str) -> None:
        timed = {"timestamp": self._connection.clock(), **fields}
        record = {"kind": "message", "session_id": session_id, "uid": uid, "message": timed}
        files.note_message(session_id, record)
        self._append_line(session_id, {**timed, "uid": uid})

    def _replace(self, db: SessionDBProvider, session_id: str, drafts: list[dict[str, Any]]) -> bool:
        db.replace_messages(session_id, drafts)
        if self._writes_files:
            self._write_lines(session_id, drafts)
        return True

    def _rewrite_journal(self, files: FileLanes, session_id: str, drafts: list[dict[str, Any]]) -> bool:
        named = [{**draft, "uid": new_caller_uid()} for draft in drafts]
        files.note_message(session_id, {"kind": "rewrite", "session_id": session_id, "messages": named})
        self._write_lines(session_id, named)
        return True

    def _rewind_lines(self, files: FileLanes, session_id: str, count: int) -> dict[str, Any] | None:
        lines = self._read_lines(session_id)
        places = [place for place, line in enumerate(lines) if line.get("role") == "user"]
        if not places:
            return None
        turns = min(count, len(places))
        place = places[-turns]
        files.note_message(session_id, {"kind": "undo", "session_id": session_id, "uid": lines[place].get("uid", "")})
        self._write_lines(session_id, lines[:place])
        text = content_text(lines[place].get("content"))
        return {"rewound_count": len(lines) - place, "turns_undone": turns, "target_text": text}

    def _path(self, session_id: str) -> Path:
        """The file of a session; a strange id neither leaves the directory nor names a file of the store."""
        name = quote(session_id, safe="~@+", errors="replace")
        if len(name) > _MAX_NAME or "%3F" in name or f"{name}.jsonl" in (JOURNAL, REJECTED):
            name = f"{name[:_MAX_NAME]}~{sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
        return self._connection.sessions_dir / f"{name}.jsonl"

    def _append_line(self, session_id: str, fields: Mapping[str, Any]) -> None:
        ensure_private_dir(self._connection.sessions_dir)
        try:
            line = json.dumps(fields, default=str).encode() + b"\n"
        except (ValueError, RecursionError) as error:
            raise InvalidValue(f"this message cannot be stored: {error}") from None
        with open(self._path(session_id), "ab", opener=private_opener) as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def _write_lines(self, session_id: str, lines: Iterable[Mapping[str, Any]]) -> None:
        ensure_private_dir(self._connection.sessions_dir)
        data = b"".join(json.dumps(line, default=str).encode() + b"\n" for line in lines)
        write_private_atomic(self._path(session_id), data)

    def _read_lines(self, session_id: str) -> list[dict[str, Any]]:
        try:
            data = self._path(session_id).read_bytes()
        except FileNotFoundError:
            return []
        lines = []
        for line in data.splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                continue  # a process died while it wrote this line, before the message was acknowledged
        return [line for line in lines if isinstance(line, dict)]


def message_fields(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a message that a transcript stores; reasoning only of the assistant."""
    role = message.get("role") or "unknown"
    names = (*_FIELDS, *_REASONING) if role == "assistant" else _FIELDS
    fields = {"role": role, **{name: message[name] for name in names if message.get(name) is not None}}
    if isinstance(fields.get("timestamp"), datetime):
        fields["timestamp"] = fields["timestamp"].timestamp()
    platform_id = message.get("platform_message_id") or message.get("message_id")
    return {**fields, "platform_message_id": platform_id} if platform_id else fields


def content_text(content: object) -> str:
    """Return the text of a message's content: parts of text, one a line."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
    return "\n".join(text for text in texts if isinstance(text, str))


def _rewind(db: SessionDBProvider, session_id: str, count: int) -> dict[str, Any] | None:
    recent = db.list_recent_user_messages(session_id, limit=max(count, _MIN_TURNS))
    if not recent:
        return None
    place = min(count - 1, len(recent) - 1)
    undone = db.rewind_to_message(session_id, recent[place]["id"])
    text = content_text(undone["target_message"]["content"])
    return {"rewound_count": undone["rewound_count"], "turns_undone": place + 1, "target_text": text}


def _without_uid(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name not in ("uid", "timestamp")}
