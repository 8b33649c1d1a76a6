"""Files of users: no sender chooses a path, others cannot read them, and what is too large leaves nothing."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest

from hermes.gateway.engine.ports import NotSent
from hermes.platforms.base.media import MediaFolder


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def save(folder: MediaFolder, name: str, *chunks: bytes) -> Mapping[str, str]:
    async def content() -> AsyncIterator[bytes]:
        for each in chunks:
            yield each

    return asyncio.run(folder.save(content(), name=name, mime="text/plain"))


@pytest.mark.parametrize(
    "name",
    ["../../x.sh", "/etc/passwd", "a/b.txt", "..", "", ".", "x." + "y" * 300, "a\0b.txt", "a.t\nx\t", "~/.ssh/k"],
)
def test_name_of_the_sender_chooses_no_path(tmp_path: Path, name: str) -> None:
    found = save(MediaFolder(tmp_path, "../telegram"), name, b"data")
    path = Path(found["path"])
    assert path.parent == tmp_path / "media" / ".._telegram"
    assert path.read_bytes() == b"data"
    assert path.name.isprintable()
    assert len(path.name) < 50


def test_only_the_user_of_the_gateway_can_read_them(tmp_path: Path) -> None:
    path = Path(save(MediaFolder(tmp_path, "telegram"), "a.txt", b"data")["path"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    modes = {stat.S_IMODE(each.stat().st_mode) for each in (path.parent, path.parent.parent)}
    assert modes == {0o700}


def test_file_that_is_too_large_leaves_nothing(tmp_path: Path) -> None:
    folder = MediaFolder(tmp_path, "telegram", max_bytes=10)
    with pytest.raises(NotSent):
        save(folder, "a.txt", b"12345678", b"9abc")
    assert list(folder.path.iterdir()) == []


def test_folder_that_cannot_be_made_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "media").write_text("a file")
    with pytest.raises(OSError, match="should be a directory"):
        save(MediaFolder(tmp_path, "telegram"), "a.txt", b"data")
