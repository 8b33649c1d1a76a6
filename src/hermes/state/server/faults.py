"""What can go wrong between an engine and its server, before anybody has decided what it means for the caller."""

from __future__ import annotations

from enum import Enum, auto


class Fault(Exception):
    """A server, or the way to it, did not do what it was asked."""


class ServerError(Fault):
    """The server answered with an error."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        """As the server gives it: an SQLSTATE, or a number."""
        super().__init__(message)


class ConnectionLost(Fault):
    """The connection broke; what was not committed is undone by the server."""


class ConnectFailed(ConnectionLost):
    """No connection could be opened."""

    def __init__(self, message: str, hint: str) -> None:
        self.hint = hint
        """What to do about it."""
        super().__init__(message)


class PoolerBusy(ConnectionLost):
    """A pooler between us and the server had no connection to it that was free."""


class CommitUnknown(Fault):
    """The connection broke after a commit was sent, so that it is not known whether it was done."""

    def __init__(self, token: str | None, message: str) -> None:
        self.token = token
        """By what the server knows the transaction; None: it had not changed anything."""
        super().__init__(message)


class StatementTimeout(Fault):
    """A statement waited for so long that it was called off."""


class Verdict(Enum):
    """Whether work that failed may be done again."""

    NEVER = auto()
    RETRY_SOON = auto()
    """Somebody else was in the way, and will not be for long."""
    RETRY_NOW = auto()
    """Somebody else changed what the work had looked at; another look tells whether it can be done at all."""
    RECONNECT = auto()
    """Over another connection."""
