"""Requests of attackers: nothing is read, nothing fails, and nothing about the program is shown."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from hermes.gateway.upkeep.metrics import CachedFigures
from hermes.platforms.base.http import HttpRequest, HttpResponse
from hermes.platforms.http.adapter import serve_figures
from hermes.platforms.http.server import HttpServer
from hermes_state import SessionDB
from tests.platforms.http.api_gateway import KEYS, ApiGateway, serving
from tests.platforms.local_gateway import run, until
from tests.support.modelserver import ModelServer, Say

ERROR_KEYS = {"message", "type", "param", "code"}
POSTS = ("/v1/chat/completions", "/v1/responses", "/v1/conversations")
NO_OBJECTS: dict[str, bytes] = {
    "nothing that is JSON": b"messages=hi",
    "no UTF-8": b'{"input": "\xff\xfe", "messages": [{"role": "user", "content": "\xff"}], "items": "\xc0\x80"}',
    "another encoding": '{"input": "hi"}'.encode("utf-16"),
    "half a character": b'{"input": "\\ud800", "messages": "\\ud800", "items": "\\udc00"}',
    "a list": b"[]",
    "a number": b"1" * 5000,
    "not a number": b'{"input": NaN, "messages": NaN, "items": NaN}',
    "a deep list": b"[" * 90_000,
    "a deep value": b'{"input": ' + b"[" * 90_000 + b"}",
    "deep and unknown": b'{"x": ' + b'{"a":' * 30_000 + b"1" + b"}" * 30_000 + b"}",
    "many brackets": b'{"input": [' + b"[]," * 60_000 + b'[]], "messages": [[]], "items": [[]]}',
    "null": b"null",
    "a second object": b"{}{}",
}


def client_of(gateway: ApiGateway, key: str = KEYS["ann"]) -> httpx.AsyncClient:
    """A client with a key."""
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.AsyncClient(base_url=gateway.server.url, headers=headers, timeout=60, trust_env=False)


async def raw(server: HttpServer, data: bytes) -> bytes:
    """Send bytes on a connection of their own and return the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(100_000), 20)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("name", NO_OBJECTS)
def test_a_body_that_is_no_request_is_refused_in_one_sentence(home: Path, name: str) -> None:
    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                for path in POSTS:
                    response = await client.post(path, content=NO_OBJECTS[name])
                    assert response.status_code == 400, (path, response.text)
                    assert set(response.json()["error"]) == ERROR_KEYS
                    assert "Traceback" not in response.text
                assert (await client.get("/v1/sessions")).json()["data"] == []
            assert model.requests == []

    run(test())


def test_values_of_wrong_types_are_refused(home: Path) -> None:
    user = {"role": "user", "content": "hi"}
    wrong: list[Any] = [
        {},
        {"messages": []},
        {"messages": {}},
        {"messages": [user] * 2001},
        {"messages": [{"role": "tool", "content": "x"}, user]},
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "user", "content": " "}]},
        {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"role": "user", "content": "a\0b"}]},
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}] * 1001}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}]},
        {"messages": [user, {"role": "assistant", "content": "no"}]},
        {"messages": [user], "stream": "yes"},
        {"messages": [user], "stream_options": 5},
        {"messages": [user], "n": 2},
        {"messages": [user], "tools": [{"type": "function"}]},
        {"messages": [user], "response_format": {"type": "json_object"}},
        {"messages": [{"role": "user", "content": "x" * 40_000}]},
    ]

    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                for body in wrong:
                    response = await client.post("/v1/chat/completions", json=body)
                    assert response.status_code == 400, (str(body)[:200], response.text)
                fields: tuple[Any, ...] = (
                    {"previous_response_id": 5},
                    {"conversation": []},
                    {"conversation": {"id": ""}},
                )
                for more in (*fields, {"text": {"format": {"type": "json_schema"}}}, {"instructions": ["x"]}):
                    response = await client.post("/v1/responses", json={"input": "hi", **more})
                    assert response.status_code == 400, more
                for name in ("", "x" * 257, "a\x7fb"):
                    named = {"X-Hermes-Session-Id": name}
                    response = await client.post("/v1/chat/completions", json={"messages": [user]}, headers=named)
                    assert response.status_code == 400, name
                for path in (
                    "/v1/sessions?limit=0",
                    "/v1/sessions?limit=%00",
                    "/v1/sessions?after=%00%ff",
                    "/v1/sessions/search?q=",
                ):
                    assert (await client.get(path)).status_code == 400, path
                for path in (
                    "/v1/sessions/..%2fx",
                    "/v1/sessions/%00",
                    "/v1/sessions/" + "x" * 5000,
                    "/v1/x",
                    "//v1/models",
                ):
                    assert (await client.get(path)).status_code == 404, path
            assert model.requests == []

    run(test())


def test_null_and_empty_values_count_as_missing(home: Path) -> None:
    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                body = {"input": "hi", "conversation": None, "previous_response_id": None, "stream": None}
                more: Any = {
                    "tools": [],
                    "instructions": None,
                    "text": {"format": {"type": "text"}},
                    "temperature": 0.5,
                }
                response = await client.post("/v1/responses", json={**body, **more})
                assert response.json()["status"] == "completed"
                content = [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]
                said = [{"role": "assistant", "content": None}, {"role": "user", "content": content}]
                assert (await client.post("/v1/responses", json={"input": said})).status_code == 200
                assert model.requests[-1].last_text == "one\ntwo"

    run(test())


def test_only_the_right_key_opens_the_api_and_no_key_is_logged(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ann, bob = KEYS["ann"], KEYS["bob"]
    wrong = [
        "",
        ann,
        f"Basic {ann}",
        f"Bearer {ann}x",
        f"Bearer {ann[:-1]}",
        f"Bearer {bob.upper()}",
        "Bearer",
        "Bearer \xff",
    ]
    right = [f"Bearer {ann}", f"bearer {ann}", f"Bearer  {ann}"]

    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway:
                async with httpx.AsyncClient(base_url=gateway.server.url, trust_env=False) as client:
                    for text in wrong + right:
                        response = await client.get("/v1/models", headers=[(b"Authorization", text.encode("latin-1"))])
                        assert response.status_code == (200 if text in right else 401), text
                        assert ann not in response.text
                    both = [("Authorization", "Bearer x"), ("Authorization", f"Bearer {ann}")]
                    assert (await client.get("/v1/models", headers=both)).status_code == 401
                    assert (await client.get(f"/v1/models?api_key={ann}")).status_code == 401
                assert ann not in repr(vars(gateway.server)) + repr(gateway.config.api_server)

    run(test())
    written = "".join(each.read_text("utf-8", "replace") for each in home.rglob("*.log"))
    written += "".join(each.getMessage() for each in caplog.records if not each.name.startswith("http"))
    for key in KEYS.values():
        assert key not in written


def test_a_page_in_a_browser_reaches_nothing(home: Path) -> None:
    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway:
                page = {"Origin": "https://evil.example.org", "Host": "evil.example.org"}
                async with httpx.AsyncClient(base_url=gateway.server.url, headers=page, trust_env=False) as client:
                    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
                    for path in (*POSTS, "/v1/sessions", "/openapi.json"):
                        preflight = await client.options(path, headers=asked)
                        assert preflight.status_code == 405
                        simple = await client.post(path, content=b"{}", headers={"Content-Type": "text/plain"})
                        assert simple.status_code in (401, 405)
                        for response in (preflight, simple):
                            assert not [name for name in response.headers if name.startswith("access-control")]
                    shown = await client.get("/openapi.json")
                    assert shown.headers["x-content-type-options"] == "nosniff"
                    assert shown.headers["cache-control"] == "no-store"
            assert model.requests == []

    run(test())


def test_figures_without_keys_are_for_this_machine_only() -> None:
    async def read() -> Any:
        raise ConnectionError

    async def test() -> None:
        server = HttpServer()
        serve_figures(server, {}, dict, CachedFigures(read))
        await server.start()
        try:
            async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
                for host in ("evil.example.org", "evil.example.org:80", "127.0.0.1.evil.example.org", "", "[::1"):
                    response = await client.get("/metrics", headers={"Host": host})
                    assert response.status_code == 403, host
        finally:
            await server.stop()

    run(test())


@pytest.mark.parametrize(
    "data",
    [
        b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"POST /in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffffff\r\n",
        b"POST /in HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"GET /in HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /in HTTP/1.1\r\nHost: x\r\nX-A: b\x00c\r\n\r\n",
        b"GET /in HTTP/1.1\r\n\r\n",
        b"GET  /in HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_what_is_no_http_is_refused_and_disconnected(data: bytes) -> None:
    calls = []

    async def note(request: HttpRequest) -> HttpResponse:
        calls.append(request)
        return HttpResponse()

    async def test() -> None:
        server = HttpServer(head_s=0.3)
        for method in ("GET", "POST"):
            server.add(method, "/in", note)
        await server.start()
        try:
            answer = await raw(server, data)
            assert answer == b"" or answer.split()[1] in (b"400", b"501"), answer
            assert calls == []
        finally:
            await server.stop()

    run(test())


def test_a_body_with_two_lengths_is_read_as_chunks_only() -> None:
    bodies = []

    async def note(request: HttpRequest) -> HttpResponse:
        bodies.append(request.body)
        return HttpResponse()

    async def test() -> None:
        server = HttpServer(head_s=0.3)
        server.add("POST", "/in", note)
        await server.start()
        try:
            head = b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
            await raw(server, head + b"3\r\nabc\r\n0\r\n\r\n")
            assert bodies in ([], [b"abc"])
        finally:
            await server.stop()

    run(test())


def test_a_client_that_reads_nothing_is_disconnected() -> None:
    async def large(_: HttpRequest) -> HttpResponse:
        return HttpResponse(200, b"x" * 20_000_000)

    async def test() -> None:
        server = HttpServer(stall_s=0.1)
        server.add("GET", "/large", large)
        await server.start()
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1000)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert server._server is not None
            connections = server._server.server_state.connections
            await until(lambda: len(connections) == 1, "the connection")
            await until(lambda: not connections, "the end of the connection")
            writer.transport.abort()
            async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
                assert len((await client.get("/large")).content) == 20_000_000
        finally:
            await server.stop()

    run(test())


def test_paths_in_the_log_stay_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        server = HttpServer()

        async def broken(*_: Any) -> None:
            raise RuntimeError

        server.app = broken
        await server.start()
        try:
            answer = await raw(server, b"GET /a%0aWARNING%1b[31m HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert answer.split()[1] == b"500"
        finally:
            await server.stop()

    run(test())
    assert "\\nWARNING\\x1b" in caplog.text
    assert "\nWARNING\x1b" not in caplog.text


def test_what_other_programs_have_stored_can_be_shown(home: Path) -> None:
    contents: list[Any] = [
        "half \ud800 a character",
        [{"type": "text", "text": "part"}],
        {"a": float("inf")},
        None,
        "\0",
    ]
    with SessionDB(home / "state.db") as store:
        store.create_session("odd", "api_server", user_id="ann", system_prompt="hidden prompt")
        for content in contents:
            store.append_message("odd", "assistant", content)

    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                for path in ("/messages", "/export"):
                    response = await client.get(f"/v1/sessions/odd{path}")
                    assert response.status_code == 200
                    found = json.loads(response.content).get("messages") or response.json()["data"]
                    assert [each["content"] for each in found] == [*contents[:2], {"a": None}, None, "\0"]
                    assert "hidden prompt" not in response.text
                    assert "base_url" not in response.text
                assert (await client.get("/v1/sessions")).json()["data"][0]["id"] == "odd"
                assert (await client.get("/v1/sessions/search", params={"q": "character"})).status_code == 200

    run(test())


def test_an_exported_session_can_be_imported(home: Path, tmp_path: Path) -> None:
    async def test() -> None:
        with ModelServer(Say("I keep it.")) as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                answer = (await client.post("/v1/responses", json={"input": "hello"})).json()
                exported = (await client.get(f"/v1/sessions/{answer['session_id']}/export")).json()

            def copy() -> list[Any]:
                with SessionDB(tmp_path / "copy.db") as store:
                    store.import_session(exported)
                    return [each["content"] for each in store.get_messages(exported["id"])]

            assert await asyncio.to_thread(copy) == ["hello", "I keep it."]

    run(test())
