"""One HTTP request and its response, on its own thread.

Looking up a name, connecting and reading can each block for any time. On their own thread they do not block the caller,
who waits for events with its own time limits and can leave at any time.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from queue import Empty, SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from hermes.agent.models.model import Cancellation
from hermes.errors import NoModel

if TYPE_CHECKING:
    from httpx2 import Client

_GRACE_S = 5.0
"""The caller's limits expire first; the thread's own, longer ones end a thread after its caller has left."""
MAX_PIECES_AHEAD = 32
"""How many pieces, of 64 KB at most, are read ahead of the caller; then the sender has to wait."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""
    connect_s: float = 10.0
    silence_s: float = 60.0
    """The longest time without any data."""
    allow_http: bool = False
    """Whether a proxy from the environment may read an unencrypted request."""


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The status and headers of a response; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConnectionFailure:
    """The connection failed or was lost."""

    how: Literal["unconnected", "untrusted", "silent", "cut", "impossible"]
    reason: str


@dataclass(frozen=True, slots=True)
class ResponseEnd:
    """The end of a complete response."""


CallEvent = ResponseHead | bytes | ConnectionFailure | ResponseEnd


class HttpCall:
    """A running request; its response arrives as events."""

    def __init__(self, request: HttpRequest, cancellation: Cancellation) -> None:
        self._request = request
        self._cancellation = cancellation
        self._client = _client(*_origin(request.url), os.getpid(), request.allow_http)
        self._events: SimpleQueue[CallEvent | None] = SimpleQueue()
        self._slots = Semaphore(MAX_PIECES_AHEAD)
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._is_left = False
        self._unregister = cancellation.on_cancel(lambda: self._events.put(None))
        # A daemon thread: it must not keep the process from ending.
        Thread(target=self._run, name="hermes-model", daemon=True).start()

    def next(self, deadline: float) -> CallEvent | None:
        """Return the next event, or None if cancelled; raise TimeoutError at the deadline (in `time.monotonic`)."""
        if self._cancellation.is_cancelled:
            return None
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError  # even if more data is waiting
        try:
            news = self._events.get(timeout=left)
        except Empty:
            raise TimeoutError from None
        if isinstance(news, bytes):
            self._slots.release()
        return None if self._cancellation.is_cancelled else news

    def leave(self) -> None:
        """Close the connection unless the response is complete: the endpoint stops sending, and the thread ends."""
        self._unregister()
        with self._lock:
            self._is_left = True
            self._slots.release()
            if self._socket is not None:
                _shut_down(self._socket)

    def _run(self) -> None:
        import httpx2

        request = self._request
        timeout = httpx2.Timeout(request.silence_s + _GRACE_S, connect=request.connect_s)
        try:
            with self._client.stream(
                request.method,
                request.url,
                headers=dict(request.headers),
                content=request.body,
                timeout=timeout,
                extensions={"trace": self._trace},
            ) as response:
                self._keep_socket(response.extensions["network_stream"])
                headers = {name.lower(): value for name, value in response.headers.items()}
                self._events.put(ResponseHead(response.status_code, headers))
                # Raw bytes: compressed data could expand to any length.
                for piece in response.iter_raw():
                    self._slots.acquire()
                    if self._is_left:
                        return
                    self._events.put(piece)
                self._release()
            self._events.put(ResponseEnd())
        except Exception as error:  # noqa: BLE001 - the waiting caller must get every error
            self._events.put(_connection_failure(error))

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Keep the socket of a new connection at once, so that `leave` can close it before the response begins.

        The socket of a reused connection is known only when the response begins.
        """
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._keep_socket(info["return_value"])

    def _keep_socket(self, stream: Any) -> None:
        with self._lock:
            self._socket = stream.get_extra_info("socket")
            if self._is_left and self._socket is not None:
                _shut_down(self._socket)

    def _release(self) -> None:
        """Forget the socket: the response is complete, and other calls may reuse the connection."""
        with self._lock:
            self._socket = None


def _connection_failure(error: Exception) -> ConnectionFailure:
    """Classify an error, with the reason in the words of the system."""
    import ssl

    import httpx2

    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError | OSError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return ConnectionFailure("untrusted", cause.verify_message)
    reason = (cause.strerror if isinstance(cause, OSError) else None) or str(error)
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError):
        return ConnectionFailure("unconnected", reason)
    if isinstance(error, httpx2.TimeoutException):
        return ConnectionFailure("silent", reason)
    if isinstance(error, httpx2.LocalProtocolError) or not isinstance(error, httpx2.TransportError):
        return ConnectionFailure("impossible", reason)
    return ConnectionFailure("cut", reason)


def _shut_down(connection: socket.socket) -> None:
    """Shut down a connection that another thread is reading; closing it would leave that thread waiting.

    Uses the plain socket's method: that of a TLS socket would remove the encryption while the thread is reading.
    """
    with contextlib.suppress(OSError):  # it is closed already
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


_HEADERS = {"User-Agent": "hermes", "Accept-Encoding": "identity"}


@cache
def _client(scheme: str, host: str, _port: int | None, _pid: int, allow_http: bool) -> Client:
    """Return the client of this process for an endpoint; it keeps and reuses connections."""
    import logging
    import ssl

    import httpx2

    # It would log addresses, which may contain secrets.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    # Reading the trusted certificates takes longer than everything else; http needs none.
    verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if scheme == "http" else True
    limits = httpx2.Limits(keepalive_expiry=60.0)
    try:
        # A proxy could read http requests, and this machine needs no proxy; our own transport uses none.
        is_direct = _is_this_machine(host) or (scheme == "http" and not allow_http)
        transport = httpx2.HTTPTransport(verify=verify, limits=limits) if is_direct else None
        client = httpx2.Client(
            transport=transport, verify=verify, limits=limits, follow_redirects=False, headers=_HEADERS
        )
    except (ImportError, ValueError, OSError):
        raise NoModel(
            "the proxy or the certificates in the environment cannot be used",
            hint="check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE",
        ) from None  # its text may contain a password
    atexit.register(client.close)
    return client


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
