"""The file system of a database file: what it can do, and how much space is left."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

SHARED = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afpfs", "webdav", "davfs", "ncpfs", "afs", "ceph"),
        *("glusterfs", "lustre", "gpfs", "beegfs", "orangefs", "pvfs2", "ocfs2", "gfs2"),
        *("9p", "virtiofs", "vboxsf", "vmhgfs", "prl_fs", "drvfs", "fuse"),
    )
)
"""File systems that other machines, or the host of this one, use too: memory cannot be shared with those."""

_MOUNTINFO = Path("/proc/self/mountinfo")
_octal = re.compile(r"\\([0-7]{3})")


class FileSystem(NamedTuple):
    """The file system that a path is on."""

    kind: str
    """The system's name for it; empty if it does not say."""
    point: str
    is_shared: bool


def file_system_of(path: Path) -> FileSystem:
    """The file system of a file, which need not exist yet."""
    real = os.path.realpath(path)
    try:
        if sys.platform == "darwin":
            return _innermost(_from_mount(_run_mount()), real)
        return _innermost(_from_mountinfo(_MOUNTINFO.read_text(encoding="utf-8", errors="surrogateescape")), real)
    except OSError:
        return FileSystem("", "", is_shared=False)


def free_bytes(path: Path) -> int | None:
    """How many bytes may still be written to the disk of a file; None if the system does not say."""
    try:
        disk = os.statvfs(path.parent)
    except (OSError, AttributeError):
        return None
    return disk.f_bavail * disk.f_frsize


def _run_mount() -> str:
    import subprocess

    try:
        return subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=True, timeout=5).stdout
    except subprocess.SubprocessError as exc:
        raise OSError from exc


def _from_mountinfo(text: str) -> list[FileSystem]:
    places = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) > 4 and after:
            kind = after.split(" ", 1)[0]
            point = _octal.sub(lambda found: chr(int(found[1], 8)), fields[4])
            places.append(FileSystem(kind, point, _is_shared(kind)))
    return places


def _from_mount(text: str) -> list[FileSystem]:
    places = []
    for line in text.splitlines():
        mounted, opened, described = line.removesuffix(")").rpartition(" (")
        _, on, point = mounted.rpartition(" on ")
        kind, *options = (word.strip() for word in described.split(","))
        if opened and on and kind and line.endswith(")"):
            places.append(FileSystem(kind, point, "local" not in options or _is_shared(kind)))
    return places


def _is_shared(kind: str) -> bool:
    return kind in SHARED or kind.startswith("fuse.")


def _innermost(places: list[FileSystem], path: str) -> FileSystem:
    """The file system with the longest mount point above a path; of several, the one mounted last."""
    best = FileSystem("", "", is_shared=False)
    for place in places:
        is_above = path == place.point or path.startswith(place.point.rstrip("/") + "/")
        if is_above and len(place.point) >= len(best.point):
            best = place
    return best
