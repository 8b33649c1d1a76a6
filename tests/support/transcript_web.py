"""The state of a home in which transcripts about the web are made."""

from __future__ import annotations

from tests.support.transcript_home import Home
from tests.web.servers import Server, respond_json

_FOUND = [
    {
        "url": "https://www.sqlite.org/wal.html",
        "title": "Write-Ahead Logging",
        "content": "WAL mode: readers do not block writers, and a writer does not block readers.",
    },
    {
        "url": "https://www.sqlite.org/lockingv3.html",
        "title": "File Locking And Concurrency",
        "content": "Locks of the rollback journal.",
    },
]


def web_backend(home: Home) -> None:
    """A backend is configured that finds two pages; it has the interface of Tavily."""
    server = home.resources.enter_context(Server(respond_json({"results": _FOUND})))
    home.configure(f"web:\n  tavily_url: {server.url}\n")
    variables = home.hermes / ".env"
    variables.write_text("TAVILY_API_KEY=tvly-not-a-real-key\n")
    variables.chmod(0o600)
