"""Migrations of a schema: the files `migrations/NNNN_name.sql` of an engine.

A store applies them in the order of their numbers, and records the name and checksum of each in its table
`hermes_ledger`. The statements of a file never change after a release; a change of the schema is a new file.
"""

from __future__ import annotations

import re
from binascii import crc32
from pathlib import Path
from typing import NamedTuple

_RECORDED = re.compile(r"^-- Checksum in the ledger: ([0-9a-f]{8})$", re.MULTILINE)


class Migration(NamedTuple):
    """One file of migrations."""

    name: str
    """The name of the file without `.sql`, which is its name in the ledger."""
    checksum: str
    """What the ledger records for it."""
    script: str


def read_migrations(directory: Path) -> dict[str, Migration]:
    """Read the migrations of a directory, by name, in the order in which they are applied."""
    found = {}
    for path in sorted(directory.glob("[0-9]*.sql")):
        script = path.read_text(encoding="utf-8")
        found[path.stem] = Migration(path.stem, _ledger_checksum(script), script)
    return found


def checksum(script: str) -> str:
    """The checksum of a script without its comment lines and empty lines, so that comments may be improved."""
    lines = (line.rstrip() for line in script.splitlines())
    statements = "\n".join(line for line in lines if line and not line.lstrip().startswith("--"))
    return f"{crc32(statements.encode()):08x}"


def _ledger_checksum(script: str) -> str:
    """The checksum that a script names in its comments, else the one of its statements.

    The first migrations name theirs: existing stores have recorded checksums that were computed in another way.
    """
    named = _RECORDED.search(script)
    return named[1] if named is not None else checksum(script)
