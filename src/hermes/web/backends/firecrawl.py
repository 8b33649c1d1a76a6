"""Firecrawl, hosted or on a server of your own."""

from __future__ import annotations

import re
from typing import Any

from hermes.errors import WebUnavailable
from hermes.web.backends.endpoint import Endpoint
from hermes.web.results import MAX_SNIPPET, MAX_TITLE, MAX_URL, ExtractedPage, SearchResult

_VERSION = re.compile(r"/v[0-9]+$")


class Firecrawl:
    """Searches and reads pages with Firecrawl."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def search(self, query: str, limit: int) -> list[SearchResult]:
        """Return at most `limit` results."""
        answer = self._post("search", {"query": query, "limit": limit})
        data = answer.get("data")
        # Version 2 groups the results by kind; version 1 has only this list.
        found = data.get("web", []) if isinstance(data, dict) else data
        line = self._endpoint.line
        return [
            SearchResult(line(each.get("url"), MAX_URL), line(each.get("title"), MAX_TITLE), self._snippet(each))
            for each in self._endpoint.entries(found, "results")
        ]

    def extract(self, url: str) -> ExtractedPage:
        """Return the text of a page."""
        answer = self._post("scrape", {"url": url, "formats": ["markdown"], "onlyMainContent": True})
        data = answer.get("data")
        if not isinstance(data, dict) or not isinstance(data.get("markdown"), str):
            self._endpoint.garbled("it has no text of the page")
        about = data.get("metadata")
        title = about.get("title") if isinstance(about, dict) else ""
        text, is_truncated = self._endpoint.text(data["markdown"], self._endpoint.max_bytes)
        return ExtractedPage("firecrawl", url, self._endpoint.line(title, MAX_TITLE), text, is_truncated)

    def _snippet(self, found: dict[str, Any]) -> str:
        return self._endpoint.line(found.get("description") or found.get("snippet"), MAX_SNIPPET)

    def _post(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        key = self._endpoint.choice.api_key
        # The address of a server may name the version itself.
        path = f"/{operation}" if _VERSION.search(self._endpoint.choice.base_url) else f"/v2/{operation}"
        answer = self._endpoint.post(path, body, {"Authorization": f"Bearer {key}"} if key else {})
        if answer.get("success") is False:
            said = self._endpoint.quote(answer.get("error"))
            raise WebUnavailable(f"firecrawl failed{f': {said}' if said else ''}")
        return answer
