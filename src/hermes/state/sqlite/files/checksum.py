"""Checksum files next to backups: SQLite does not notice when a bit changes inside of a text."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.home import open_plain_file
from hermes.state.engine import Report
from hermes.state.sqlite.files.names import beside, bytes_of

SUFFIX = ".sha256"
CHUNK_BYTES = 1 << 20


def write_checksum(path: Path, name: str, report: Report | None = None) -> Path:
    """Write the checksum of a closed file next to it, in the format of `sha256sum`, for its later name."""
    noted = beside(path, SUFFIX)
    with open(noted, "w", encoding="utf-8", opener=open_plain_file) as file:
        file.write(f"{_digest(path, report)}  {name}\n")
        file.flush()
        os.fsync(file.fileno())
    return noted


def matches_checksum(path: Path, report: Report | None = None) -> bool | None:
    """Whether a file still has the checksum written for it; None if it has no checksum file, or a link or a pipe."""
    try:
        with open(beside(path, SUFFIX), "rb", opener=open_plain_file) as file:
            noted = file.read()
    except OSError:
        return None
    return noted.startswith(_digest(path, report).encode())


def _digest(path: Path, report: Report | None) -> str:
    from hashlib import sha256  # loads OpenSSL, which nothing else needs

    digest, done, total = sha256(), 0, bytes_of(path)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            if report is not None:
                report("reading", done, total)
    return digest.hexdigest()
