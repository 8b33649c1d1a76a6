"""One HTTP request and its response, limited in size; nothing is followed, kept or taken from the environment."""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import unquote, urlsplit

import httpcore2

from hermes.errors import ConfigError, WebError, WebGarbled, WebTimeout, WebUnavailable
from hermes.web.call_limits import RunningCall
from hermes.web.limited_connection import LimitedNetwork

CONNECT_S = 10.0
ENCODINGS = "gzip, deflate"
_GZIP_MAGIC = b"\x1f\x8b"
_FAILURES = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    httpcore2.ProxyError,
    OSError,
    ValueError,
)
_HEADERS = {"User-Agent": "hermes", "Accept-Encoding": ENCODINGS, "Connection": "close"}


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request."""

    method: str
    url: str = field(repr=False)
    """Where to connect; for a checked page its host is a network address, never a name."""
    host: str
    """The server's name, for TLS and for error texts."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A response; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    """Decompressed."""
    is_truncated: bool


class NotConnected(WebUnavailable):
    """The server cannot be reached; another of its addresses may work."""


@dataclass(frozen=True, slots=True)
class Network:
    """How connections are made: the certificates to trust, and the proxy that the operator has configured."""

    proxy: str | None = field(default=None, repr=False)
    trusted: ssl.SSLContext | None = None
    """None means the authorities that the system trusts, or those in SSL_CERT_FILE."""

    def pool(self, scheme: str, call: RunningCall) -> httpcore2.ConnectionPool:
        """Return the connections of one call: without cookies, redirects, and anything from the environment."""
        return httpcore2.ConnectionPool(
            ssl_context=self.trusted or _trusted(scheme),
            proxy=_proxy(self.proxy) if self.proxy else None,
            network_backend=LimitedNetwork(call),
        )


def exchange(request: Outgoing, call: RunningCall, network: Network, limit_bytes: int) -> Incoming:
    """Send a request and return its response; a longer body is cut at the limit."""
    left_s = call.seconds_left
    timeout = {"connect": min(CONNECT_S, left_s), "read": left_s, "write": left_s, "pool": left_s}
    try:
        with (
            network.pool(request.url.partition(":")[0], call) as pool,
            pool.stream(
                request.method,
                request.url,
                headers=[*_HEADERS.items(), *request.headers.items()],
                content=request.body or None,
                extensions={"timeout": timeout, "sni_hostname": request.host},
            ) as response,
        ):
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            body, is_truncated = _read(response.iter_stream(), headers.get("content-encoding", ""), limit_bytes)
            return Incoming(response.status, headers, body, is_truncated)
    except _FAILURES as error:
        raise _failure(error, request.host) from None  # its text may contain a part of the address


def _proxy(url: str) -> httpcore2.Proxy:
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError
        auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
        return httpcore2.Proxy(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/", auth=auth)
    except (ValueError, TypeError):
        raise ConfigError("web.proxy cannot be used", hint="write it as http://host:port") from None


def _read(pieces: Iterator[bytes], encoding: str, limit_bytes: int) -> tuple[bytes, bool]:
    """Return a body, decompressed piece by piece, and whether it was cut at the limit."""
    decode = _decoder(encoding.strip().lower())
    body, received = bytearray(), 0
    for piece in pieces:
        received += len(piece)
        # One byte more than the limit shows that there is more.
        body += decode.decode(piece, limit_bytes + 1 - len(body))
        if len(body) > limit_bytes or received > limit_bytes:
            return bytes(body[:limit_bytes]), True
    return bytes(body), not decode.is_complete


class _Identity:
    """A body that is not compressed."""

    is_complete = True

    def decode(self, piece: bytes, limit: int) -> bytes:
        """Return at most `limit` bytes."""
        return piece[:limit]


class _Inflate:
    """A compressed body, which may have several parts, and may expand to any length."""

    def __init__(self, *window_bits: int) -> None:
        self._window_bits = window_bits
        self._stream = zlib.decompressobj(window_bits[0])
        self._has_begun = False

    @property
    def is_complete(self) -> bool:
        """Whether the compressed data has ended properly."""
        return self._stream.eof or not self._has_begun

    def decode(self, piece: bytes, limit: int) -> bytes:
        """Return at most `limit` bytes of the expanded data."""
        expanded = bytearray()
        while piece and len(expanded) < limit:
            if self._stream.eof:
                if not piece.startswith(_GZIP_MAGIC):
                    break  # padding after the data, which some servers send
                self._stream = zlib.decompressobj(self._window_bits[0])
            expanded += self._inflate(piece, limit - len(expanded))
            piece = self._stream.unused_data
        return bytes(expanded)

    def _inflate(self, piece: bytes, limit: int) -> bytes:
        is_first, self._has_begun = not self._has_begun, True
        try:
            return self._stream.decompress(piece, limit)
        except zlib.error:
            if not is_first or len(self._window_bits) == 1:
                raise WebGarbled("the compressed response is damaged") from None
        # Some servers send deflate without its header.
        self._window_bits = self._window_bits[1:]
        self._stream = zlib.decompressobj(self._window_bits[0])
        return self._inflate(piece, limit)


def _decoder(encoding: str) -> _Identity | _Inflate:
    match encoding:
        case "" | "identity":
            return _Identity()
        case "gzip" | "x-gzip":
            return _Inflate(16 + zlib.MAX_WBITS)
        case "deflate":
            return _Inflate(zlib.MAX_WBITS, -zlib.MAX_WBITS)
        case _:
            raise WebGarbled(f"the response is compressed in a way that was not requested; requested: {ENCODINGS}")


def _failure(error: Exception, host: str) -> WebError:
    """Return our error for a failed exchange, with the reason in the words of the system."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return WebUnavailable(f"the certificate of {host} is not trusted: {cause.verify_message}", hint="")
    reason = f": {cause.strerror}" if isinstance(cause, OSError) and cause.strerror else ""
    if isinstance(error, httpcore2.ConnectError | httpcore2.ConnectTimeout | httpcore2.ProxyError):
        return NotConnected(f"no connection to {host}{reason}")
    if isinstance(error, httpcore2.TimeoutException):
        return WebTimeout(f"{host} does not respond any more")
    if isinstance(error, httpcore2.RemoteProtocolError | httpcore2.NetworkError):
        return WebUnavailable(f"the connection to {host} broke before the response was complete{reason}")
    return WebGarbled(f"the response of {host} cannot be read")


@cache
def _trusted(scheme: str) -> ssl.SSLContext:
    """The certificates to trust; reading them takes longer than everything else, and http needs none."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if scheme == "http" else httpcore2.default_ssl_context()
