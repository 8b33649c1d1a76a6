"""Servers on loopback that behave as a test decides, and a name server that the test controls.

The guard's rules are never changed for a test. A name resolves to a public address, which the guard allows, and `dial`
connects to the test's server instead of that address.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from hermes.web.exchange import Network
from hermes.web.fetch import Fetcher
from hermes.web.guard import Guard

HOST = "127.0.0.1"
PUBLIC, OTHER_PUBLIC = "93.184.215.14", "8.8.8.8"
"""Addresses of real public servers; no test connects to them."""


@dataclass(frozen=True)
class Received:
    """A request that the server received."""

    method: str
    target: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Reply = bytes | Callable[[Received], Iterator[bytes] | bytes]


def respond(body: bytes | str = b"", status: int = 200, content_type: str = "text/html", **headers: str) -> bytes:
    """The bytes of a response; an underscore in the name of a header is a minus sign."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {content_type}"]
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named.setdefault("Content-Length", str(len(data)))
    lines += [f"{name}: {value}" for name, value in named.items() if value]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + data


def respond_json(value: object, status: int = 200, **headers: str) -> bytes:
    """The bytes of a response with JSON."""
    return respond(json.dumps(value), status, "application/json", **headers)


def redirect(location: str, status: int = 302) -> bytes:
    """The bytes of a redirect."""
    return respond("moved", status, Location=location)


class Server:
    """A server that sends the next reply of its script to each connection, and the last one again and again."""

    def __init__(self, *script: Reply, tls: ssl.SSLContext | None = None, address: tuple[str, int] = (HOST, 0)) -> None:
        self.received: list[Received] = []
        self.connections = 0
        self.hung_up = threading.Event()
        """Set when the client disconnects before the reply is complete."""
        self._script = list(script) or [respond("hello")]
        self._tls = tls
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._socket = socket.create_server(address)
        self.port = int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def pause(self, seconds: float) -> None:
        """Wait, unless the test ends."""
        self._closing.wait(seconds)

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection:
                self._reply(connection)

    def _reply(self, connection: socket.socket) -> None:
        request = _read_request(connection)
        if request is None:
            return
        with self._lock:
            self.received.append(request)
            reply = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        sent = reply(request) if callable(reply) else reply
        try:
            for piece in [sent] if isinstance(sent, bytes) else sent:
                if self._closing.is_set():
                    return
                connection.sendall(piece)
        except OSError:
            self.hung_up.set()


def _read_request(connection: socket.socket) -> Received | None:
    with connection.makefile("rb") as stream:
        first = stream.readline().decode("latin-1").split()
        if len(first) < 2:
            return None
        headers = {}
        while (line := stream.readline().decode("latin-1").strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = stream.read(int(headers.get("content-length", "0")))
    return Received(first[0], first[1], headers, body)


@dataclass
class Names:
    """A name server: each name has a list of results, one for each look-up; the last one repeats."""

    results: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def __call__(self, host: str) -> Sequence[str]:
        times = self.asked.count(host)
        self.asked.append(host)
        given = self.results.get(host, [[PUBLIC]])
        found = given[min(times, len(given) - 1)]
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found


@dataclass
class TestNetwork:
    """Connects checked public addresses to servers of the test, and records where a connection would have gone."""

    __test__ = False

    server: Server
    names: Names = field(default_factory=Names)
    dialled: list[tuple[str, int]] = field(default_factory=list)
    trusted: ssl.SSLContext | None = None

    def dial(self, address: str, port: int) -> tuple[str, int]:
        self.dialled.append((address, port))
        return HOST, self.server.port

    @property
    def fetcher(self) -> Fetcher:
        return Fetcher(Guard(resolve=self.names), Network(trusted=self.trusted), dial=self.dial)
