"""Reading a page of a hostile server ends: in size, in time, and when the user cancels."""

from __future__ import annotations

import gzip
import threading
import zlib
from collections.abc import Iterator

import pytest

from hermes.agent.models.model import Cancellation
from hermes.errors import WebError, WebGarbled, WebTimeout, WebUnavailable
from hermes.web.fetch import Fetcher
from hermes.web.guard import Guard
from tests.web.servers import PUBLIC, Received, Server, TestNetwork, respond

SHORT_S = 0.5
LONG_S = 30.0
URL = "http://example.com/"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


def fetch(server: Server, limit_bytes: int = 100_000, timeout_s: float = LONG_S) -> tuple[str, bool]:
    page = TestNetwork(server).fetcher.fetch_text(URL, limit_bytes=limit_bytes, timeout_s=timeout_s)
    return page.text, page.is_truncated


def endless(_: Received) -> Iterator[bytes]:
    yield HEAD + b"\r\n"
    while True:
        yield b"a" * 65_536


def endless_chunks(_: Received) -> Iterator[bytes]:
    yield HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    while True:
        yield b"1000\r\n" + b"a" * 4096 + b"\r\n"


def endless_headers(_: Received) -> Iterator[bytes]:
    yield HEAD
    while True:
        yield b"X-Filler: " + b"a" * 4096 + b"\r\n"


def endless_hints(_: Received) -> Iterator[bytes]:
    while True:
        yield b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100


class TestSize:
    def test_page_of_exactly_the_limit_is_complete(self) -> None:
        with Server(respond("a" * 1000, content_type="text/plain")) as server:
            assert fetch(server, 1000) == ("a" * 1000, False)

    def test_longer_page_is_cut_at_the_limit(self) -> None:
        with Server(respond("a" * 1001, content_type="text/plain")) as server:
            assert fetch(server, 1000) == ("a" * 1000, True)

    @pytest.mark.parametrize("reply", [endless, endless_chunks])
    def test_endless_page_is_cut_and_the_connection_closed(self, reply: object) -> None:
        with Server(reply) as server:  # type: ignore[arg-type]
            text, is_truncated = fetch(server)
            assert (len(text), is_truncated) == (100_000, True)
            assert server.hung_up.wait(LONG_S)

    @pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate"])
    def test_compressed_page_is_read(self, encoding: str) -> None:
        data = b"hello " * 1000
        packed = gzip.compress(data) if "gzip" in encoding else zlib.compress(data)
        with Server(respond(packed, content_type="text/plain", Content_Encoding=encoding)) as server:
            assert fetch(server) == (data.decode().strip(), False)

    def test_deflate_without_its_header_is_read(self) -> None:
        packed = zlib.compressobj(wbits=-15)
        data = packed.compress(b"hello") + packed.flush()
        with Server(respond(data, content_type="text/plain", Content_Encoding="deflate")) as server:
            assert fetch(server) == ("hello", False)

    def test_several_compressed_parts_and_padding_are_read(self) -> None:
        data = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 64
        with Server(respond(data, content_type="text/plain", Content_Encoding="gzip")) as server:
            assert fetch(server) == ("one two", False)

    @pytest.mark.parametrize("encoding", ["gzip", "deflate"])
    def test_compression_bomb_is_cut_at_the_limit(self, encoding: str) -> None:
        zeros = b"a" * 200_000_000
        packed = gzip.compress(zeros) if encoding == "gzip" else zlib.compress(zeros)
        with Server(respond(packed, content_type="text/plain", Content_Encoding=encoding)) as server:
            text, is_truncated = fetch(server, 300_000)
        assert (len(text), is_truncated) == (300_000, True)

    def test_bomb_of_many_empty_parts_is_cut(self) -> None:
        empty = gzip.compress(b"") * 20_000
        with Server(respond(empty, content_type="text/plain", Content_Encoding="gzip")) as server:
            assert fetch(server) == ("", True)

    @pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "identity, gzip", "nonsense"])
    def test_compression_that_was_not_requested_is_refused(self, encoding: str) -> None:
        with Server(respond(b"x", Content_Encoding=encoding)) as server, pytest.raises(WebGarbled, match="requested"):
            fetch(server)

    def test_damaged_compression_is_refused(self) -> None:
        with Server(respond(b"no gzip", Content_Encoding="gzip")) as server, pytest.raises(WebGarbled, match="damaged"):
            fetch(server)

    def test_compressed_page_that_ends_early_is_marked(self) -> None:
        packed = gzip.compress(b"hello")[:-8]
        with Server(respond(packed, content_type="text/plain", Content_Encoding="gzip")) as server:
            assert fetch(server) == ("hello", True)


class TestLies:
    def test_server_that_promises_more_than_it_sends_is_an_error(self) -> None:
        with Server(respond("hello", Content_Length="5000")) as server, pytest.raises(WebUnavailable, match="broke"):
            fetch(server)

    def test_bytes_after_the_promised_length_are_not_read(self) -> None:
        with Server(respond("hello and more", content_type="text/plain", Content_Length="5")) as server:
            assert fetch(server) == ("hello", False)

    @pytest.mark.parametrize("length", ["-1", "nonsense", "5, 6", "99999999999999999999999"])
    def test_impossible_length_is_an_error(self, length: str) -> None:
        with Server(respond("hello", Content_Length=length)) as server, pytest.raises(WebError):
            fetch(server)

    @pytest.mark.parametrize(
        "reply",
        [
            b"",
            b"\r\n\r\n",
            b"nonsense\r\n\r\n",
            b"SSH-2.0-OpenSSH_9.6\r\n",
            b"+PONG\r\n",
            b"HTTP/1.1 abc\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nNo colon here\r\n\r\n",
            b"\x15\x03\x01\x00\x02\x02\x46",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\nzzz\r\nhello\r\n0\r\n\r\n",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffffff\r\nhello",
        ],
    )
    def test_response_that_is_not_http_is_an_error(self, reply: bytes) -> None:
        with Server(reply) as server, pytest.raises(WebError):
            fetch(server, timeout_s=5.0)

    def test_endless_headers_are_an_error(self) -> None:
        with Server(endless_headers) as server, pytest.raises(WebError):
            fetch(server)


class TestTime:
    def check(self, server: Server) -> None:
        with pytest.raises(WebTimeout):
            fetch(server, timeout_s=SHORT_S)

    def test_silent_server_ends_at_the_limit(self) -> None:
        def silence(_: Received) -> Iterator[bytes]:
            server.pause(LONG_S)
            yield b""

        with Server(silence) as server:
            self.check(server)

    @pytest.mark.parametrize("start", [b"", HEAD, HEAD + b"\r\n", HEAD + b"Transfer-Encoding: chunked\r\n\r\n"])
    def test_server_that_sends_one_byte_now_and_then_ends_at_the_limit(self, start: bytes) -> None:
        def drip(_: Received) -> Iterator[bytes]:
            yield start
            while True:
                server.pause(0.02)
                yield b"a"

        with Server(drip) as server:
            self.check(server)
            assert server.hung_up.wait(LONG_S)

    def test_endless_early_responses_end_at_the_limit(self) -> None:
        with Server(endless_hints) as server:
            self.check(server)
            assert server.hung_up.wait(LONG_S)

    def test_redirects_share_one_limit(self) -> None:
        def slow(_: Received) -> bytes:
            server.pause(SHORT_S / 3)
            return respond("moved", 302, Location="/next")

        with Server(slow) as server:
            self.check(server)

    def test_slow_name_server_ends_at_the_limit(self) -> None:
        done = threading.Event()

        def slowly(_: str) -> list[str]:
            done.wait(LONG_S)
            return [PUBLIC]

        try:
            with pytest.raises(WebTimeout):
                Fetcher(Guard(resolve=slowly)).fetch_text(URL, timeout_s=SHORT_S)
        finally:
            done.set()

    def test_cancelled_call_ends_at_once_and_closes_the_connection(self) -> None:
        cancellation = Cancellation()

        def never(_: Received) -> Iterator[bytes]:
            yield HEAD
            cancellation.cancel()
            while True:
                server.pause(0.02)
                yield b"a"

        with Server(never) as server:
            with pytest.raises(WebError, match="stopped"):
                TestNetwork(server).fetcher.fetch_text(URL, timeout_s=LONG_S, cancellation=cancellation)
            assert server.hung_up.wait(LONG_S)

    def test_call_that_was_cancelled_before_is_refused(self) -> None:
        cancellation = Cancellation()
        cancellation.cancel()
        with Server() as server, pytest.raises(WebError, match="stopped"):
            TestNetwork(server).fetcher.fetch_text(URL, cancellation=cancellation)
