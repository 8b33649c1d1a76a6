"""The HTTP server: paths that come and go, limits, and errors that show nothing of the program."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from hermes.errors import ConfigError
from hermes.platforms.base.http import HttpRequest, HttpResponse
from hermes.platforms.http.server import HttpServer
from tests.platforms.local_gateway import run

ERROR_KEYS = {"message", "type", "param", "code"}


async def echo(request: HttpRequest) -> HttpResponse:
    """Return the body, and the query as a header."""
    return HttpResponse(200, request.body, {"X-Query": json.dumps(dict(request.query))})


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[tuple[HttpServer, httpx.AsyncClient]]:
    """A server on a free port, and a client of it."""
    server = HttpServer(**settings)
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=server.url, timeout=30, trust_env=False) as client:
            yield server, client
    finally:
        await server.stop()


def assert_error(response: httpx.Response, status: int, code: str) -> None:
    """Check that a response is an error as clients read it, and names no server."""
    assert response.status_code == status, response.text
    assert set(response.json()["error"]) == ERROR_KEYS
    assert response.json()["error"]["code"] == code
    assert "server" not in response.headers


def test_a_path_is_served_from_the_moment_it_is_added_until_it_is_removed() -> None:
    async def test() -> None:
        async with serving() as (server, client):
            assert_error(await client.post("/webhooks/x", content=b"1"), 404, "not_found")
            server.add("POST", "/webhooks/x", echo)
            response = await client.post("/webhooks/x?a=1", content=b"hello")
            assert (response.status_code, response.content) == (200, b"hello")
            assert response.headers["x-query"] == '{"a": "1"}'
            assert "server" not in response.headers
            assert_error(await client.get("/webhooks/x"), 405, "method_not_allowed")
            server.remove("POST", "/webhooks/x")
            server.remove("POST", "/webhooks/x")
            assert_error(await client.post("/webhooks/x"), 404, "not_found")

    run(test())


def test_a_body_that_is_too_large_is_refused_with_and_without_its_length() -> None:
    async def test() -> None:
        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b"x" * 100

        async with serving(max_body_bytes=1000) as (server, client):
            server.add("POST", "/in", echo)
            assert (await client.post("/in", content=b"x" * 1000)).status_code == 200
            assert_error(await client.post("/in", content=b"x" * 1001), 413, "body_too_large")
            assert_error(await client.post("/in", content=chunks()), 413, "body_too_large")

    run(test())


def test_bodies_that_are_too_large_together_are_refused_until_some_are_done() -> None:
    async def test() -> None:
        async with serving(max_body_bytes=1000, max_held_bytes=2000) as (server, client):
            begun: asyncio.Queue[None] = asyncio.Queue()

            async def slow(request: HttpRequest) -> HttpResponse:
                begun.put_nowait(None)
                await done.wait()
                return await echo(request)

            done = asyncio.Event()
            server.add("POST", "/in", echo)
            server.add("POST", "/slow", slow)
            waiting = [asyncio.create_task(client.post("/slow", content=b"x" * 900)) for _ in range(2)]
            for _ in waiting:
                await begun.get()
            refused = await client.post("/in", content=b"x" * 900)
            assert_error(refused, 503, "busy")
            assert refused.headers["retry-after"] == "2"
            assert (await client.post("/in", content=b"x" * 100)).status_code == 200
            done.set()
            assert [each.status_code for each in await asyncio.gather(*waiting)] == [200, 200]
            assert (await client.post("/in", content=b"x" * 900)).status_code == 200

    run(test())


def test_a_handler_that_fails_tells_the_client_nothing_about_the_program() -> None:
    async def broken(_: HttpRequest) -> HttpResponse:
        raise RuntimeError("secret detail")

    async def test() -> None:
        async with serving() as (server, client):
            server.add("GET", "/broken", broken)
            response = await client.get("/broken")
            assert_error(response, 500, "error")
            assert "secret" not in response.text

    run(test())


def test_clients_that_send_their_head_or_body_too_slowly_are_disconnected() -> None:
    async def test() -> None:
        async with serving(head_s=0.2, body_s=0.2) as (server, client):
            server.add("POST", "/in", echo)
            for sent in (b"POST /in HT", b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(sent)
                try:
                    answer = await reader.read()
                except ConnectionResetError:
                    answer = b""
                assert answer == b"" or b" 408 " in answer.split(b"\r\n")[0]
                writer.close()
            assert (await client.post("/in", content=b"1")).status_code == 200

    run(test())


def test_too_many_connections_and_too_long_heads_are_refused() -> None:
    async def test() -> None:
        async with serving(most_connections=2) as (server, client):
            server.add("POST", "/in", echo)
            response = await client.post("/in", headers={"X-Long": "x" * 100_000})
            assert_error(response, 431, "head_too_large")
            others = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
            with pytest.raises(httpx.TransportError):
                async with httpx.AsyncClient(base_url=server.url, trust_env=False) as late:
                    await late.post("/in")
            for _, writer in others:
                writer.close()

    run(test())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_a_public_address_needs_a_key(host: str) -> None:
    with pytest.raises(ConfigError) as caught:
        HttpServer(host, 1)
    assert "api_server.keys" in caught.value.hint
    assert HttpServer(host, 1, has_keys=True).port == 1


def test_a_port_that_is_taken_is_named() -> None:
    async def test() -> None:
        async with serving() as (server, _):
            with pytest.raises(ConfigError, match=str(server.port)):
                await HttpServer(port=server.port).start()

    run(test())
