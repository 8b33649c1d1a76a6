"""TLS to a pinned address: the certificate must be that of the name."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.errors import WebError, WebUnavailable
from hermes.web.exchange import Network
from hermes.web.fetch import Fetcher
from hermes.web.guard import Guard
from tests.support.certificates import Certificates, certificates
from tests.web.servers import PUBLIC, Names, Server, TestNetwork, redirect, respond


@pytest.fixture(scope="module")
def made() -> Iterator[Certificates]:
    with certificates() as found:
        yield found


@pytest.fixture(scope="module")
def authority(made: Certificates) -> Path:
    return made.authority("test-authority")


def serving(made: Certificates, authority: Path, names: str) -> tuple[ssl.SSLContext, list[str | None]]:
    """The context of a server with a certificate for names, and the names that clients asked for."""
    certificate, key = made.issue(authority, names.replace(":", "-").replace(",", "-"), names=names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    asked: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    return context, asked


def trusting(authority: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority))


def test_pinned_connection_asks_for_the_name_and_checks_its_certificate(made: Certificates, authority: Path) -> None:
    tls, asked = serving(made, authority, "DNS:example.com")
    with Server(respond("hello"), tls=tls) as server:
        network = TestNetwork(server, trusted=trusting(authority))
        assert network.fetcher.fetch_text("https://example.com/").text == "hello"
    assert asked == ["example.com"]
    assert network.dialled == [(PUBLIC, 443)]
    assert server.received[0].headers["host"] == "example.com"


def test_redirect_to_another_name_needs_a_certificate_of_that_name(made: Certificates, authority: Path) -> None:
    tls, asked = serving(made, authority, "DNS:example.com")
    refused = pytest.raises(WebUnavailable, match=r"certificate of other\.example\.com is not trusted")
    with Server(redirect("https://other.example.com/"), respond("secret"), tls=tls) as server, refused:
        TestNetwork(server, trusted=trusting(authority)).fetcher.fetch_text("https://example.com/")
    assert asked == ["example.com", "other.example.com"]


@pytest.mark.parametrize("names", ["DNS:other.example.com", f"IP:{PUBLIC}", "IP:127.0.0.1"])
def test_certificate_of_another_name_is_refused(made: Certificates, authority: Path, names: str) -> None:
    tls, _ = serving(made, authority, names)
    with Server(respond("hello"), tls=tls) as server, pytest.raises(WebUnavailable, match="not trusted"):
        TestNetwork(server, trusted=trusting(authority)).fetcher.fetch_text("https://example.com/")


def test_certificate_of_an_unknown_authority_is_refused(made: Certificates, authority: Path) -> None:
    tls, _ = serving(made, authority, "DNS:example.com")
    with Server(respond("hello"), tls=tls) as server, pytest.raises(WebUnavailable, match="not trusted"):
        TestNetwork(server).fetcher.fetch_text("https://example.com/")


def test_server_without_tls_is_an_error() -> None:
    with Server(respond("hello")) as server, pytest.raises(WebError):
        TestNetwork(server).fetcher.fetch_text("https://example.com/", timeout_s=1)


def test_configured_proxy_connects_to_the_checked_address_and_the_name_is_verified(
    made: Certificates, authority: Path
) -> None:
    tls, asked = serving(made, authority, "DNS:example.com")
    with Server(respond("hello"), tls=tls) as server, socket.create_server(("127.0.0.1", 0)) as listening:
        requests: list[bytes] = []
        tunnel = threading.Thread(target=tunnel_one, args=(listening, server.port, requests), daemon=True)
        tunnel.start()
        network = Network(proxy=f"http://127.0.0.1:{listening.getsockname()[1]}", trusted=trusting(authority))
        fetcher = Fetcher(Guard(resolve=Names()), network)
        assert fetcher.fetch_text("https://example.com/").text == "hello"
        tunnel.join(10)
    assert requests[0].startswith(f"CONNECT {PUBLIC}:443 ".encode())
    assert asked == ["example.com"]


def tunnel_one(listening: socket.socket, port: int, requests: list[bytes]) -> None:
    """Serve one CONNECT request, whatever its target, with a connection to a port of this machine."""
    client, _ = listening.accept()
    with client, socket.create_connection(("127.0.0.1", port)) as server:
        requests.append(client.recv(65_536))
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        ends = {client: server, server: client}
        while True:
            for ready in select.select(list(ends), [], [], 10)[0]:
                data = ready.recv(65_536)
                if not data:
                    return
                ends[ready].sendall(data)
