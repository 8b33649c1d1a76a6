"""Read a store as a user who may write neither it nor its directory, and print the result.

`python -m tests.upgrade.read_as_guest state.db` works as root too: it switches to the user `nobody` first.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hermes_state import SessionDB

NOBODY = 65_534


def read(path: Path) -> dict[str, Any]:
    """The content of a read-only store."""
    with SessionDB(path, read_only=True) as db:
        sessions = [row["id"] for row in db.search_sessions(limit=-1)]
        return {
            "sessions": sorted(sessions),
            "messages": sum(len(db.get_messages(each)) for each in sessions),
            "listed": len(db.list_sessions_rich(limit=-1, project_compression_tips=False)),
        }


def main(path: Path) -> None:
    """Drop every right, then read."""
    with tempfile.TemporaryDirectory() as scratch:
        # Python must load its modules before it loses the right to read files.
        warm = Path(scratch) / "state.db"
        SessionDB(warm).close()
        read(warm)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    assert not os.access(path.parent, os.W_OK)
    sys.stdout.write(json.dumps(read(path)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
