"""A call to a backend: JSON in, JSON out, and an error of ours for everything else.

The operator has configured the address, so the guard does not apply. A redirect is never followed: it would take the
key to another host.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn

from hermes.errors import (
    WebBusy,
    WebCreditSpent,
    WebError,
    WebGarbled,
    WebKeyRefused,
    WebTimeout,
    WebUnavailable,
)
from hermes.web.backends.choice import BackendChoice
from hermes.web.call_limits import Cancellable, run_limited
from hermes.web.clean_text import clean_line, clean_text
from hermes.web.exchange import Incoming, Network, Outgoing, exchange

MAX_QUOTED = 300
_MAX_READ = 20 * MAX_QUOTED
_SPENT = frozenset((402, 432, 433))
"""No credit left; 432 and 433 are Tavily's limits of a plan."""
_ENVELOPE_BYTES = 1_000_000
"""How much longer than a page the response with it may be."""


class Endpoint:
    """The endpoint of a backend."""

    def __init__(
        self,
        choice: BackendChoice,
        network: Network,
        *,
        timeout_s: float,
        max_bytes: int,
        cancellation: Cancellable | None = None,
    ) -> None:
        self.choice = choice
        self.max_bytes = max_bytes
        self._network = network
        self._timeout_s = timeout_s
        self._cancellation = cancellation

    def post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        """Send an object to a path and return the object that the backend sends back."""
        request = Outgoing(
            "POST",
            f"{self.choice.base_url}{path}",
            # The name without the port, for TLS.
            _host_name(self.choice.base_url),
            {"Content-Type": "application/json", "Accept": "application/json", **headers},
            json.dumps(body).encode(),
        )
        limit = 2 * self.max_bytes + _ENVELOPE_BYTES
        response = run_limited(
            lambda call: exchange(request, call, self._network, limit), self._timeout_s, self._cancellation
        )
        if not 200 <= response.status < 300:
            raise self._error(response)
        try:
            value = json.loads(response.body)
        except (ValueError, RecursionError):
            self.garbled("its response is not JSON" if not response.is_truncated else "its response is too long")
        if not isinstance(value, dict):
            self.garbled("its response is not an object")
        return value

    def garbled(self, why: str) -> NoReturn:
        """Raise the error for a response that has another form than the backend promises."""
        raise WebGarbled(
            f"{self.choice.name} at {self.choice.host} sent something unexpected: {why}",
            hint="check the address of the backend, or try again later",
        )

    def entries(self, value: Any, where: str) -> list[dict[str, Any]]:
        """Return a list of objects from a response; what is not an object is left out."""
        if not isinstance(value, list):
            self.garbled(f"it has no list of {where}")
        return [each for each in value if isinstance(each, dict)]

    def line(self, value: Any, limit: int) -> str:
        """Return a value of a response as one line without secrets, cut to `limit` characters."""
        return clean_line(self._without_key(value, limit))[:limit]

    def text(self, value: Any, limit: int) -> tuple[str, bool]:
        """Return a value of a response as text without secrets, and whether it was cut."""
        text = clean_text(self._without_key(value, limit + 1)).strip()
        return text[:limit], len(text) > limit

    def quote(self, value: Any) -> str:
        """Return what a backend says about an error: without secrets, on one line, and not long."""
        from hermes.secrets import hide_keys

        text = clean_line(hide_keys(self._without_key(value, _MAX_READ)))
        return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}..."

    def _without_key(self, value: Any, limit: int) -> str:
        from hermes.secrets import MASK

        text = value if isinstance(value, str) else ""
        key = self.choice.api_key
        # The key is replaced before the text is cut, so that no part of it is left at the end.
        return (text.replace(key, MASK) if key else text)[: 4 * limit]

    def _error(self, response: Incoming) -> WebError:
        name, host, status = self.choice.name, self.choice.host, response.status
        said = self.quote(_message_of(response.body))
        quoted = f": {said}" if said else ""
        retry_after_s = read_retry_after(response.headers.get("retry-after", ""), time.time())
        again = None if retry_after_s is None else f"try again in {retry_after_s:.0f} s"
        if 300 <= status < 400:
            return WebError(f"{name} at {host} redirects to another address; the key is not sent there")
        if status in (401, 403) and not self.choice.api_key:
            return WebKeyRefused(f"{name} at {host} requires a key", hint=f"set {self.choice.key_variable} in .env")
        if status == 401:  # its text may quote the key
            return WebKeyRefused(f"{name} at {host} does not accept the key in {self.choice.key_variable}")
        if status == 403:
            return WebKeyRefused(
                f"{name} at {host} does not allow this with the key in {self.choice.key_variable}{quoted}"
            )
        if status in _SPENT:
            return WebCreditSpent(f"the account at {name} has no credit left{quoted}", retry_after_s=retry_after_s)
        if status == 429:
            return WebBusy(f"{name} is busy (rate limit){quoted}", hint=again, retry_after_s=retry_after_s)
        if status in (408, 504):
            return WebTimeout(
                f"{name} took too long (status {status}){quoted}", hint=again, retry_after_s=retry_after_s
            )
        if status >= 500:
            return WebUnavailable(f"{name} failed (status {status}){quoted}", hint=again, retry_after_s=retry_after_s)
        return WebError(f"{name} does not accept the request (status {status}){quoted}")


def read_retry_after(text: str, now: float) -> float | None:
    """Return the seconds that a `Retry-After` header asks to wait: a number or a date; None if it is neither."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now
        except (ValueError, OverflowError, TypeError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _message_of(body: bytes) -> str:
    """Return the message of an error response, in any of the forms of the backends."""
    try:
        value = json.loads(body[: 10 * _MAX_READ])
    except (ValueError, RecursionError):
        return ""
    for _ in range(3):  # {"detail": {"error": "..."}}, {"error": {"message": "..."}}
        if not isinstance(value, dict):
            break
        value = next((value[name] for name in ("error", "detail", "message") if value.get(name)), "")
    return value if isinstance(value, str) else ""


def _host_name(url: str) -> str:
    from urllib.parse import urlsplit

    return urlsplit(url).hostname or ""
