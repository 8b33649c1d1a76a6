"""The present lanes as files: `sessions.json` and `restart_counts.json`."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from hermes.errors import StoreClosed
from hermes.gateway.store.backend import LaneBackend, walk_lanes
from hermes.gateway.store.connection import Connection
from hermes.gateway.store.files.entry_text import format_row
from hermes.gateway.store.files.importing import RESTART_COUNTS
from hermes.gateway.store.files.sessions_file import FILENAME
from hermes.home import ensure_private_dir, get_hermes_home, private_opener, sync_directory, write_private_atomic

_DRAFTS = ".sessions_*.tmp"


class Snapshot:
    """Writes the files of a store, lane by lane: they may be larger than the memory should be."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def write(self, pause: Callable[[], None]) -> None:
        """Replace the files with the present lanes; `pause` is called often."""
        ensure_private_dir(self._connection.sessions_dir)
        try:
            with _locked(self._connection.sessions_dir), self._connection.unexported.exporting():
                for draft in self._connection.sessions_dir.glob(_DRAFTS):  # of processes that died
                    draft.unlink(missing_ok=True)
                counts = self._connection.run_lanes(lambda lanes: self._write_lanes(lanes, pause))
        except StoreClosed:
            return
        path = get_hermes_home() / RESTART_COUNTS
        if counts or path.exists():
            write_private_atomic(path, json.dumps(counts, indent=2).encode())

    def _write_lanes(self, lanes: LaneBackend, pause: Callable[[], None]) -> dict[str, int]:
        """Write all lanes, and return the restarts of those that have some."""
        counts: dict[str, int] = {}
        with _replacement(self._connection.sessions_dir / FILENAME) as file:
            before = b"{\n"
            for row in walk_lanes(lanes, pause=pause):
                file.write(before + format_row(row))
                before = b",\n"
                if row["restart_count"]:
                    counts[row["session_key"]] = row["restart_count"]
                pause()
            file.write(b"{}" if before == b"{\n" else b"\n}")
        return counts


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Let one process at a time read the lanes and write them, so that an older state never replaces a newer one."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@contextmanager
def _replacement(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces `path` when it is complete and on the disk."""
    draft = path.with_name(f".sessions_{os.urandom(6).hex()}.tmp")
    try:
        with open(draft, "xb", opener=private_opener) as file:
            yield cast("BinaryIO", file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
