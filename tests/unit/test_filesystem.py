"""The file system of a path, from the system's list of mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.state.sqlite import filesystem
from hermes.state.sqlite.filesystem import FileSystem, file_system_of, free_bytes

MOUNTINFO = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:25 / /dev/shm rw - tmpfs tmpfs rw
41 22 0:40 / /home rw - nfs4 server:/home rw,vers=4.2
42 41 254:2 / /home/me/local rw - xfs /dev/vdb1 rw
43 22 0:44 / /mnt/with\\040blank rw - virtiofs shared rw
44 22 0:45 / /mnt/remote rw - fuse.sshfs me@there:/ rw
45 22 0:46 / /mnt/stick rw - fuseblk /dev/sdb1 rw
46 22 0:47 / /mnt/twice rw - ext4 /dev/vdc1 rw
47 46 0:48 / /mnt/twice rw - 9p host rw
not a line of the list
"""
MOUNT = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
//me@server/share on /Volumes/share (smbfs, nodev, nosuid, mounted by me)
host:/export on /Volumes/export (nfs)
"""


@pytest.mark.parametrize(
    ("path", "kind", "is_shared"),
    [
        ("/srv/state.db", "ext4", False),
        ("/dev/shm/state.db", "tmpfs", False),
        ("/home/me/.hermes/state.db", "nfs4", True),
        ("/home/me/local/state.db", "xfs", False),
        ("/home/me/locality/state.db", "nfs4", True),
        ("/mnt/with blank/state.db", "virtiofs", True),
        ("/mnt/remote/state.db", "fuse.sshfs", True),
        ("/mnt/stick/state.db", "fuseblk", False),
        ("/mnt/twice/state.db", "9p", True),
    ],
)
def test_the_innermost_mount_counts(path: str, kind: str, *, is_shared: bool) -> None:
    found = filesystem._innermost(filesystem._from_mountinfo(MOUNTINFO), path)
    assert (found.kind, found.is_shared) == (kind, is_shared)


@pytest.mark.parametrize(
    ("path", "kind", "is_shared"),
    [("/Users/me/state.db", "apfs", False), ("/Volumes/share/x", "smbfs", True), ("/Volumes/export/x", "nfs", True)],
)
def test_a_mount_that_is_not_local_is_shared(path: str, kind: str, *, is_shared: bool) -> None:
    found = filesystem._innermost(filesystem._from_mount(MOUNT), path)
    assert (found.kind, found.is_shared) == (kind, is_shared)


def test_system_without_a_list_of_mounts_counts_as_local(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(filesystem, "_MOUNTINFO", tmp_path / "missing")
    assert file_system_of(tmp_path / "state.db") == FileSystem("", "", is_shared=False)


def test_place_and_free_space_of_a_file_are_known(tmp_path: Path) -> None:
    assert file_system_of(tmp_path / "state.db").kind
    assert (free_bytes(tmp_path / "state.db") or 0) > 0
    assert free_bytes(tmp_path / "missing" / "state.db") is None
