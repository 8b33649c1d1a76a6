"""A platform that is a file, so that what it has survives the process that sent it; run as a program, a node dies."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from hermes.gateway.delivery.sender import Sender
from hermes.gateway.engine.ports import Delivery, NotSent, Receipt
from hermes.platforms.base import BaseAdapter, Part
from hermes.state.asynchronous.session_db import AsyncSessionDB
from hermes_state import SessionDB


class FileAdapter(BaseAdapter):
    """Appends the key of every message to a file, and can be killed before or after that."""

    platform = "faulty"

    def __init__(self, file: Path, *, can_tell: bool, dies: str = "never") -> None:
        super().__init__()
        self._file = file
        self._can_tell = can_tell
        self._dies = dies

    @property
    def posted(self) -> list[str]:
        """The keys that the platform has."""
        return self._file.read_text("utf-8").split() if self._file.exists() else []

    async def post(self, part: Part) -> str:
        """Write the message down."""
        if self._dies == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(part.key + "\n")
        if self._dies == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return str(len(self.posted))

    async def find(self, delivery: Delivery) -> Receipt | None:
        """Look into the file."""
        if not self._can_tell:
            return None
        if delivery.key not in self.posted:
            raise NotSent("the platform does not have it")
        return Receipt([str(self.posted.index(delivery.key) + 1)])


async def send_and_die(folder: Path, dies: str) -> None:
    """Send what is due, and be killed in the middle of it."""
    adapter = FileAdapter(folder / "platform.txt", can_tell=False, dies=dies)
    async with await AsyncSessionDB.open(lambda: SessionDB(folder / "state.db")) as db:
        await Sender(db.outbox, {("faulty", ""): adapter}, "killed/1").run()


if __name__ == "__main__":
    asyncio.run(send_and_die(Path(sys.argv[1]), sys.argv[2]))
