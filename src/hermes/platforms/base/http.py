"""Requests to the gateway's HTTP server, as adapters see them: webhooks need no server of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request whose body was read within the server's limits; the names of headers are in lower case."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The response to a request."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


class Routes(Protocol):
    """The paths of the gateway's HTTP server."""

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Let a handler answer requests to a path, from now on; the last one that is added for a path is used."""

    def remove(self, method: str, path: str) -> None:
        """Refuse requests to a path with 404 again; a path that was not added is ignored."""
