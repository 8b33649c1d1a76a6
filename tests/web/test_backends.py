"""Each backend over real HTTP: requests, results, and an exact error for every failure."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from hermes.config import WebConfig
from hermes.errors import (
    InvalidValue,
    UnsafeUrl,
    WebBusy,
    WebCreditSpent,
    WebError,
    WebGarbled,
    WebKeyRefused,
    WebTimeout,
    WebUnavailable,
)
from hermes.web.client import WebClient
from hermes.web.fetch import Fetcher
from hermes.web.guard import Guard
from hermes.web.results import MAX_SNIPPET, SearchResult
from tests.web.servers import Names, Received, Reply, Server, TestNetwork, redirect, respond, respond_json

KEY = "squeamish-ossifrage-4711"
PAGE = "https://example.com/page"
VARIABLES = {"firecrawl": "FIRECRAWL_API_KEY", "parallel": "PARALLEL_API_KEY", "tavily": "TAVILY_API_KEY"}


def found(backend: str, *results: tuple[str, str, str]) -> bytes:
    """What a backend sends for a search."""
    if backend == "firecrawl":
        web = [{"url": url, "title": title, "description": text} for url, title, text in results]
        return respond_json({"success": True, "data": {"web": web}})
    if backend == "parallel":
        listed = [{"url": url, "title": title, "excerpts": [text]} for url, title, text in results]
        return respond_json({"search_id": "s", "results": listed})
    return respond_json({"results": [{"url": url, "title": title, "content": text} for url, title, text in results]})


def page(backend: str, text: str, title: str = "A page") -> bytes:
    """What a backend sends for a page."""
    if backend == "firecrawl":
        return respond_json({"success": True, "data": {"markdown": text, "metadata": {"title": title}}})
    if backend == "parallel":
        return respond_json({"results": [{"url": PAGE, "title": title, "full_content": text}], "errors": []})
    return respond_json({"results": [{"url": PAGE, "title": title, "raw_content": text}], "failed_results": []})


@dataclass
class Case:
    """A backend whose endpoint is a server of the test."""

    backend: str
    server: Server

    def client(self, names: Names | None = None, **settings: Any) -> WebClient:
        config = WebConfig(**{f"{self.backend}_url": self.server.url, "backend": self.backend, **settings})
        fetcher = Fetcher(Guard(resolve=names or Names(), secrets=[KEY]))
        return WebClient(config, {VARIABLES[self.backend]: KEY}, fetcher=fetcher)


@dataclass
class Start:
    """Starts the server of a backend with a script."""

    backend: str
    servers: list[Server] = field(default_factory=list)

    def __call__(self, *script: Reply) -> Case:
        self.servers.append(Server(*script).__enter__())
        return Case(self.backend, self.servers[-1])


@pytest.fixture(params=list(VARIABLES))
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    starting = Start(request.param)
    yield starting
    for each in starting.servers:
        each.__exit__(None, None, None)


class TestSearch:
    def test_results_are_returned_in_order(self, start: Start) -> None:
        results = [("https://a.example.com/", "A", "first"), ("http://b.example.com/", "B", "second")]
        case = start(found(start.backend, *results))
        answer = case.client().search("  two\n words ")
        assert (answer.backend, answer.query) == (case.backend, "two words")
        assert answer.results == tuple(SearchResult(*each) for each in results)

    def test_nothing_found_is_no_error(self, start: Start) -> None:
        assert start(found(start.backend)).client().search("x").results == ()

    def test_results_are_bounded_and_clean(self, start: Start) -> None:
        long = ("https://a.example.com/", "T\x1b[31m\n" + "t" * 5000, "s" * 50_000)
        bad = [("javascript:alert(1)", "no", "no"), ("", "no", "no"), ("file:///etc/passwd", "no", "no")]
        case = start(found(start.backend, *bad, *[long] * 30))
        results = case.client().search("x", 4).results
        assert len(results) == 4
        assert {(len(each.title), len(each.snippet)) for each in results} == {(300, MAX_SNIPPET)}
        assert results[0].title.startswith("T t")

    def test_limit_of_the_settings_is_sent(self, start: Start) -> None:
        case = start(found(start.backend))
        case.client(max_results=7).search("x")
        case.client(max_results=7).search("x", 2)
        name = "limit" if case.backend == "firecrawl" else "max_results"
        assert [request.json[name] for request in case.server.received] == [7, 2]

    def test_key_in_a_result_is_hidden(self, start: Start) -> None:
        case = start(found(start.backend, ("https://a.example.com/", f"T {KEY}", f"x {KEY} y")))
        (result,) = case.client().search("x").results
        assert (result.title, result.snippet) == ("T ***", "x *** y")

    @pytest.mark.parametrize("query", ["", "  \n", "\x1b[31m"])
    def test_empty_query_is_refused_without_a_request(self, start: Start, query: str) -> None:
        case = start(found(start.backend))
        with pytest.raises(InvalidValue):
            case.client().search(query)
        assert case.server.connections == 0

    def test_very_long_query_is_refused(self, start: Start) -> None:
        with pytest.raises(InvalidValue, match="limit"):
            start(found(start.backend)).client().search("a" * 2000)


class TestExtract:
    def test_text_of_a_page_is_returned(self, start: Start) -> None:
        case = start(page(start.backend, "# Hello\n\x1b[31mred\n"))
        extracted = case.client().extract(PAGE)
        assert (extracted.backend, extracted.url, extracted.title) == (case.backend, PAGE, "A page")
        assert (extracted.text, extracted.is_truncated) == ("# Hello\nred", False)

    def test_long_page_is_cut_and_marked(self, start: Start) -> None:
        extracted = start(page(start.backend, "a" * 5000)).client(max_bytes=1000).extract(PAGE)
        assert (len(extracted.text), extracted.is_truncated) == (1000, True)

    @pytest.mark.parametrize(
        "url",
        [
            *("http://127.0.0.1/", "http://localhost/", "http://169.254.169.254/", "http://metadata.google.internal/"),
            *("file:///etc/passwd", "http://2130706433/", "http://[::1]/", "http://user:pw@example.com/"),
            *("http://private.example.com/", "http://example.com:6379/", f"http://example.com/?q={KEY}"),
        ],
    )
    def test_guard_refuses_before_the_backend_is_asked(self, start: Start, url: str) -> None:
        case = start(page(start.backend, "secret"))
        with pytest.raises(UnsafeUrl):
            case.client(Names({"private.example.com": [["10.0.0.1"]]})).extract(url)
        assert case.server.connections == 0

    def test_unknown_host_is_refused_before_the_backend_is_asked(self, start: Start) -> None:
        case = start(page(start.backend, "secret"))
        with pytest.raises(WebUnavailable, match="was not found"):
            case.client(Names({"example.com": [[]]})).extract(PAGE)
        assert case.server.connections == 0

    def test_backend_gets_the_normalised_address(self, start: Start) -> None:
        case = start(page(start.backend, "x"))
        case.client().extract("https://BÜCHER.de./a#b")
        (request,) = case.server.received
        assert (request.json.get("url") or request.json["urls"][0]) == "https://xn--bcher-kva.de/a"


class TestRequests:
    def test_firecrawl_gets_its_key_and_paths(self) -> None:
        with Server(found("firecrawl"), page("firecrawl", "x")) as server:
            client = Case("firecrawl", server).client()
            client.search("q", 3)
            client.extract(PAGE)
        assert [(each.method, each.target) for each in server.received] == [
            ("POST", "/v2/search"),
            ("POST", "/v2/scrape"),
        ]
        assert [each.headers["authorization"] for each in server.received] == [f"Bearer {KEY}"] * 2
        assert server.received[0].json == {"query": "q", "limit": 3}

    def test_own_firecrawl_gets_no_key_and_may_have_a_version(self) -> None:
        one = respond_json({"success": True, "data": [{"url": "https://a.example.com/", "title": "A"}]})
        with Server(one) as server:
            client = WebClient(WebConfig(), {"FIRECRAWL_API_URL": f"{server.url}/v1/"})
            assert client.search("q").results == (SearchResult("https://a.example.com/", "A", ""),)
        (request,) = server.received
        assert (request.target, "authorization" in request.headers) == ("/v1/search", False)

    @pytest.mark.parametrize("mode", ["fast", "one-shot", "agentic"])
    def test_parallel_gets_its_key_and_mode(self, mode: str) -> None:
        with Server(found("parallel"), page("parallel", "x")) as server:
            client = Case("parallel", server).client(parallel_mode=mode)
            client.search("q", 3)
            client.extract(PAGE)
        assert [each.target for each in server.received] == ["/v1beta/search", "/v1beta/extract"]
        assert [each.headers["x-api-key"] for each in server.received] == [KEY] * 2
        assert (server.received[0].json["mode"], server.received[0].json["objective"]) == (mode, "q")

    def test_tavily_gets_its_key_and_paths(self) -> None:
        with Server(found("tavily"), page("tavily", "x")) as server:
            client = Case("tavily", server).client()
            client.search("q", 3)
            client.extract(PAGE)
        assert [each.target for each in server.received] == ["/search", "/extract"]
        assert [each.headers["authorization"] for each in server.received] == [f"Bearer {KEY}"] * 2


class TestFailures:
    @pytest.mark.parametrize(
        ("status", "error", "text"),
        [
            (400, WebError, "does not accept the request (status 400): too vague"),
            (401, WebKeyRefused, "does not accept the key in"),
            (402, WebCreditSpent, "no credit left: too vague"),
            (403, WebKeyRefused, "too vague"),
            (404, WebError, "status 404"),
            (408, WebTimeout, "status 408"),
            (429, WebBusy, "rate limit"),
            (432, WebCreditSpent, "no credit left"),
            (500, WebUnavailable, "failed (status 500): too vague"),
            (503, WebUnavailable, "status 503"),
            (504, WebTimeout, "took too long"),
        ],
    )
    def test_status_becomes_an_exact_error(self, start: Start, status: int, error: type[WebError], text: str) -> None:
        case = start(respond_json({"error": "too vague"}, status))
        for call in (lambda: case.client().search("x"), lambda: case.client().extract(PAGE)):
            with pytest.raises(WebError) as caught:
                call()
            assert type(caught.value) is error
            assert text in caught.value.message
            assert case.backend in caught.value.message
        assert len(case.server.received) == 2

    @pytest.mark.parametrize(
        ("header", "seconds"), [("17", 17.0), ("0", 0.0), ("-5", 0.0), ("soon", None), ("nan", None), ("", None)]
    )
    def test_time_to_wait_is_read(self, start: Start, header: str, seconds: float | None) -> None:
        case = start(respond_json({}, 429, Retry_After=header))
        with pytest.raises(WebBusy) as caught:
            case.client().search("x")
        assert caught.value.retry_after_s == seconds
        assert caught.value.hint == ("try again later" if seconds is None else f"try again in {seconds:.0f} s")

    def test_date_to_wait_for_is_read(self, start: Start) -> None:
        case = start(respond_json({}, 429, Retry_After="Fri, 31 Dec 2100 23:59:59 GMT"))
        with pytest.raises(WebBusy) as caught:
            case.client().search("x")
        assert (caught.value.retry_after_s or 0) > 1e9

    @pytest.mark.parametrize(
        "body", [{"error": "why"}, {"detail": {"error": "why"}}, {"message": "why"}, {"error": {"message": "why"}}]
    )
    def test_reason_of_the_backend_is_quoted(self, start: Start, body: object) -> None:
        with pytest.raises(WebUnavailable, match="why"):
            start(respond_json(body, 500)).client().search("x")

    @pytest.mark.parametrize("status", [400, 401, 402, 403, 429, 500])
    def test_key_and_escapes_in_a_reason_are_not_shown(self, start: Start, status: int) -> None:
        case = start(respond_json({"error": f"bad \x1b[31mkey {KEY} for sk-abcdefghijklmnop0123456789"}, status))
        with pytest.raises(WebError) as caught:
            case.client().search("x")
        shown = f"{caught.value} {caught.value.hint}"
        assert KEY not in shown
        assert "sk-abc" not in shown
        assert "\x1b" not in shown

    @pytest.mark.parametrize(
        "reply",
        [
            respond("<html>welcome</html>"),
            respond("", content_type="application/json"),
            respond("{", content_type="application/json"),
            respond("[" * 100_000, content_type="application/json"),
            respond(b"\xff\xfe\x00", content_type="application/json"),
            respond_json([]),
            respond_json("x"),
            respond_json(None),
            respond_json({}),
            respond_json({"results": "x", "data": "x"}),
            respond_json({"results": None, "data": None}),
            respond_json({"results": {"a": 1}, "data": {"web": {"a": 1}}}),
        ],
    )
    def test_garbage_is_an_error(self, start: Start, reply: bytes) -> None:
        case = start(reply)
        for call in (lambda: case.client().search("x"), lambda: case.client().extract(PAGE)):
            with pytest.raises(WebGarbled, match=f"{case.backend} at 127.0.0.1"):
                call()

    def test_results_of_wrong_types_are_left_out(self, start: Start) -> None:
        odd = [1, None, "x", {}, {"url": 5, "title": {}, "content": []}, {"url": "https://a.example.com/", "title": 7}]
        case = start(respond_json({"success": True, "results": odd, "data": {"web": odd}}))
        assert case.client().search("x").results == (SearchResult("https://a.example.com/", "", ""),)

    def test_redirect_of_an_endpoint_is_not_followed(self, start: Start) -> None:
        with Server(respond_json({})) as other:
            case = start(redirect(f"{other.url}/elsewhere", 307))
            with pytest.raises(WebError, match="redirects"):
                case.client().search("x")
        assert other.connections == 0

    def test_silent_backend_ends_at_the_time_limit(self, start: Start) -> None:
        def silence(_: Received) -> Iterator[bytes]:
            case.server.pause(30)
            yield b""

        case = start(silence)
        with pytest.raises(WebTimeout):
            case.client(timeout_s=0.3).search("x")

    def test_endless_response_is_an_error(self, start: Start) -> None:
        def endless(_: Received) -> Iterator[bytes]:
            yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n["
            while True:
                yield b"1," * 32_768

        with pytest.raises(WebGarbled, match="too long"):
            start(endless).client(max_bytes=1000).search("x")

    def test_backend_that_is_down_is_named_and_not_replaced(self) -> None:
        with Server() as server:
            pass
        config = WebConfig(backend="tavily", tavily_url=server.url)
        with Server(found("firecrawl")) as other:
            variables = {"TAVILY_API_KEY": KEY, "FIRECRAWL_API_URL": other.url}
            with pytest.raises(WebUnavailable, match=r"no connection to 127\.0\.0\.1"):
                WebClient(config, variables).search("x")
        assert other.connections == 0

    def test_failed_page_is_an_error_with_the_reason(self, start: Start) -> None:
        failed = {
            "firecrawl": {"success": False, "error": "no such page"},
            "parallel": {
                "results": [],
                "errors": [{"url": PAGE, "content": "no such page"}],
            },
            "tavily": {"results": [], "failed_results": [{"url": PAGE, "error": "no such page"}]},
        }[start.backend]
        with pytest.raises(WebUnavailable, match="no such page"):
            start(respond_json(failed)).client().extract(PAGE)


def test_keys_and_addresses_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with Server(found("tavily")) as server:
        Case("tavily", server).client().search("x")
    assert KEY not in caplog.text


class TestDirect:
    def client(self, network: TestNetwork) -> WebClient:
        return WebClient(WebConfig(), {}, fetcher=network.fetcher)

    def test_page_is_read_without_a_backend(self) -> None:
        with Server(respond("<title>T</title><p>hello")) as server:
            extracted = self.client(TestNetwork(server)).extract(PAGE.replace("https", "http"))
        assert (extracted.backend, extracted.title, extracted.text) == ("direct", "T", "hello")

    @pytest.mark.parametrize(
        ("status", "error"), [(404, WebError), (403, WebError), (429, WebUnavailable), (503, WebUnavailable)]
    )
    def test_error_page_is_an_error(self, status: int, error: type[WebError]) -> None:
        with Server(respond("<title>Sorry</title>", status)) as server, pytest.raises(WebError) as caught:
            self.client(TestNetwork(server)).extract("http://example.com/")
        assert type(caught.value) is error
        assert f"status {status}): Sorry" in caught.value.message

    def test_limits_of_the_settings_apply(self) -> None:
        with Server(respond("a" * 5000, content_type="text/plain")) as server:
            client = WebClient(WebConfig(max_bytes=1000), {}, fetcher=TestNetwork(server).fetcher)
            extracted = client.extract("http://example.com/")
        assert (len(extracted.text), extracted.is_truncated) == (1000, True)


def test_configured_proxy_is_not_used_for_a_backend_in_a_private_network() -> None:
    with Server(respond("no")) as proxy, Server(found("tavily")) as server:
        Case("tavily", server).client(proxy=proxy.url).search("x")
    assert (proxy.connections, server.connections) == (0, 1)
