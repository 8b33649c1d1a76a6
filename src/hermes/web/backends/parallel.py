"""Parallel, with its modes of searching."""

from __future__ import annotations

from typing import Any

from hermes.errors import WebUnavailable
from hermes.web.backends.endpoint import Endpoint
from hermes.web.results import MAX_SNIPPET, MAX_TITLE, MAX_URL, ExtractedPage, SearchResult

_BETA = "search-extract-2025-10-10"


class Parallel:
    """Searches and reads pages with Parallel."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def search(self, query: str, limit: int) -> list[SearchResult]:
        """Return at most `limit` results, found in the configured mode."""
        body = {
            "objective": query,
            "search_queries": [query],
            "mode": self._endpoint.choice.mode,
            "max_results": limit,
            "excerpts": {"max_chars_per_result": MAX_SNIPPET},
        }
        answer = self._post("search", body)
        line = self._endpoint.line
        return [
            SearchResult(
                line(each.get("url"), MAX_URL), line(each.get("title"), MAX_TITLE), line(_excerpts(each), MAX_SNIPPET)
            )
            for each in self._endpoint.entries(answer.get("results"), "results")
        ]

    def extract(self, url: str) -> ExtractedPage:
        """Return the text of a page."""
        answer = self._post("extract", {"urls": [url], "full_content": True, "excerpts": False})
        pages = self._endpoint.entries(answer.get("results"), "pages")
        if not pages:
            failed = answer.get("errors")
            first = failed[0] if isinstance(failed, list) and failed and isinstance(failed[0], dict) else {}
            said = self._endpoint.quote(first.get("content") or first.get("error_type"))
            raise WebUnavailable(f"parallel could not read the page{f': {said}' if said else ''}")
        content = pages[0].get("full_content")
        text, is_truncated = self._endpoint.text(
            content if isinstance(content, str) else _excerpts(pages[0]), self._endpoint.max_bytes
        )
        return ExtractedPage("parallel", url, self._endpoint.line(pages[0].get("title"), MAX_TITLE), text, is_truncated)

    def _post(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"x-api-key": self._endpoint.choice.api_key, "parallel-beta": _BETA}
        return self._endpoint.post(f"/v1beta/{operation}", body, headers)


def _excerpts(found: dict[str, Any]) -> str:
    excerpts = found.get("excerpts")
    return "\n".join(each for each in excerpts if isinstance(each, str)) if isinstance(excerpts, list) else ""
