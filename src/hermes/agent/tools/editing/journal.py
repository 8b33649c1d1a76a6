"""The former contents of files that an agent has changed, for `/undo`: one file for each session."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from hermes.home import ensure_private_dir, open_plain_file, read_plain_file, write_private_atomic
from hermes.log import warn
from hermes.state.maintenance.session_files import changes_file

MAX_BYTES = 32 * 1024 * 1024
"""With more, the older half of the changes can no longer be undone."""

_MARK = re.compile(r"; change ([0-9a-f]{16})\]\Z")


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """One change of a file that was made."""

    id: str
    path: Path
    before: str | None
    """The former content; None if there was no file."""
    after_sha256: str
    new_directories: tuple[Path, ...] = ()

    @property
    def as_json(self) -> bytes:
        """The change as a line."""
        fields = {
            "id": self.id,
            "path": os.fsencode(self.path).hex(),
            "before": self.before,
            "after_sha256": self.after_sha256,
            "new_directories": [os.fsencode(each).hex() for each in self.new_directories],
        }
        return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def checksum(data: bytes) -> str:
    """Return the checksum by which a content is recognized."""
    return sha256(data).hexdigest()


def mark(change_id: str) -> str:
    """Return the end of a tool's result, by which its change is found."""
    return f"; change {change_id}]"


def marked_change(text: str) -> str | None:
    """Return the id of the change in the result of a tool, or None."""
    found = _MARK.search(text)
    return None if found is None else found[1]


class ChangeJournal:
    """The changes of all sessions of a Hermes home."""

    def __init__(self, home: Path) -> None:
        self._directory = home / "sessions"

    def add(self, session_id: str, change: RecordedChange) -> bool:
        """Store a change; return whether it can be undone."""
        path = changes_file(session_id, self._directory)
        if path is None:
            return False
        try:
            ensure_private_dir(self._directory)
            fd = open_plain_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with os.fdopen(fd, "ab") as file:
                file.write(change.as_json)
                size = file.tell()
            if size > MAX_BYTES:
                self._shorten(path)
        except OSError as error:
            warn(__name__, "a change of a file cannot be undone later: %s", error)
            return False
        return True

    def find(self, session_ids: Collection[str], change_ids: Collection[str]) -> list[RecordedChange]:
        """Return the changes with these ids, the last one first."""
        found = [each for session_id in session_ids for each in reversed(self._read(session_id))]
        return [each for each in found if each.id in change_ids]

    def _read(self, session_id: str) -> list[RecordedChange]:
        path = changes_file(session_id, self._directory)
        if path is None:
            return []
        try:
            lines = read_plain_file(path).splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            warn(__name__, "%s cannot be read: %s", path, error)
            return []
        return [change for line in lines if (change := _parse(line)) is not None]

    def _shorten(self, path: Path) -> None:
        lines = read_plain_file(path).splitlines(keepends=True)
        kept, size = [], 0
        for line in reversed(lines):
            size += len(line)
            if size > MAX_BYTES // 2:
                break
            kept.append(line)
        write_private_atomic(path, b"".join(reversed(kept)))


def _parse(line: bytes) -> RecordedChange | None:
    """Return the change of a line; None for one that was cut off when the program ended."""
    try:
        fields: dict[str, Any] = json.loads(line)
        before = fields["before"]
        return RecordedChange(
            str(fields["id"]),
            _path(fields["path"]),
            None if before is None else str(before),
            str(fields["after_sha256"]),
            tuple(map(_path, fields["new_directories"])),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _path(value: Any) -> Path:
    return Path(os.fsdecode(bytes.fromhex(value)))
