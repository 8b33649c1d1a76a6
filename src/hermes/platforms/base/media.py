"""Files of messages: those that users send are stored below the home, within limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hermes.errors import ConfigError
from hermes.gateway.engine.ports import NotSent
from hermes.home import ensure_private_dir

MAX_FILE_BYTES = 20 * 1024 * 1024
MediaKind = Literal["image", "audio", "video", "file"]
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A file that an answer sends along."""

    path: Path
    kind: MediaKind = "file"
    caption: str = ""


class MediaFolder:
    """A folder for the files of a platform's messages; names are made here, so that no sender chooses a path."""

    def __init__(self, home: Path, platform: str, max_bytes: int = MAX_FILE_BYTES) -> None:
        self.path = home / "media" / (_UNSAFE.sub("_", platform) or "_")
        self.max_bytes = max_bytes

    async def save(self, chunks: AsyncIterator[bytes], *, name: str, mime: str) -> Mapping[str, str]:
        """Store a file and return its `path`, `mime` and `name`; raise `NotSent` if it is too large."""
        ending = _UNSAFE.sub("_", Path(name).suffix)[:12]
        path = self.path / f"{secrets.token_hex(12)}{ending}"
        file = await asyncio.to_thread(self._create, path)
        size = 0
        try:
            async for chunk in chunks:
                size += len(chunk)
                if size > self.max_bytes:
                    raise NotSent(f"the file is larger than {self.max_bytes // 1024 // 1024} MB", is_final=True)
                await asyncio.to_thread(_write_all, file, chunk)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(file)
        return {"path": str(path), "mime": mime, "name": name}

    def _create(self, path: Path) -> int:
        try:
            ensure_private_dir(self.path)
        except ConfigError as error:
            raise OSError(str(error)) from error
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


async def discard(files: Iterable[Mapping[str, str]]) -> None:
    """Remove files that no message refers to."""
    for file in files:
        with contextlib.suppress(OSError):  # one that stays does no harm
            await asyncio.to_thread(Path(file["path"]).unlink, missing_ok=True)


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
