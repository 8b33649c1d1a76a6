"""Connections of one call: they end with the call, whatever the server sends."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

from hermes.web.call_limits import RunningCall


class LimitedNetwork(httpcore2.NetworkBackend):
    """Opens connections for a call. A server that never stops sending would keep an ordinary one open for ever."""

    def __init__(self, call: RunningCall) -> None:
        self._call = call
        self._network = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect, within the time that is left."""
        limit_s = _shorter(timeout, self._call.seconds_left)
        stream = self._network.connect_tcp(host, port, limit_s, local_address, socket_options)
        self._call.keep(stream.get_extra_info("socket"))
        return _LimitedStream(stream, self._call)


class _LimitedStream(httpcore2.NetworkStream):
    """A connection that checks the time that is left before each operation."""

    def __init__(self, stream: httpcore2.NetworkStream, call: RunningCall) -> None:
        self._stream = stream
        self._call = call

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _shorter(timeout, self._call.seconds_left))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _shorter(timeout, self._call.seconds_left))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        limit_s = _shorter(timeout, self._call.seconds_left)
        return _LimitedStream(self._stream.start_tls(ssl_context, server_hostname, limit_s), self._call)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _shorter(timeout: float | None, left_s: float) -> float:
    return left_s if timeout is None else min(timeout, left_s)
