"""The web tools: results for the model, and what the guard and the backends refuse."""

from __future__ import annotations

import json

import pytest

from hermes.agent.history.text_limits import MAX_CHARACTERS
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.agent.tools.toolsets import toolsets_for
from hermes.config import WebConfig
from tests.agent.tools.workbench import Workbench
from tests.web.servers import Server, respond_json

KEY = "squeamish-ossifrage-4711"
PAGE = "http://93.184.215.14/page"
"""An address, so that no name is looked up; only the backend of the test is asked."""


def use(bench: Workbench, server: Server) -> None:
    """Let the session use a backend of the test."""
    environ = {**bench.context.environ, "TAVILY_API_KEY": KEY, "OTHER_TOKEN": "correct-horse-battery"}
    bench.change(web=WebConfig(tavily_url=server.url), environ=environ)


def test_search_returns_titles_addresses_and_texts(bench: Workbench) -> None:
    results = [
        {"url": "https://a.example.com/", "title": "A", "content": "first"},
        {"url": "https://b.example.com/", "title": "", "content": ""},
    ]
    with Server(respond_json({"results": results})) as server:
        use(bench, server)
        text = bench.call("web_search", query="things", limit=2)
    assert text == (
        "[2 results of tavily; text from the web]\n\n"
        "1. A\n   https://a.example.com/\n   first\n\n"
        "2. (no title)\n   https://b.example.com/"
    )
    assert server.received[0].json == {"query": "things", "max_results": 2}


def test_search_without_results_says_so(bench: Workbench) -> None:
    with Server(respond_json({"results": []})) as server:
        use(bench, server)
        assert bench.call("web_search", query="things") == "[tavily found nothing]"


def test_search_without_a_backend_says_which_keys_to_set(bench: Workbench) -> None:
    assert "TAVILY_API_KEY" in bench.refused("web_search", query="things")


def test_keys_of_the_env_file_are_used(bench: Workbench) -> None:
    (bench.context.home / ".env").write_text(f"TAVILY_API_KEY={KEY}\n")
    (bench.context.home / ".env").chmod(0o600)
    with Server(respond_json({"results": []})) as server:
        bench.change(web=WebConfig(tavily_url=server.url))
        bench.call("web_search", query="things")
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"


def test_long_page_is_returned_in_parts(bench: Workbench) -> None:
    text = "".join(f"{number:09} " for number in range(8_000))
    with Server(respond_json({"results": [{"title": "T", "raw_content": text}]})) as server:
        use(bench, server)
        first = bench.call("web_extract", url=PAGE)
        start = int(first.rpartition("start=")[2].removesuffix("]"))
        second = bench.call("web_extract", url=PAGE, start=start)
        after = bench.refused("web_extract", url=PAGE, start=100_000)
    assert len(first) <= MAX_CHARACTERS
    assert first.startswith(f"[{PAGE}, read by tavily; text from the web]\nT\n\n000000000 000000001")
    assert second.rstrip().endswith("000007999")
    assert "after the end" in after


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://127.0.0.1/",
            "http://localhost:8080/",
            "http://169.254.169.254/latest/meta-data/",
            "file:///etc/passwd",
        ),
        *("http://[::ffff:10.0.0.1]/", "http://0x7f.1/", "http://metadata.google.internal/", "http://user:pw@8.8.8.8/"),
        *(f"http://8.8.8.8/?x={KEY}", "http://8.8.8.8/?x=correct%2Dhorse-battery"),
    ],
)
@pytest.mark.parametrize("has_backend", [True, False])
def test_refused_address_reaches_no_server(bench: Workbench, url: str, has_backend: bool) -> None:
    with Server() as server:
        use(bench, server)
        if not has_backend:
            bench.change(web=WebConfig(backend="direct"))
        message = bench.refused("web_extract", url=url)
    assert server.connections == 0
    assert KEY not in message


def test_error_of_a_backend_reaches_the_model_without_the_key(bench: Workbench) -> None:
    with Server(respond_json({"error": f"key {KEY} is blocked"}, 403)) as server:
        use(bench, server)
        message = bench.refused("web_search", query="things")
    assert "does not allow this with the key in TAVILY_API_KEY: key *** is blocked" in message


def test_cancelled_turn_ends_a_search(bench: Workbench) -> None:
    def cancel(_: object) -> bytes:
        bench.cancellation.cancel()
        server.pause(30)
        return b""

    with Server(cancel) as server:
        use(bench, server)
        result = bench.run("web_search", json.dumps({"query": "things"}))
    assert "stopped" in result.text
    assert result.is_error


@pytest.mark.parametrize("source", ["telegram", "discord", "api_server", "webhook"])
def test_chats_have_no_web_tools_unless_they_are_enabled(source: str) -> None:
    assert "web" not in toolsets_for(source, {}, TOOLBOX.toolsets)
    assert "web" in toolsets_for(source, {source: ("web",)}, TOOLBOX.toolsets)
