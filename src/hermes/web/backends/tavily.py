"""Tavily."""

from __future__ import annotations

from typing import Any

from hermes.errors import WebUnavailable
from hermes.web.backends.endpoint import Endpoint
from hermes.web.results import MAX_SNIPPET, MAX_TITLE, MAX_URL, ExtractedPage, SearchResult


class Tavily:
    """Searches and reads pages with Tavily."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def search(self, query: str, limit: int) -> list[SearchResult]:
        """Return at most `limit` results."""
        answer = self._post("search", {"query": query, "max_results": limit})
        line = self._endpoint.line
        return [
            SearchResult(
                line(each.get("url"), MAX_URL),
                line(each.get("title"), MAX_TITLE),
                line(each.get("content"), MAX_SNIPPET),
            )
            for each in self._endpoint.entries(answer.get("results"), "results")
        ]

    def extract(self, url: str) -> ExtractedPage:
        """Return the text of a page."""
        answer = self._post("extract", {"urls": [url], "format": "markdown"})
        pages = self._endpoint.entries(answer.get("results"), "pages")
        if not pages:
            failed = answer.get("failed_results")
            first = failed[0] if isinstance(failed, list) and failed and isinstance(failed[0], dict) else {}
            said = self._endpoint.quote(first.get("error"))
            raise WebUnavailable(f"tavily could not read the page{f': {said}' if said else ''}")
        text, is_truncated = self._endpoint.text(pages[0].get("raw_content"), self._endpoint.max_bytes)
        return ExtractedPage("tavily", url, self._endpoint.line(pages[0].get("title"), MAX_TITLE), text, is_truncated)

    def _post(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._endpoint.post(f"/{operation}", body, {"Authorization": f"Bearer {self._endpoint.choice.api_key}"})
