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
from hermes.home import write_private_atomic
from hermes.log import warn

FILENAME = "sessions.json"


@dataclass
class SessionsFile:
    """The entries of a file, and its rows that cannot be used, with the reason."""

    entries: list[SessionEntry] = field(default_factory=list)
    rejected: dict[str, tuple[str, Any]] = field(default_factory=dict)


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
            _check_times(entry)
            file.entries.append(entry)
        except (ValueError, RecursionError) as error:
            file.rejected[key] = (str(error), row)
    return file


def load_entries(sessions_dir: Path, config: GatewayConfig) -> dict[str, SessionEntry]:
    """Return the entries of the file in a directory, by the keys of their origins; {} if there is no file.

    The file will be replaced. So a row that cannot be used is copied to a file of its own, as is a file without JSON,
    and the log names both. Of several rows for one lane, the most recently active one is used.
    """
    path = sessions_dir / FILENAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        file = read_sessions_file(data)
    except InvalidValue as error:
        copy = sessions_dir / f"sessions-unreadable-{_short_hash(data)}.json"
        write_private_atomic(copy, data)
        warn(__name__, "%s cannot be read: %s; it was copied to %s", path, error.message, copy)
        return {}
    entries = _by_key(file, config)
    if file.rejected:
        _set_aside(file, sessions_dir)
    return entries


def _by_key(file: SessionsFile, config: GatewayConfig) -> dict[str, SessionEntry]:
    found: dict[str, SessionEntry] = {}
    for entry in sorted(file.entries, key=lambda each: each.updated_at.timestamp(), reverse=True):
        key = entry.session_key
        if entry.origin is not None:
            key = build_session_key(entry.origin, config.group_sessions_per_user, config.thread_sessions_per_user)
        if key in found:
            file.rejected[entry.session_key] = (f"a newer row has the same lane {key}", entry.to_dict())
        else:
            found[key] = entry
    return found


def _set_aside(file: SessionsFile, sessions_dir: Path) -> None:
    rows = {key: {"reason": reason, "row": row} for key, (reason, row) in file.rejected.items()}
    name = f"sessions-rejected-{_short_hash(json.dumps(rows, sort_keys=True).encode())}.json"
    _write_json(sessions_dir / name, rows)
    for key, (reason, _) in file.rejected.items():
        warn(__name__, "the row %r of sessions.json cannot be used (%s); it is in %s", key, reason, name)


def _short_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def _write_json(path: Path, value: object) -> None:
    """Replace a file with a JSON value."""
    write_private_atomic(path, json.dumps(value, indent=2).encode())


def _check_times(entry: SessionEntry) -> None:
    """Raise for times that this machine cannot count, such as those of the year 1."""
    try:
        for moment in (entry.created_at, entry.updated_at):
            moment.timestamp()
        if entry.last_resume_marked_at is not None:
            entry.last_resume_marked_at.timestamp()
    except (OverflowError, OSError) as error:
        raise InvalidValue(f"a time is out of range: {error}") from None
