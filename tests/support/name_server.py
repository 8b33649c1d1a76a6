"""A name server on loopback that answers as a test decides, over UDP and TCP (RFC 1035)."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from types import TracebackType
from typing import Self

A, CNAME, AAAA = 1, 5, 28
TYPES = {A: "A", AAAA: "AAAA"}
NO_ERROR, FORMAT_ERROR, SERVER_FAILURE, NO_SUCH_NAME, REFUSED = 0, 1, 2, 3, 5

_HEADER = struct.Struct("!6H")
_RECORD = struct.Struct("!2HIH")
_IS_RESPONSE, _IS_CUT, _RECURSION = 0x8000, 0x0200, 0x0180
_INTERNET = 1
_TTL_S = 0
"""Nothing may be kept: every look-up asks this server."""


@dataclass(frozen=True)
class Answer:
    """What the server sends for one question."""

    addresses: Sequence[str] = ()
    aliases: Sequence[str] = ()
    """A chain of names; the addresses belong to the last one."""
    code: int = NO_ERROR
    is_silent: bool = False
    is_cut: bool = False
    """Over UDP, the response says to ask again over TCP."""
    owner: str | None = None
    """The name that the records are about, if it is not the one in the question."""
    forged: Sequence[str] = ()
    """Addresses in a message with another number, which is sent before the right one."""
    garbage: str | None = None
    """Characters of one byte that follow the number of the message instead of an answer."""


@dataclass
class NameServer:
    """Responds from a script: each name and type has a list of answers, one for each question; the last repeats."""

    script: Mapping[tuple[str, str], Sequence[Answer]]
    host: str = "127.0.0.1"
    port: int = 0
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """The name, the type and the transport of each question."""

    def __enter__(self) -> Self:
        self._lock = threading.Lock()
        self._tcp = socket.create_server((self.host, self.port))
        self.port = int(self._tcp.getsockname()[1])
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind((self.host, self.port))
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._serve_udp, self._serve_tcp)]
        for each in self._threads:
            each.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (self._tcp, self._udp):
            with contextlib.suppress(OSError):  # a datagram socket is not connected, but its thread wakes up
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(10)  # until then the port is in use

    def _serve_udp(self) -> None:
        while True:
            try:
                message, client = self._udp.recvfrom(4_096)
            except OSError:
                return
            if not message:
                return
            for each in self._replies(message, "udp"):
                self._udp.sendto(each, client)

    def _serve_tcp(self) -> None:
        while True:
            try:
                connection, _ = self._tcp.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), connection, connection.makefile("rb") as stream:
                while len(prefix := stream.read(2)) == 2:
                    for each in self._replies(stream.read(int.from_bytes(prefix)), "tcp"):
                        connection.sendall(len(each).to_bytes(2) + each)

    def _replies(self, message: bytes, transport: str) -> list[bytes]:
        """Return what is sent for a question, in this order."""
        name, kind, question = _read_question(message)
        if kind not in TYPES:
            return [_reply(message, question, name, kind, Answer())]
        answer = self._next(name, TYPES[kind], transport)
        if answer.is_silent:
            return []
        if answer.garbage is not None:
            return [message[:2] + answer.garbage.encode("latin-1")]
        if answer.is_cut and transport == "udp":
            return [_reply(message, question, name, kind, Answer(), _IS_CUT)]
        forged = bytes(each ^ 0xFF for each in message[:2]) + message[2:]
        before = [_reply(forged, question, name, kind, Answer(answer.forged))] if answer.forged else []
        return [*before, _reply(message, question, name, kind, answer)]

    def _next(self, name: str, kind: str, transport: str) -> Answer:
        with self._lock:
            times = sum(each[:2] == (name, kind) for each in self.asked if each[2] == transport)
            self.asked.append((name, kind, transport))
        answers = self.script.get((name, kind))
        if answers is None:
            is_known = any(each == name for each, _ in self.script)
            return Answer(code=NO_ERROR if is_known else NO_SUCH_NAME)
        return answers[min(times, len(answers) - 1)]


def _read_question(message: bytes) -> tuple[str, int, bytes]:
    """Return the name in lower case, the type, and the bytes of the question."""
    labels, at = [], _HEADER.size
    while length := message[at]:
        labels.append(message[at + 1 : at + 1 + length].decode("ascii"))
        at += 1 + length
    kind = int.from_bytes(message[at + 1 : at + 3])
    return ".".join(labels).lower(), kind, message[_HEADER.size : at + 5]


def _reply(message: bytes, question: bytes, name: str, kind: int, answer: Answer, flags: int = 0) -> bytes:
    owner = answer.owner or name
    records = []
    for alias in answer.aliases:
        records.append(_record(owner, CNAME, _encode(alias)))
        owner = alias
    for address in map(ip_address, answer.addresses):
        if (address.version == 4) == (kind == A):
            records.append(_record(owner, kind, address.packed))
    number = int.from_bytes(message[:2])
    header = _HEADER.pack(number, _IS_RESPONSE | _RECURSION | flags | answer.code, 1, len(records), 0, 0)
    return header + question + b"".join(records)


def _record(owner: str, kind: int, data: bytes) -> bytes:
    return _encode(owner) + _RECORD.pack(kind, _INTERNET, _TTL_S, len(data)) + data


def _encode(name: str) -> bytes:
    return b"".join(bytes([len(each)]) + each.encode("ascii") for each in name.split(".")) + b"\0"
