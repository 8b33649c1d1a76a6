"""Faults between an engine and its server, before they are translated for the caller."""

from __future__ import annotations

from enum import Enum, auto


class Fault(Exception):
    """A server, or the connection to it, failed."""


class ServerError(Fault):
    """The server responded with an error."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        """The code of the server: an SQLSTATE, or a number."""
        super().__init__(message)


class ConnectionLost(Fault):
    """The connection broke; the server rolls back what was not committed."""


class ConnectFailed(ConnectionLost):
    """No connection could be opened."""

    def __init__(self, message: str, hint: str) -> None:
        self.hint = hint
        """What to do about it."""
        super().__init__(message)


class PoolerBusy(ConnectionLost):
    """A pooler between us and the server had no free connection to the server."""


class CommitUnknown(Fault):
    """The connection broke after a commit was sent, so it is not known whether it was done."""

    def __init__(self, token: str | None, message: str) -> None:
        self.token = token
        """The server's number of the transaction; None if it had not changed anything."""
        super().__init__(message)


class StatementTimeout(Fault):
    """A statement took so long that it was cancelled."""


class Verdict(Enum):
    """Whether work that failed may be repeated."""

    NEVER = auto()
    RETRY_SOON = auto()
    """Another transaction was in the way, but not for long."""
    RETRY_NOW = auto()
    """Another transaction changed rows that the work had read; a new attempt shows whether the work is possible."""
    RECONNECT = auto()
    """Repeat it over another connection."""
