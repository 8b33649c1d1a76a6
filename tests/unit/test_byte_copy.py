"""A file is copied byte by byte, also from a failing disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hermes.state.sqlite.files.byte_copy import BLOCK_BYTES, CHUNK_BYTES, copy_bytes


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(CHUNK_BYTES + 3 * BLOCK_BYTES + 100))
    return source


def test_the_copy_is_the_same_and_private(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    reports: list[tuple[int, int]] = []
    assert copy_bytes(source, target, lambda _, done, total: reports.append((done, total))) == 0
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o600
    assert reports[-1] == (source.stat().st_size, source.stat().st_size)


def test_nothing_is_overwritten(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        copy_bytes(source, target)
    assert target.read_bytes() == b"mine"


def test_unreadable_bytes_are_zero_and_the_rest_is_copied(source: Path, tmp_path: Path) -> None:
    bad = range(2 * BLOCK_BYTES, 3 * BLOCK_BYTES)

    def read(file: int, size: int, at: int) -> bytes:
        if at < bad.stop and at + size > bad.start:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return os.pread(file, size, at)

    target = tmp_path / "target"
    assert copy_bytes(source, target, read=read) == BLOCK_BYTES
    expected = bytearray(source.read_bytes())
    expected[bad.start : bad.stop] = bytes(BLOCK_BYTES)
    assert target.read_bytes() == expected


def test_another_failure_is_raised(source: Path, tmp_path: Path) -> None:
    def read(file: int, size: int, at: int) -> bytes:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with pytest.raises(PermissionError):
        copy_bytes(source, tmp_path / "target", read=read)
