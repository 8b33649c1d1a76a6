"""Two principals on every route: neither reads nor changes what belongs to the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from hermes.errors import ConfigError
from hermes.platforms.http.openapi import document
from hermes.platforms.http.principals import Principals
from tests.platforms.http.api_gateway import KEYS, ApiGateway, serving
from tests.platforms.local_gateway import run
from tests.support.modelserver import Call, ModelServer, Say

SECRET = "the treasure is buried under the oak"
BODY: dict[str, Any] = {"title": "stolen", "input": "hi", "messages": [{"role": "user", "content": "hi"}]}


def http_client(gateway: ApiGateway, name: str) -> httpx.AsyncClient:
    """A client with the key of a principal."""
    headers = {"Authorization": f"Bearer {KEYS[name]}"} if name in KEYS else {}
    return httpx.AsyncClient(base_url=gateway.server.url, headers=headers, timeout=60, trust_env=False)


async def conversation_of_ann(ann: httpx.AsyncClient) -> dict[str, str]:
    """Let one principal talk, and return the ids of what is stored then."""
    answer = (await ann.post("/v1/responses", json={"input": SECRET})).json()
    return {
        "response_id": answer["id"],
        "conversation_id": answer["conversation"]["id"],
        "session_id": answer["session_id"],
        "model": "hermes",
        "item_id": (await ann.get(f"/v1/conversations/{answer['conversation']['id']}/items")).json()["data"][0]["id"],
    }


def test_no_route_shows_or_changes_what_belongs_to_another_principal(home: Path) -> None:
    async def test() -> None:
        with ModelServer(Say("I keep it."), otherwise=Say("Hello.")) as model:
            async with (
                serving(home, model.base_url) as gateway,
                http_client(gateway, "ann") as ann,
                http_client(gateway, "bob") as bob,
            ):
                ids = await conversation_of_ann(ann)
                before = (await ann.get(f"/v1/sessions/{ids['session_id']}/export")).json()
                for path, methods in document()["paths"].items():
                    for method in methods:
                        target = path.format(**ids)
                        body = BODY if path.startswith(("/v1/chat", "/v1/responses")) else {"title": "stolen"}
                        sent = body if method in ("post", "patch") else None
                        response = await bob.request(method, target, params={"q": "treasure"}, json=sent)
                        assert SECRET not in response.text, path
                        assert ids["session_id"] not in response.text, path
                        if path != target and "{model}" not in path:
                            assert response.status_code == 404, path
                for name in ("previous_response_id", "conversation"):
                    stolen = ids["response_id" if name == "previous_response_id" else "conversation_id"]
                    response = await bob.post("/v1/responses", json={"input": "hi", name: stolen})
                    assert response.status_code == 404
                for handle in ids.values():
                    named = {"X-Hermes-Session-Id": handle}
                    response = await bob.post("/v1/chat/completions", json=BODY, headers=named)
                    assert response.status_code == 200
                assert (await ann.get(f"/v1/sessions/{ids['session_id']}/export")).json() == before
            assert all(SECRET not in str(each.messages) for each in model.requests[1:])

    run(test())


def test_what_belongs_to_another_is_as_unknown_as_what_does_not_exist(home: Path) -> None:
    async def test() -> None:
        with ModelServer(otherwise=Say("I keep it.")) as model:
            async with (
                serving(home, model.base_url) as gateway,
                http_client(gateway, "ann") as ann,
                http_client(gateway, "bob") as bob,
            ):
                ids = await conversation_of_ann(ann)
                unknown = {
                    "response_id": "resp_" + "0" * 56,
                    "conversation_id": "conv_" + "0" * 32,
                    "session_id": "20260101_000000_" + "0" * 24,
                    "model": "hermes",
                    "item_id": "msg_999",
                }
                for path, methods in document()["paths"].items():
                    if "{" not in path or "{model}" in path:
                        continue
                    for method in methods:
                        found = []
                        for handles in (ids, unknown):
                            sent = {"title": "stolen"} if method in ("post", "patch") else None
                            response = await bob.request(method, path.format(**handles), json=sent)
                            found.append((response.status_code, response.content, sorted(response.headers)))
                        assert found[0] == found[1], path
                        assert found[0][0] == 404
                for field in ("previous_response_id", "conversation"):
                    name = "response_id" if field == "previous_response_id" else "conversation_id"
                    pair = [
                        await bob.post("/v1/responses", json={"input": "x", field: each[name]})
                        for each in (ids, unknown)
                    ]
                    assert pair[0].content == pair[1].content
                    assert pair[0].status_code == 404

    run(test())


def test_neither_commands_nor_tools_cross_from_one_principal_to_another(home: Path) -> None:
    search = Say(calls=[Call("session_search", {"query": "treasure"})])

    async def test() -> None:
        with ModelServer(Say("I keep it.")) as model:
            async with (
                serving(home, model.base_url) as gateway,
                http_client(gateway, "ann") as ann,
                http_client(gateway, "bob") as bob,
            ):
                ids = await conversation_of_ann(ann)
                session = ids["session_id"]
                assert (await ann.patch(f"/v1/sessions/{session}", json={"title": "Oak"})).status_code == 200
                for text in (f"/resume {session}", "/resume Oak", "/sessions", "/title Oak", "/history", "/status"):
                    named = {"X-Hermes-Session-Id": "mine"}
                    body = {"messages": [{"role": "user", "content": text}]}
                    response = await bob.post("/v1/chat/completions", json=body, headers=named)
                    assert response.status_code == 200
                    assert response.json()["session_id"] != session
                    assert "the treasure is" not in response.text
                model.then(search, Say("Nothing."), search, Say("Found."))
                count = len(model.requests)
                await bob.post("/v1/responses", json={"input": "search, please"})
                assert len(model.requests) == count + 2
                assert "buried" not in str(model.requests[-1].messages)
                await ann.post("/v1/responses", json={"input": "search, please"})
                assert "buried" in str(model.requests[-1].messages)

    run(test())


def test_titles_of_another_principal_are_free(home: Path) -> None:
    async def test() -> None:
        with ModelServer(otherwise=Say("Hello.")) as model:
            async with (
                serving(home, model.base_url) as gateway,
                http_client(gateway, "ann") as ann,
                http_client(gateway, "bob") as bob,
            ):
                for client in (ann, bob):
                    ids = await conversation_of_ann(client)
                    assert (
                        await client.patch(f"/v1/sessions/{ids['session_id']}", json={"title": "Oak"})
                    ).status_code == 200
                other = (await conversation_of_ann(bob))["session_id"]
                taken = await bob.patch(f"/v1/sessions/{other}", json={"title": "Oak"})
                assert (taken.status_code, taken.json()["error"]["code"]) == (409, "title_taken")

    run(test())


def test_every_route_needs_a_key(home: Path) -> None:
    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, http_client(gateway, "stranger") as client:
                for path, methods in document()["paths"].items():
                    for method in methods:
                        assert (await client.request(method, path)).status_code == 401
            assert model.requests == []

    run(test())


def test_sessions_are_listed_searched_renamed_forked_exported_and_deleted(home: Path) -> None:
    async def test() -> None:
        with ModelServer(Say("I keep it."), Say("Still here.")) as model:
            async with serving(home, model.base_url) as gateway, http_client(gateway, "ann") as ann:
                session = f"/v1/sessions/{(await conversation_of_ann(ann))['session_id']}"
                assert (await ann.patch(session, json={"title": "Oak"})).json()["title"] == "Oak"
                assert (await ann.patch(session, json={"owner": "bob"})).status_code == 400
                assert [each["title"] for each in (await ann.get("/v1/sessions")).json()["data"]] == ["Oak"]
                roles = [each["role"] for each in (await ann.get(f"{session}/messages")).json()["data"]]
                assert roles == ["user", "assistant"]
                hits = (await ann.get("/v1/sessions/search", params={"q": "treasure"})).json()["data"]
                assert [each["role"] for each in hits] == ["user"]
                assert len((await ann.get(f"{session}/export")).json()["messages"]) == 2
                fork = await ann.post(f"{session}/fork", json={"title": "Elm"})
                assert fork.status_code == 201
                named = {"X-Hermes-Session-Id": fork.json()["id"]}
                again = await ann.post("/v1/chat/completions", json=BODY, headers=named)
                assert again.json()["session_id"] == fork.json()["id"]
                assert SECRET in str(model.requests[1].messages)
                pages = await ann.get("/v1/sessions", params={"limit": 1})
                assert pages.json()["has_more"] is True
                rest = await ann.get("/v1/sessions", params={"limit": 1, "after": pages.json()["next"]})
                assert rest.json()["data"][0]["id"] != pages.json()["data"][0]["id"]
                assert (await ann.delete(session)).json()["deleted"] is True
                assert (await ann.get(session)).status_code == 404

    run(test())


@pytest.mark.parametrize("keys", [{"a b": "x" * 20}, {"ann": "short"}, {"ann": "x" * 20, "bob": "x" * 20}])
def test_keys_that_cannot_be_used_are_refused(keys: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        Principals(keys)
