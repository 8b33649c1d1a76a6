"""`hermes web search` and `hermes web extract`, with a backend of the test."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Hermes
from tests.web.servers import Server, respond, respond_json

KEY = "squeamish-ossifrage-4711"
RESULTS = [
    {"url": "https://www.sqlite.org/wal.html", "title": "Write-Ahead Logging", "content": "The log\x1b[31m file."},
    {"url": "https://example.com/", "title": "", "content": ""},
]
PAGE = "http://93.184.215.14/page"


@pytest.fixture
def tavily(hermes: Hermes) -> Iterator[Server]:
    """A backend that finds two pages, and then reads one."""
    read = respond_json({"results": [{"title": "A\x1b[31m page", "raw_content": "one\n\x1b]0;x\x07two"}]})
    with Server(lambda request: respond_json({"results": RESULTS}) if request.target == "/search" else read) as server:
        hermes.home.mkdir(mode=0o700)
        (hermes.home / "config.yaml").write_text(f"web: {{tavily_url: '{server.url}'}}\n")
        (hermes.home / ".env").write_text(f"TAVILY_API_KEY={KEY}\n")
        (hermes.home / ".env").chmod(0o600)
        yield server


def test_group_alone_prints_its_help(hermes: Hermes) -> None:
    done = hermes("web")
    assert (done.returncode, done.stderr) == (0, "")
    assert "search" in done.stdout
    assert "extract" in done.stdout


@pytest.mark.usefixtures("tavily")
class TestSearch:
    def test_results_are_printed(self, hermes: Hermes) -> None:
        done = hermes("web", "search", "write-ahead", "log")
        assert done.returncode == 0
        assert done.stdout == (
            "Write-Ahead Logging\nhttps://www.sqlite.org/wal.html\nThe log file.\n\n(no title)\nhttps://example.com/\n"
        )
        assert done.stderr == "2 results from tavily\n"

    def test_json_has_the_results(self, hermes: Hermes) -> None:
        found = hermes.json("web", "search", "log", "--limit", "1")
        item = {"url": RESULTS[0]["url"], "title": "Write-Ahead Logging", "snippet": "The log file."}
        about = {"schema": "hermes.web_search/1", "backend": "tavily", "query": "log"}
        assert found == {**about, "items": [item], "total": 1, "next": None}

    @pytest.mark.parametrize("args", [(), ("--limit", "0", "x"), ("--limit", "21", "x"), ("--backend", "bing", "x")])
    def test_wrong_arguments_are_a_usage_error(self, hermes: Hermes, args: tuple[str, ...]) -> None:
        assert hermes("web", "search", *args).returncode == 2

    def test_backend_of_the_option_is_not_replaced(self, hermes: Hermes, tavily: Server) -> None:
        done = hermes("web", "search", "x", "--backend", "parallel")
        assert done.returncode == 1
        assert "the web backend is parallel, but PARALLEL_API_KEY is not set" in done.stderr
        assert tavily.connections == 0


@pytest.mark.usefixtures("tavily")
class TestExtract:
    def test_page_is_printed_without_escapes(self, hermes: Hermes) -> None:
        done = hermes("web", "extract", PAGE)
        assert (done.returncode, done.stdout) == (0, "A page\n\none\ntwo\n")
        assert done.stderr == f"{PAGE}, read by tavily\n"

    def test_json_has_the_page(self, hermes: Hermes) -> None:
        page = {"backend": "tavily", "url": PAGE, "title": "A page", "text": "one\ntwo", "is_truncated": False}
        assert hermes.json("web", "extract", PAGE) == {"schema": "hermes.web_page/1", **page}

    @pytest.mark.parametrize(
        "url",
        ["http://127.0.0.1/", "http://localhost/", "http://2130706433/", "file:///etc/passwd", f"http://8.8.8.8/{KEY}"],
    )
    def test_refused_address_is_an_error_and_reaches_no_server(self, hermes: Hermes, tavily: Server, url: str) -> None:
        for backend in ("tavily", "direct"):
            done = hermes("web", "extract", url, "--backend", backend, "--json")
            assert (done.returncode, done.stdout) == (1, "")
            assert json.loads(done.stderr)["error"]["code"] == "unsafe_url"
        assert tavily.connections == 0


def test_refused_key_is_an_error_without_the_key(hermes: Hermes) -> None:
    with Server(respond(f'{{"detail": "bad {KEY}"}}', 401)) as server:
        done = hermes("web", "search", "x", FIRECRAWL_API_URL=server.url, FIRECRAWL_API_KEY=KEY)
    assert done.returncode == 1
    assert "does not accept the key in FIRECRAWL_API_KEY" in done.stderr
    assert KEY not in done.stderr


def test_search_without_a_key_lists_the_keys(hermes: Hermes) -> None:
    done = hermes("web", "search", "x")
    assert (done.returncode, done.stdout) == (1, "")
    assert "set one of FIRECRAWL_API_KEY, PARALLEL_API_KEY, TAVILY_API_KEY or FIRECRAWL_API_URL" in done.stderr


def test_proxy_of_the_environment_is_not_used(hermes: Hermes) -> None:
    with Server(respond("no")) as proxy, Server(respond_json({"success": True, "data": {"web": []}})) as server:
        done = hermes("web", "search", "x", FIRECRAWL_API_URL=server.url, HTTP_PROXY=proxy.url, http_proxy=proxy.url)
    assert done.returncode == 0, done.stderr
    assert (proxy.connections, server.connections) == (0, 1)
