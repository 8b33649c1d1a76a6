"""A proxy between clients and a server, on a unix socket, that can cut connections at a chosen moment."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SIZE = 65_536


@dataclass
class Cut:
    """When to cut the connection: at a client's data that contains this text."""

    text: bytes
    is_answer: bool
    """Whether the server still gets the data, and only its response is lost."""
    is_done: threading.Event = field(default_factory=threading.Event)


class Middleman:
    """Forwards data in both directions."""

    def __init__(self, path: Path, server: str) -> None:
        self.cut: Cut | None = None
        self._server = server
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen(32)
        self._open: list[socket.socket] = [self._listening]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Close every connection."""
        for each in self._open:
            _hang_up(each)
        for thread in self._threads:
            thread.join(timeout=5)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                self._open += [client, server]
                server.connect(self._server)
                for work in (self._forward_requests, self._forward_responses):
                    thread = threading.Thread(target=work, args=(client, server), daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def _forward_requests(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(SIZE):
                cut = self.cut
                if cut is not None and cut.text in data:
                    self.cut = None
                    cut.is_done.set()  # before its client sees that the connection is closed
                    if cut.is_answer:
                        _hang_up(client)
                        server.sendall(data)
                    break
                server.sendall(data)
        _hang_up(client)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _forward_responses(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(SIZE):
                with contextlib.suppress(OSError):
                    client.sendall(data)
        _hang_up(client)
        _hang_up(server)


def _hang_up(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()


@contextlib.contextmanager
def middleman(path: Path, server: str) -> Iterator[Middleman]:
    """A proxy for one test."""
    between = Middleman(path, server)
    try:
        yield between
    finally:
        between.close()
