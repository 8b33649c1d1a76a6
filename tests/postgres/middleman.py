"""A proxy between clients and a PostgreSQL server, on a unix socket.

As a pooler it gives every transaction another session of the server, like poolers in transaction mode. It can also cut
the connection at a chosen moment: before a client's message reaches the server, or before the server's response reaches
the client.
"""

from __future__ import annotations

import contextlib
import queue
import select
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

START = b"user\0postgres\0database\0postgres\0client_encoding\0UTF8\0application_name\0middleman\0\0"
VERSION = struct.pack("!i", 196_608)
OWN_NUMBER = b"K" + struct.pack("!iii", 12, 4_711, 4_712)
READY = b"Z"
ENDS_REQUEST = (b"S", b"Q")
"""Messages of a client after which the server reports that it is ready."""


@dataclass
class Cut:
    """When to cut the connection: at a message of a client that contains this text."""

    text: bytes
    is_answer: bool
    """Whether the server still gets the message, and only its response is lost."""
    is_done: threading.Event = field(default_factory=threading.Event)


class Middleman:
    """Listens in a directory, and forwards messages to sessions of a server."""

    def __init__(self, directory: Path, server: str, sessions: int) -> None:
        self.dsn = f"postgresql://postgres@/postgres?host={directory}"
        self.cut: Cut | None = None
        self._server = server
        self._sessions: queue.Queue[socket.socket] = queue.Queue()
        self._greeting = b""
        for _ in range(sessions):
            self._sessions.put(self._new_session())
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(directory / ".s.PGSQL.5432"))
        self._listening.listen(32)
        self._open: list[socket.socket] = [self._listening]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close every connection."""
        for each in self._open:
            each.close()
        while not self._sessions.empty():
            self._sessions.get().close()

    def _new_session(self) -> socket.socket:
        session = socket.socket(socket.AF_UNIX)
        session.connect(self._server)
        session.sendall(struct.pack("!i", len(START) + 8) + VERSION + START)
        greeting = b""
        for kind, message in _messages(session):
            if kind == b"S":
                greeting += message  # the server's parameters
            if kind == READY:
                break
        self._greeting = greeting
        return session

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._open.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        # A socket that is closed while it is being waited for raises ValueError.
        with contextlib.suppress(OSError, EOFError, ValueError, queue.Empty), client:
            _read(client, struct.unpack("!i", _read(client, 4))[0] - 4)
            client.sendall(b"R" + struct.pack("!ii", 8, 0) + self._greeting + OWN_NUMBER + b"Z\0\0\0\5I")
            while True:
                select.select([client], [], [])
                self._pass_on_transaction(client)

    def _pass_on_transaction(self, client: socket.socket) -> None:
        """Forward the messages of one transaction, over one session of the server."""
        session = self._sessions.get(timeout=20)
        is_idle = False
        try:
            while not is_idle:
                last, is_lost = self._pass_on_request(client, session)
                is_idle = last.endswith(b"I")
                if is_lost:
                    self._break(client)
        finally:
            if not is_idle:
                session.close()  # which rolls back the transaction
                session = self._new_session()
            self._sessions.put(session)

    def _pass_on_request(self, client: socket.socket, session: socket.socket) -> tuple[bytes, bool]:
        """Forward a client's messages until it waits for a response, and the response.

        Returns the last message of the server, and whether to hide it from the client.
        """
        is_lost = False
        for kind, message in _messages(client):
            if self.cut is not None and self.cut.text in message:
                if not self.cut.is_answer:
                    self._break(client)
                is_lost = True
            session.sendall(message)
            if kind in ENDS_REQUEST:
                break
        for kind, message in _messages(session):
            if not is_lost:
                client.sendall(message)
            if kind == READY:
                return message, is_lost
        raise EOFError

    def _break(self, client: socket.socket) -> None:
        assert self.cut is not None
        cut, self.cut = self.cut, None
        cut.is_done.set()  # before its client sees that the connection is closed
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
        raise EOFError


def _messages(peer: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    """The messages that a peer sends, with their kinds."""
    while True:
        kind, length = _read(peer, 1), _read(peer, 4)
        yield kind, kind + length + _read(peer, struct.unpack("!i", length)[0] - 4)


def _read(peer: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count:
        if not (more := peer.recv(count - len(read))):
            raise EOFError
        read += more
    return read


@contextlib.contextmanager
def middleman(directory: Path, server: str, sessions: int = 2) -> Iterator[Middleman]:
    """A proxy for one test."""
    made = Middleman(directory, server, sessions)
    try:
        yield made
    finally:
        made.close()
