"""Errors of a platform or of the connection to it, as what they say about the message."""

from __future__ import annotations

import errno
import socket

from hermes.gateway.engine.ports import MaybeSent, NotSent

_TOO_MANY, _REQUEST_TIMEOUT, _UNAVAILABLE = 429, 408, 503
_NOT_REACHED = frozenset(
    {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL}
)


def error_of_status(status: int, reason: str, retry_after_s: float | None = None) -> NotSent | MaybeSent:
    """Return the error for an HTTP status that is not a success.

    A failing server may have stored the message. One that is overloaded or refuses the request has not.
    """
    if status in (_TOO_MANY, _UNAVAILABLE):
        return NotSent(reason, retry_after_s=retry_after_s)
    if status >= 500 or status == _REQUEST_TIMEOUT:
        return MaybeSent(reason)
    return NotSent(reason, retry_after_s=retry_after_s, is_final=retry_after_s is None)


def error_of_connection(error: OSError) -> NotSent | MaybeSent:
    """Return the error for a connection that failed: the message was not sent only if there was no connection."""
    reason = error.strerror or str(error) or type(error).__name__
    if isinstance(error, socket.gaierror) or error.errno in _NOT_REACHED:
        return NotSent(f"the platform cannot be reached: {reason}")
    return MaybeSent(f"the connection was lost: {reason}")
