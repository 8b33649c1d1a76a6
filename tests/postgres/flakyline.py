"""A connection to a PostgreSQL server that breaks again and again, after a random number of bytes."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

GREETING = 700
"""This many bytes always pass, except on a few connections: a pool takes its time if it cannot connect."""
RARELY = 0.05


class FlakyLine:
    """Listens in a directory, and forwards a random number of bytes in each direction of each connection."""

    def __init__(self, directory: Path, server: str, seed: int, longest: int) -> None:
        self.dsn = f"postgresql://postgres@/postgres?host={directory}"
        self.cuts = 0
        self.is_flaky = True
        self._server = server
        self._random = random.Random(seed)
        self._longest = longest
        self._open: list[socket.socket] = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(directory / ".s.PGSQL.5432"))
        self._listening.listen(32)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close every connection."""
        for each in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._open += [client, server]
                for source, sink in ((client, server), (server, client)):
                    least = 0 if self._random.random() < RARELY else GREETING
                    room = self._random.randint(least, least + self._longest)
                    threading.Thread(target=self._pass_on, args=(source, sink, room), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, room: int) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if self.is_flaky and len(data) > room:
                    # Data that was sent before the connection broke still arrives.
                    sink.sendall(data[:room])
                    self.cuts += 1
                    break
                room -= len(data)
                sink.sendall(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def flaky_line(directory: Path, server: str, seed: int, longest: int) -> Iterator[FlakyLine]:
    """A flaky line for one test."""
    made = FlakyLine(directory, server, seed, longest)
    try:
        yield made
    finally:
        made.close()
