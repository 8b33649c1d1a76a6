"""Reading a page: the connection goes to the checked address, and every redirect is checked."""

from __future__ import annotations

import pytest

from hermes.errors import ConfigError, UnsafeUrl, WebGarbled, WebUnavailable
from hermes.web.exchange import Network
from hermes.web.fetch import MAX_REDIRECTS, Fetcher, fetch_text
from hermes.web.guard import Guard
from tests.web.servers import OTHER_PUBLIC, PUBLIC, Names, Server, TestNetwork, redirect, respond


def test_page_is_read_as_text() -> None:
    with Server(respond("<title>A page</title><p>Hello &amp; goodbye</p><script>no()</script>")) as server:
        page = TestNetwork(server).fetcher.fetch_text("http://Example.com./a?b=c#d")
    assert (page.url, page.status, page.title) == ("http://example.com/a?b=c", 200, "A page")
    assert (page.text, page.is_truncated) == ("Hello & goodbye", False)
    (request,) = server.received
    assert (request.method, request.target, request.headers["host"]) == ("GET", "/a?b=c", "example.com")


def test_request_carries_no_credentials_and_no_cookies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "squeamish-ossifrage")
    with Server(respond("moved", 302, Location="/b", Set_Cookie="session=1"), respond("x")) as server:
        TestNetwork(server).fetcher.fetch_text("http://example.com/")
    assert len(server.received) == 2
    for request in server.received:
        assert request.headers.keys() == {"host", "accept", "accept-encoding", "user-agent", "connection"}


def test_status_of_an_error_page_is_returned() -> None:
    with Server(respond("<p>gone</p>", 404)) as server:
        page = TestNetwork(server).fetcher.fetch_text("http://example.com/")
    assert (page.status, page.text) == (404, "gone")


class TestPinning:
    def test_name_that_changes_its_address_is_looked_up_once(self) -> None:
        names = Names({"example.com": [[PUBLIC], ["127.0.0.1"]]})
        with Server(respond("hello")) as server:
            network = TestNetwork(server, names)
            assert network.fetcher.fetch_text("http://example.com/").text == "hello"
        assert names.asked == ["example.com"]
        assert network.dialled == [(PUBLIC, 80)]

    def test_name_that_changes_its_address_before_a_redirect_is_refused(self) -> None:
        names = Names({"example.com": [[PUBLIC], ["127.0.0.1"]]})
        with Server(redirect("/next"), respond("secret")) as server:
            network = TestNetwork(server, names)
            with pytest.raises(UnsafeUrl, match="loopback"):
                network.fetcher.fetch_text("http://example.com/")
        assert network.dialled == [(PUBLIC, 80)]
        assert server.connections == 1

    def test_no_connection_is_made_to_a_refused_address(self) -> None:
        with Server() as server:
            for host in ("127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "127.1"):
                with pytest.raises(UnsafeUrl):
                    Fetcher(Guard(extra_ports=[server.port])).fetch_text(f"http://{host}:{server.port}/")
        assert server.connections == 0

    def test_plain_function_has_the_same_guard(self) -> None:
        with pytest.raises(UnsafeUrl):
            fetch_text("http://169.254.169.254/latest/meta-data/", limit_bytes=1000, timeout_s=5)

    def test_next_address_is_tried_if_the_first_refuses_connections(self) -> None:
        with Server(respond("hello")) as server:
            network = TestNetwork(server, Names({"example.com": [[PUBLIC, OTHER_PUBLIC]]}))
            with Server() as closed:
                pass

            def dial(address: str, port: int) -> tuple[str, int]:
                network.dial(address, port)
                return "127.0.0.1", closed.port if address == PUBLIC else server.port

            fetcher = Fetcher(Guard(resolve=network.names), Network(), dial=dial)
            assert fetcher.fetch_text("http://example.com/").text == "hello"
        assert network.dialled == [(PUBLIC, 80), (OTHER_PUBLIC, 80)]

    def test_server_that_cannot_be_reached_is_named(self) -> None:
        with Server() as server:
            pass
        fetcher = Fetcher(Guard(resolve=Names()), dial=lambda *_: ("127.0.0.1", server.port))
        with pytest.raises(WebUnavailable, match=r"no connection to example\.com: Connection refused"):
            fetcher.fetch_text("http://example.com/")

    def test_hooks_of_tests_are_arguments_and_not_variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("HERMES_ALLOW_PRIVATE_URLS", "ALLOW_PRIVATE_URLS", "HERMES_TEST", "HERMES_WEB_ALLOW_PRIVATE"):
            monkeypatch.setenv(name, "true")
        with pytest.raises(UnsafeUrl, match="loopback"):
            fetch_text("http://127.0.0.1/")


class TestRedirects:
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_redirect_is_followed_with_a_new_look_up(self, status: int) -> None:
        with Server(redirect("http://other.example.com/b", status), respond("there")) as server:
            network = TestNetwork(server)
            page = network.fetcher.fetch_text("http://example.com/a")
        assert (page.url, page.text) == ("http://other.example.com/b", "there")
        assert network.names.asked == ["example.com", "other.example.com"]
        assert [request.headers["host"] for request in server.received] == ["example.com", "other.example.com"]

    @pytest.mark.parametrize(
        ("location", "url"),
        [
            ("/x", "http://example.com/x"),
            ("x?y", "http://example.com/a/x?y"),
            ("?y", "http://example.com/a/b?y"),
            ("../x", "http://example.com/x"),
            ("//other.example.com/x", "http://other.example.com/x"),
            ("///127.0.0.1/x", "http://example.com/127.0.0.1/x"),
            ("/Müller", "http://example.com/M%C3%BCller"),
        ],
    )
    def test_relative_redirect_is_followed(self, location: str, url: str) -> None:
        with Server(redirect(location), respond("there")) as server:
            assert TestNetwork(server).fetcher.fetch_text("http://example.com/a/b").url == url

    @pytest.mark.parametrize(
        "location",
        [
            "http://127.0.0.1/",
            "http://localhost/",
            "http://169.254.169.254/latest/meta-data/",
            "http://metadata.google.internal/",
            "http://[::ffff:10.0.0.1]/",
            "http://2130706433/",
            "http://0x7f.1/",
            "//127.0.0.1/",
            "file:///etc/passwd",
            "ftp://example.com/",
            "gopher://127.0.0.1:6379/_x",
            "http://user:password@example.com/",
            "http://example.com:6379/",
            "\\\\127.0.0.1\\x",
            "http://example.com\\@127.0.0.1/",
            "http://private.example.com/",
            "http://exa\tmple.com/",
            "http://example.com/?token=abcdefgh12345678",
            "http://[::1/",
        ],
    )
    def test_redirect_to_a_refused_address_is_not_followed(self, location: str) -> None:
        names = Names({"private.example.com": [["10.0.0.7"]]})
        with Server(redirect(location), respond("secret")) as server:
            network = TestNetwork(server, names)
            with pytest.raises(UnsafeUrl):
                network.fetcher.fetch_text("http://example.com/")
        assert server.connections == 1

    def test_endless_redirects_end(self) -> None:
        with Server(redirect("/again")) as server, pytest.raises(WebGarbled, match="redirects more than 5 times"):
            TestNetwork(server).fetcher.fetch_text("http://example.com/")
        assert len(server.received) == MAX_REDIRECTS + 1

    def test_five_redirects_are_followed(self) -> None:
        with Server(*[redirect(f"/{number}") for number in range(MAX_REDIRECTS)], respond("there")) as server:
            assert TestNetwork(server).fetcher.fetch_text("http://example.com/").url == "http://example.com/4"


class TestProxies:
    def test_proxy_of_the_environment_is_not_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with Server(respond("from the proxy")) as proxy, Server(respond("direct")) as server:
            for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, proxy.url)
            assert TestNetwork(server).fetcher.fetch_text("http://example.com/").text == "direct"
        assert proxy.connections == 0

    def test_configured_proxy_gets_the_checked_address_instead_of_the_name(self) -> None:
        with Server(respond("from the proxy")) as proxy:
            fetcher = Fetcher(Guard(resolve=Names()), Network(proxy=proxy.url))
            assert fetcher.fetch_text("http://example.com/a").text == "from the proxy"
        (request,) = proxy.received
        assert request.target == f"http://{PUBLIC}:80/a"
        assert request.headers["host"] == "example.com"

    def test_password_of_the_proxy_goes_to_the_proxy_only(self) -> None:
        with Server(respond("from the proxy")) as proxy:
            address = proxy.url.replace("http://", "http://ada:p%40ss@")
            Fetcher(Guard(resolve=Names()), Network(proxy=address)).fetch_text("http://example.com/a")
        assert proxy.received[0].headers["proxy-authorization"] == "Basic YWRhOnBAc3M="
        assert "p%40ss" not in repr(Network(proxy=address))

    @pytest.mark.parametrize(
        "proxy", ["nonsense", "socks5://proxy:1", "http://", "ftp://ada:hunter2@proxy", "http://[::1"]
    )
    def test_unusable_proxy_is_an_error_that_does_not_quote_it(self, proxy: str) -> None:
        with pytest.raises(ConfigError, match=r"web\.proxy cannot be used") as caught:
            Fetcher(Guard(resolve=Names()), Network(proxy=proxy)).fetch_text("http://example.com/a")
        assert "hunter2" not in str(caught.value)

    def test_configured_proxy_does_not_open_private_addresses(self) -> None:
        with Server(respond("from the proxy")) as proxy:
            fetcher = Fetcher(Guard(resolve=Names({"example.com": [["10.0.0.1"]]})), Network(proxy=proxy.url))
            with pytest.raises(UnsafeUrl):
                fetcher.fetch_text("http://example.com/a")
        assert proxy.connections == 0
