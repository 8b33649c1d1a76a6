"""One request to an endpoint and what comes back, carried by a thread of its own.

Looking up a name, connecting and reading can each block for as long as they like. On a thread of their own they hold up
nobody: the caller waits for news, with its own limits, and leaves when it likes.
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
"""The caller's limits come first; the thread's own end one that nobody waits for any more."""
MAX_PIECES_AHEAD = 32
"""So many pieces, of 64 KB at most, are read before the caller takes them; then the sender has to wait."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What is sent."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""
    connect_s: float = 10.0
    silence_s: float = 60.0
    """How long nothing may come."""
    allow_http: bool = False
    """Whether a proxy of the environment may see it all: what goes over http is in clear there."""


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The beginning of an answer; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConnectionFailure:
    """The connection could not be made, or did not last."""

    how: Literal["unconnected", "untrusted", "silent", "cut", "impossible"]
    reason: str


@dataclass(frozen=True, slots=True)
class ResponseEnd:
    """The answer came to its end."""


CallEvent = ResponseHead | bytes | ConnectionFailure | ResponseEnd


class HttpCall:
    """A request on its way; what comes back arrives as news."""

    def __init__(self, request: HttpRequest, cancellation: Cancellation) -> None:
        self._request = request
        self._cancellation = cancellation
        self._client = _client(*_origin(request.url), os.getpid(), request.allow_http)
        self._news: SimpleQueue[CallEvent | None] = SimpleQueue()
        self._room = Semaphore(MAX_PIECES_AHEAD)
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._is_left = False
        self._forget = cancellation.on_cancel(lambda: self._news.put(None))
        # It must not keep the process from ending.
        Thread(target=self._run, name="hermes-model", daemon=True).start()

    def next(self, deadline: float) -> CallEvent | None:
        """The next news; None when the stop was wished, TimeoutError at the deadline, a moment of `time.monotonic`."""
        if self._cancellation.is_cancelled:
            return None
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError  # also while more comes than can be read
        try:
            news = self._news.get(timeout=left)
        except Empty:
            raise TimeoutError from None
        if isinstance(news, bytes):
            self._room.release()
        return None if self._cancellation.is_cancelled else news

    def leave(self) -> None:
        """Hang up, whatever has come: the endpoint need not go on, and the thread ends."""
        self._forget()
        with self._lock:
            self._is_left = True
            self._room.release()
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
                self._hold(response.extensions["network_stream"])
                headers = {name.lower(): value for name, value in response.headers.items()}
                self._news.put(ResponseHead(response.status_code, headers))
                # As it was sent: what is compressed could become any length.
                for piece in response.iter_raw():
                    self._room.acquire()
                    if self._is_left:
                        return
                    self._news.put(piece)
                self._release()
            self._news.put(ResponseEnd())
        except Exception as error:  # noqa: BLE001 - the one who waits must hear of it, whatever it is
            self._news.put(_connection_failure(error))

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Learn of a new connection as soon as there is one, because an answer may be long in coming.

        Which of those that are kept is used again is learned when the answer begins; then it is left at the latest.
        """
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._hold(info["return_value"])

    def _hold(self, stream: Any) -> None:
        with self._lock:
            self._socket = stream.get_extra_info("socket")
            if self._is_left and self._socket is not None:
                _shut_down(self._socket)

    def _release(self) -> None:
        """The answer is complete: from here on the connection serves others."""
        with self._lock:
            self._socket = None


def _connection_failure(error: Exception) -> ConnectionFailure:
    """What happened, in our words, and the reason in those of the system."""
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
    """End what another thread does with a connection; closing it would leave that thread waiting.

    By the plain socket's own method: that of a TLS socket would take the encryption away from under the reader.
    """
    with contextlib.suppress(OSError):  # it has ended by itself
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


_HEADERS = {"User-Agent": "hermes", "Accept-Encoding": "identity"}


@cache
def _client(scheme: str, host: str, _port: int | None, _pid: int, allow_http: bool) -> Client:
    """The one client of this process for an endpoint; connections are kept and used again."""
    import logging
    import ssl

    import httpx2

    # It would write addresses into the log, with whatever secrets are in them.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    # Reading the trusted certificates takes longer than all the rest. One that trusts nobody will do for http.
    verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if scheme == "http" else True
    limits = httpx2.Limits(keepalive_expiry=60.0)
    try:
        # A proxy would read what goes over http, and none is meant for this machine; a transport of its own asks none.
        is_direct = _is_this_machine(host) or (scheme == "http" and not allow_http)
        transport = httpx2.HTTPTransport(verify=verify, limits=limits) if is_direct else None
        client = httpx2.Client(
            transport=transport, verify=verify, limits=limits, follow_redirects=False, headers=_HEADERS
        )
    except (ImportError, ValueError, OSError):
        raise NoModel(
            "the proxy or the certificates that the environment names cannot be used",
            hint="check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE",
        ) from None  # whose text may have a password in it
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
