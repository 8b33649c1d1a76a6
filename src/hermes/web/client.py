"""Searching the web and reading pages, with the backend that the configuration chooses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from hermes.config import WebConfig
from hermes.errors import InvalidValue, WebError, WebUnavailable
from hermes.web.backends.choice import DIRECT, EXTRACT, KEYS, SEARCH, BackendChoice, choose_backend, is_near
from hermes.web.backends.endpoint import Endpoint
from hermes.web.backends.firecrawl import Firecrawl
from hermes.web.backends.parallel import Parallel
from hermes.web.backends.tavily import Tavily
from hermes.web.call_limits import Cancellable, run_limited
from hermes.web.clean_text import clean_line
from hermes.web.exchange import Network
from hermes.web.fetch import Fetcher
from hermes.web.guard import Guard
from hermes.web.results import ExtractedPage, SearchResult, SearchResults

MAX_QUERY = 1_000
MAX_RESULTS = 20


class Backend(Protocol):
    """A service that searches the web and reads pages."""

    def search(self, query: str, limit: int) -> list[SearchResult]:
        """Return at most `limit` results."""

    def extract(self, url: str) -> ExtractedPage:
        """Return the text of a page."""


class WebClient:
    """Searches and reads; each call chooses the backend from the configuration and the variables."""

    def __init__(
        self,
        config: WebConfig,
        variables: Mapping[str, str],
        *,
        secrets: Collection[str] = (),
        cancellation: Cancellable | None = None,
        fetcher: Fetcher | None = None,
    ) -> None:
        self._config = config
        self._variables = variables
        self._cancellation = cancellation
        self._network = Network(proxy=config.proxy)
        keys = [variables[name] for name in KEYS if variables.get(name)]
        self._fetcher = fetcher or Fetcher(
            Guard(extra_ports=config.extra_ports, secrets=(*keys, *secrets)), self._network
        )

    def search(self, query: str, limit: int | None = None) -> SearchResults:
        """Search the web."""
        query = clean_line(query)
        if not query:
            raise InvalidValue("the query is empty")
        if len(query) > MAX_QUERY:
            raise InvalidValue(f"the query has {len(query)} characters; the limit is {MAX_QUERY}")
        limit = max(1, min(limit or self._config.max_results, MAX_RESULTS))
        choice = choose_backend(self._config, self._variables, SEARCH)
        found = self._backend(choice).search(query, limit)
        usable = [each for each in found if each.url.startswith(("https://", "http://"))]
        return SearchResults(choice.name, query, tuple(usable[:limit]))

    def extract(self, url: str) -> ExtractedPage:
        """Read a page; the guard checks its address first, whatever backend reads it."""
        guard = self._fetcher.guard
        guard.check_text(url)
        choice = choose_backend(self._config, self._variables, EXTRACT)
        if choice.name == DIRECT:
            return self._fetch(url)
        checked = run_limited(lambda _: guard.check(url), self._config.timeout_s, self._cancellation)
        return self._backend(choice).extract(str(checked.url))

    def _fetch(self, url: str) -> ExtractedPage:
        limits = self._config
        page = self._fetcher.fetch_text(
            url, limit_bytes=limits.max_bytes, timeout_s=limits.timeout_s, cancellation=self._cancellation
        )
        if page.status >= 400:
            kind = WebUnavailable if page.status in (429,) or page.status >= 500 else WebError
            said = f": {page.title}" if page.title else ""
            raise kind(f"the server refuses the page (status {page.status}){said}")
        return ExtractedPage(DIRECT, page.url, page.title, page.text, page.is_truncated)

    def _backend(self, choice: BackendChoice) -> Backend:
        # A proxy is for the web, not for a server of this machine or of a private network.
        network = Network() if is_near(urlsplit(choice.base_url).hostname or "") else self._network
        endpoint = Endpoint(
            choice,
            network,
            timeout_s=self._config.timeout_s,
            max_bytes=self._config.max_bytes,
            cancellation=self._cancellation,
        )
        match choice.name:
            case "firecrawl":
                return Firecrawl(endpoint)
            case "parallel":
                return Parallel(endpoint)
            case _:
                return Tavily(endpoint)
