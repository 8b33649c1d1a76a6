"""Conversations over HTTP: how they begin and continue, and what a stream of one shows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx

from tests.platforms.http.api_gateway import serving
from tests.platforms.http.test_principals import http_client
from tests.platforms.local_gateway import run
from tests.support.modelserver import ModelServer, Say


async def streamed(client: httpx.AsyncClient, text: str) -> AsyncIterator[str]:
    """Yield the pieces of a streamed answer in one session."""
    body = {"messages": [{"role": "user", "content": text}], "stream": True}
    named = {"X-Hermes-Session-Id": "s"}
    async with client.stream("POST", "/v1/chat/completions", json=body, headers=named) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                yield json.loads(line[6:])["choices"][0]["delta"].get("content") or ""


async def all_of(pieces: AsyncIterator[str]) -> str:
    """Return pieces as one text."""
    return "".join([each async for each in pieces])


def test_a_copied_session_is_continued_by_its_id_and_reading_changes_nothing(home: Path) -> None:
    async def test() -> None:
        with ModelServer(otherwise=Say("Yes.")) as model:
            async with serving(home, model.base_url) as gateway, http_client(gateway, "ann") as client:
                first = (await client.post("/v1/responses", json={"input": "one"})).json()["session_id"]
                copy = (await client.post(f"/v1/sessions/{first}/fork")).json()["id"]
                before = (await client.get("/v1/sessions")).json()
                items = (await client.get(f"/v1/conversations/{copy}/items", params={"order": "asc"})).json()
                shown = (await client.get(f"/v1/conversations/{copy}")).json()
                assert (await client.get("/v1/sessions")).json() == before
                assert ([each["content"][0]["text"] for each in items["data"]], shown["session_id"]) == (
                    ["one", "Yes."],
                    copy,
                )
                for text, body in (("two", {"conversation": copy}), ("three", {"conversation": shown["id"]})):
                    answer = (await client.post("/v1/responses", json={"input": text, **body})).json()
                    assert (answer["session_id"], answer["conversation"]["id"]) == (copy, shown["id"])
                sessions = (await client.get("/v1/sessions")).json()["data"]
                assert {each["id"]: each["message_count"] for each in sessions} == {first: 2, copy: 6}
                assert (await client.get(f"/v1/sessions/{copy}")).json()["ended_at"] is None

    run(test())


def test_a_stream_shows_nothing_of_the_answer_to_another_message(home: Path) -> None:
    async def test() -> None:
        first = [f"first{number} " for number in range(30)]
        with ModelServer(Say(pieces=first, between_s=0.03), otherwise=Say("The second.")) as model:
            async with serving(home, model.base_url) as gateway, http_client(gateway, "ann") as client:
                answer = streamed(client, "one")
                begun = [await anext(answer) for _ in range(3)]  # the first turn has shown something
                others = [asyncio.ensure_future(all_of(streamed(client, text))) for text in ("/queue two", "/status")]
                rest = [each async for each in answer]
                assert "".join([*begun, *rest]) == "".join(first)
                queued, status = await asyncio.gather(*others)
                assert queued == "The second."
                assert status.startswith("Session: ")

    run(test())


def test_a_message_that_is_too_long_leaves_nothing(home: Path) -> None:
    async def test() -> None:
        with ModelServer(otherwise=Say("Yes.")) as model:
            async with serving(home, model.base_url) as gateway, http_client(gateway, "ann") as client:
                said = [{"role": "user", "content": "one"}, {"role": "user", "content": "x" * 40_000}]
                refused = await client.post("/v1/responses", json={"input": said})
                assert (refused.status_code, refused.json()["error"]["code"]) == (400, "too_long")
                assert (await client.get("/v1/sessions")).json()["data"] == []

    run(test())


def test_a_key_makes_one_conversation_on_each_route(home: Path) -> None:
    async def test() -> None:
        with ModelServer(otherwise=Say("Yes.")) as model:
            async with serving(home, model.base_url) as gateway, http_client(gateway, "ann") as client:
                retry, body = {"Idempotency-Key": "k1"}, {"items": [{"role": "user", "content": "one"}]}
                created = [(await client.post("/v1/conversations", json=body, headers=retry)).json() for _ in range(2)]
                assert created[0] == created[1]
                answer = (await client.post("/v1/responses", json={"input": "two"}, headers=retry)).json()
                assert answer["session_id"] != created[0]["session_id"]
                for wrong in ("", "k" * 256):
                    refused = await client.post("/v1/conversations", json=body, headers={"Idempotency-Key": wrong})
                    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "Idempotency-Key")

    run(test())
