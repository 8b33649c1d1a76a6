"""Reading a web page whose address comes from a person, a page or a model.

The guard looks the host up once and checks every address of it; the connection then goes to a checked address and not
to the name, so a name server cannot give another address in between. Each redirect is a new address, and is checked
like the first one.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urljoin

from hermes.errors import UnsafeUrl, WebGarbled
from hermes.web.body_text import read_body
from hermes.web.call_limits import Cancellable, RunningCall, run_limited
from hermes.web.exchange import Incoming, Network, NotConnected, Outgoing, exchange
from hermes.web.guard import CheckedUrl, Guard

LIMIT_BYTES = 2_000_000
TIMEOUT_S = 30.0
MAX_REDIRECTS = 5

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_MAX_TRIED = 4
"""How many addresses of a host are tried."""
_ACCEPT = "text/html, application/xhtml+xml, text/plain, application/json, text/*;q=0.9, application/xml;q=0.8"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

Dial = Callable[[str, int], tuple[str, int]]
"""Returns where to connect for a checked address and port."""


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A page as text."""

    url: str
    """Where it came from, after all redirects."""
    status: int
    title: str
    text: str
    is_truncated: bool


def fetch_text(url: str, *, limit_bytes: int = LIMIT_BYTES, timeout_s: float = TIMEOUT_S) -> FetchedPage:
    """Read a page as text; raises `UnsafeUrl` if the guard refuses its address, and other kinds of `WebError`."""
    return Fetcher().fetch_text(url, limit_bytes=limit_bytes, timeout_s=timeout_s)


def dial_directly(address: str, port: int) -> tuple[str, int]:
    """Connect to the checked address itself."""
    return address, port


class Fetcher:
    """Reads pages. Only tests pass `dial`, to reach their own servers instead of checked public addresses."""

    def __init__(
        self, guard: Guard | None = None, network: Network | None = None, *, dial: Dial = dial_directly
    ) -> None:
        self.guard = guard or Guard()
        self._network = network or Network()
        self._dial = dial

    def fetch_text(
        self,
        url: str,
        *,
        limit_bytes: int = LIMIT_BYTES,
        timeout_s: float = TIMEOUT_S,
        cancellation: Cancellable | None = None,
    ) -> FetchedPage:
        """Read a page as text, within the limits; a longer page is cut."""
        self.guard.check_text(url)  # before a thread starts
        return run_limited(lambda call: self._fetch(url, call, limit_bytes), timeout_s, cancellation)

    def _fetch(self, url: str, call: RunningCall, limit_bytes: int) -> FetchedPage:
        for _ in range(MAX_REDIRECTS + 1):
            checked = self.guard.check(url)
            response = self._exchange(checked, call, limit_bytes)
            if response.status not in _REDIRECTS or "location" not in response.headers:
                page = read_body(response.body, response.headers.get("content-type", ""))
                return FetchedPage(str(checked.url), response.status, page.title, page.text, response.is_truncated)
            url = _redirect_target(checked, response.headers["location"])
        raise WebGarbled(f"the page redirects more than {MAX_REDIRECTS} times")

    def _exchange(self, checked: CheckedUrl, call: RunningCall, limit_bytes: int) -> Incoming:
        """Try the checked addresses in turn, until one accepts a connection."""
        tried = checked.addresses[:_MAX_TRIED]
        for place, address in enumerate(tried, start=1):
            try:
                return exchange(self._request(checked, address), call, self._network, limit_bytes)
            except NotConnected:
                if place == len(tried):
                    raise
        raise NotConnected(f"no connection to {checked.url.host}")

    def _request(self, checked: CheckedUrl, address: str) -> Outgoing:
        url = checked.url
        host, port = self._dial(address, url.port)
        bracketed = f"[{host}]" if ":" in host else host
        return Outgoing(
            "GET",
            f"{url.scheme}://{bracketed}:{port}{url.target}",
            url.host,
            {"Host": url.authority, "Accept": _ACCEPT},
        )


def _redirect_target(checked: CheckedUrl, location: str) -> str:
    """Return the address of a redirect, which may be relative; the guard checks it next."""
    with contextlib.suppress(UnicodeError):  # headers are bytes; many servers send UTF-8 without encoding it
        location = location.encode("latin-1").decode("utf-8")
    if _CONTROL.search(location) or "\\" in location:
        raise UnsafeUrl("the page redirects to an address with a control character or a backslash")
    try:
        return urljoin(str(checked.url), location)
    except ValueError:
        raise UnsafeUrl("the page redirects to an address that is not valid") from None
