"""What the web returns: results of a search, and pages."""

from __future__ import annotations

from dataclasses import dataclass

MAX_TITLE = 300
MAX_URL = 2_000
MAX_SNIPPET = 2_000


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One page that a search found."""

    url: str
    title: str
    snippet: str


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The pages that a search found, in the order of the backend."""

    backend: str
    query: str
    results: tuple[SearchResult, ...]


@dataclass(frozen=True, slots=True)
class ExtractedPage:
    """The text of a page, and the backend that read it."""

    backend: str
    url: str
    title: str
    text: str
    is_truncated: bool
