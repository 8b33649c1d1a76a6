"""`sessions.json`: all lanes in one file, for people and for other programs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes.errors import InvalidValue
from hermes.gateway.config import GatewayConfig
from hermes.gateway.entry import SessionEntry
from hermes.gateway.keys import build_session_key
from hermes.gateway.store.lane_entries import fields_from_entry
from hermes.home import write_private_atomic
from hermes.log import warn
from hermes.state.lanes.lane_rows import encode_fields
from hermes.state.rows import require_identifier

FILENAME = "sessions.json"
MAX_SESSION_ID_CHARACTERS = 255

Rejected = dict[str, tuple[str, Any]]
"""Rows that cannot be used, each with the reason, by their keys in the file."""


@dataclass
class SessionsFile:
    """The entries of a file, and its rows that cannot be used, with the reason; both by their keys in the file."""

    entries: dict[str, SessionEntry] = field(default_factory=dict)
    rejected: Rejected = field(default_factory=dict)


def read_sessions_file(data: bytes) -> SessionsFile:
    """Return the content of a file; raise `InvalidValue` if it is no JSON object."""
    try:
        rows = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"it is not JSON: {error}") from None
    if not isinstance(rows, dict):
        raise InvalidValue(f"it is {type(rows).__name__}, expected an object of lanes by session key")
    file = SessionsFile()
    for key, row in rows.items():
        if key.startswith("_") and isinstance(row, str):
            continue  # a comment for people who open the file
        try:
            if isinstance(row, Mapping):
                row = {"session_key": key, **row}
            entry = SessionEntry.from_stored(row)
            _check(entry)
            file.entries[key] = entry
        except (ValueError, RecursionError) as error:
            file.rejected[key] = (str(error), row)
    return file


def load_entries(sessions_dir: Path, config: GatewayConfig) -> dict[str, SessionEntry]:
    """Return the entries of the file in a directory, by the keys of their origins; {} if there is no file.

    The file will be replaced. So a row that cannot be used is copied to a file of its own, as is a file without JSON,
    and the log names both. Of several rows for one lane, the most recently active one is used.
    """
    path = sessions_dir / FILENAME
    if not path.is_file():
        if path.exists() or path.is_symlink():
            warn(__name__, "%s is not a file, so it is not read", path)
        return {}
    data = path.read_bytes()
    try:
        file = read_sessions_file(data)
    except InvalidValue as error:
        copy = sessions_dir / f"sessions-unreadable-{_short_hash(data)}.json"
        write_private_atomic(copy, data)
        warn(__name__, "%s cannot be read: %s; it was copied to %s", path, error.message, copy)
        return {}
    entries = _by_key(file, config)
    set_aside(file.rejected, sessions_dir)
    return entries


def _by_key(file: SessionsFile, config: GatewayConfig) -> dict[str, SessionEntry]:
    found: dict[str, SessionEntry] = {}
    newest_first = sorted(file.entries.items(), key=lambda each: each[1].updated_at.timestamp(), reverse=True)
    for name, entry in newest_first:
        key = entry.session_key
        if entry.origin is not None:
            key = build_session_key(entry.origin, config.group_sessions_per_user, config.thread_sessions_per_user)
        if key in found:
            file.rejected[name] = (f"a newer row has the same lane {key}", entry.to_dict())
        else:
            found[key] = entry
    return found


def set_aside(rejected: Rejected, sessions_dir: Path) -> None:
    """Copy rows that cannot be used to a file of their own, and name them in the log."""
    if not rejected:
        return
    rows = {key: {"reason": reason, "row": row} for key, (reason, row) in rejected.items()}
    name = f"sessions-rejected-{_short_hash(json.dumps(rows, sort_keys=True).encode())}.json"
    _write_json(sessions_dir / name, rows)
    for key, (reason, _) in rejected.items():
        warn(__name__, "the row %r of sessions.json cannot be used (%s); it is in %s", key, reason, name)


def _short_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def _write_json(path: Path, value: object) -> None:
    """Replace a file with a JSON value."""
    write_private_atomic(path, json.dumps(value, indent=2).encode())


def _check(entry: SessionEntry) -> None:
    """Raise for values that a lane cannot have, and for times that this machine cannot count."""
    if len(require_identifier(entry.session_id, "session_id")) > MAX_SESSION_ID_CHARACTERS:
        raise InvalidValue(f"session_id has more than {MAX_SESSION_ID_CHARACTERS} characters")
    if entry.origin is None:
        require_identifier(entry.session_key, "session_key")  # it owns the session
    try:
        for moment in (entry.created_at, entry.updated_at):
            moment.timestamp()
        if entry.last_resume_marked_at is not None:
            entry.last_resume_marked_at.timestamp()
    except (OverflowError, OSError) as error:
        raise InvalidValue(f"a time is out of range: {error}") from None
    encode_fields(fields_from_entry(entry))
