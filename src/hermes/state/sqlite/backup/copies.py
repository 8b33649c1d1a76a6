"""The copies of a database: backups, and files kept before a restore or an upgrade."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import NamedTuple

from hermes.errors import HermesError
from hermes.state.sqlite.backup.backup import STAMP, backups_in
from hermes.state.sqlite.checks.verify import Contents, contents_of
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.files.long_read import open_long_read
from hermes.state.sqlite.files.names import bytes_of, real_file

_KINDS = {"replaced": "replaced", "pre": "upgraded"}
_STAMPED = re.compile(r"(\d{8}_\d{6})(?:-(\d+))?(?:\.db)?$")


class Copy(NamedTuple):
    """A file that can be restored."""

    path: Path
    kind: str
    """`backup`; `replaced`: kept by a restore; `upgraded`: kept by an upgrade."""
    made_at: float
    size_bytes: int
    contents: Contents | None
    trouble: str
    """Why it cannot be read."""


def copies_of(database: Path, directory: Path) -> list[Copy]:
    """List every copy in the backup directory and next to the database, the newest first; no copy is verified."""
    kinds = dict.fromkeys(backups_in(directory, database), "backup")
    for file in {database, real_file(database)}:
        form = re.compile(rf"{re.escape(file.name)}\.(replaced|pre)(?:-\d+)?-\d{{8}}_\d{{6}}(?:-\d+)?")
        for each in file.parent.iterdir() if file.parent.is_dir() else ():
            if match := form.fullmatch(each.name):
                kinds[each] = _KINDS[match[1]]
    return [_read_copy(path, kinds[path]) for path in sorted(kinds, key=_made_at, reverse=True)]


def _read_copy(path: Path, kind: str) -> Copy:
    contents, trouble = None, ""
    try:
        with open_long_read(path, in_use=False) as connection:
            contents = contents_of(View(connection))
    except HermesError as exc:
        trouble = exc.message
    return Copy(path, kind, _made_at(path)[0], bytes_of(path), contents, trouble)


def _made_at(path: Path) -> tuple[float, int]:
    """When a copy was made, according to its name, and its number among the copies of the same second."""
    match = _STAMPED.search(path.name)
    assert match is not None
    try:
        return time.mktime(time.strptime(match[1], STAMP)), int(match[2] or 1)
    except (ValueError, OverflowError):
        return 0.0, 1
