"""Use a store as a user with few rights, and print the error.

`python -m tests.fault.use_as_guest write state.db` works as root too: it switches to the user `nobody` first.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from hermes_state import HermesError, SessionDB

NOBODY = 65_534


def write(path: Path) -> None:
    """Store a message."""
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "x")


def read(path: Path) -> None:
    """List the sessions."""
    with SessionDB(path, read_only=True) as db:
        db.list_sessions_rich()


USES: dict[str, Callable[[Path], None]] = {"write": write, "read": read}


def main(use: str, path: Path) -> None:
    """Drop every right, then try."""
    with tempfile.TemporaryDirectory() as scratch:
        # Python must load its modules before it loses the right to read files.
        for warm in USES.values():
            warm(Path(scratch) / "state.db")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        USES[use](path)
        result = "done"
    except HermesError as exc:
        result = f"{exc.code}: {exc.hint}"
    sys.stdout.write(result)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
