"""What becomes of an answer: clients that leave, repeat or ask later, failing turns, and deleted sessions."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from hermes.errors import StoreUnavailable
from hermes.platforms.http import exchange
from hermes.platforms.http.routes import events
from tests.platforms.http.api_gateway import KEYS, ApiGateway, serving
from tests.platforms.local_gateway import run, until
from tests.support.modelserver import Fail, ModelServer, Say

CHAT = {"messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "hi"}]}


def client_of(gateway: ApiGateway, timeout_s: float = 60.0) -> httpx.AsyncClient:
    """A client with a key."""
    headers = {"Authorization": f"Bearer {KEYS['ann']}"}
    return httpx.AsyncClient(base_url=gateway.server.url, headers=headers, timeout=timeout_s, trust_env=False)


async def ask(client: httpx.AsyncClient, text: str, **more: Any) -> dict[str, Any]:
    """Return the response to a text."""
    found: dict[str, Any] = (await client.post("/v1/responses", json={"input": text, **more})).json()
    return found


async def finished(client: httpx.AsyncClient, response_id: str) -> dict[str, Any]:
    """Return a response when it is no longer in progress."""
    async with asyncio.timeout(20):
        while (found := (await client.get(f"/v1/responses/{response_id}")).json())["status"] == "in_progress":
            await asyncio.sleep(0.01)
    return dict(found)


def test_a_client_that_leaves_is_not_waited_for_and_gets_its_answer_with_the_same_key(home: Path) -> None:
    async def test() -> None:
        with ModelServer(Say("Late.", before_s=0.6), Say("Twice.")) as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                retry = {"Idempotency-Key": "k1"}
                with pytest.raises(httpx.ReadTimeout):
                    await client.post("/v1/chat/completions", json=CHAT, headers=retry, timeout=0.3)
                await until(lambda: not gateway.adapter._waiting, "the end of the waiting")
                answer = await client.post("/v1/chat/completions", json=CHAT, headers=retry)
                assert answer.json()["choices"][0]["message"]["content"] == "Late."
            assert len(model.requests) == 1

    run(test())


def test_simultaneous_requests_with_one_key_are_one_message_with_its_history(home: Path) -> None:
    async def test() -> None:
        with ModelServer(Say("Once."), Say("Twice.")) as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                said = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "yes"}]
                body = {"messages": [CHAT["messages"][0], *said, CHAT["messages"][1]]}
                retry = {"Idempotency-Key": "k1"}
                sent = (client.post("/v1/chat/completions", json=body, headers=retry) for _ in range(6))
                answers = [each.json() for each in await asyncio.gather(*sent)]
                assert {each["choices"][0]["message"]["content"] for each in answers} == {"Once."}
                assert len({each["id"] for each in answers}) == 1
                assert len((await client.get("/v1/sessions")).json()["data"]) == 1
            (request,) = model.requests
            assert [each["content"] for each in request.messages if each["role"] != "system"] == [
                "before",
                "yes",
                "Be short.\n\nhi",
            ]

    run(test())


def test_a_key_that_is_used_for_another_text_is_refused(home: Path) -> None:
    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                retry = {"Idempotency-Key": "k1"}
                for text, status in (("one", 200), ("two", 409)):
                    response = await client.post("/v1/responses", json={"input": text}, headers=retry)
                    assert response.status_code == status
                response = await client.post("/v1/responses", json={"input": "one"}, headers=retry)
                assert response.json()["output"][0]["content"][0]["text"] == "You said: one"
            assert len(model.requests) == 1

    run(test())


def test_a_stream_ends_with_an_error_that_clients_read(home: Path) -> None:
    async def test() -> None:
        with ModelServer(Fail(400), Fail(400)) as model:
            async with serving(home, model.base_url) as gateway, gateway.client() as client:
                stream = await client.chat.completions.create(
                    model="hermes", messages=[{"role": "user", "content": "hi"}], stream=True
                )
                with pytest.raises(openai.APIError) as failed:
                    _ = [each async for each in stream]
                assert failed.value.code == "turn_failed"
                found = [each async for each in await client.responses.create(model="hermes", input="hi", stream=True)]
                last = found[-1]
                assert last.type == "response.failed"
                assert last.response.status == "failed"
                assert last.response.error is not None
                assert "Traceback" not in last.response.error.message

    run(test())


def test_a_store_that_fails_during_a_stream_ends_it_with_an_error(home: Path) -> None:
    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:

                async def unavailable(*_: object) -> None:
                    raise StoreUnavailable("the secret address is away")

                gateway.adapter.message = unavailable  # type: ignore[assignment, method-assign]
                response = await client.post("/v1/chat/completions", json={**CHAT, "stream": True})
                assert '"code":"unavailable"' in response.text
                assert "secret" not in response.text
                assert "[DONE]" not in response.text
                refused = await client.post("/v1/chat/completions", json=CHAT)
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")

    run(test())


def test_a_stream_stays_alive_while_the_model_is_silent(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "ALIVE_S", 0.05)

    async def test() -> None:
        with ModelServer(Say("One."), otherwise=Say("Two.", before_s=0.4)) as model:
            async with (
                serving(home, model.base_url) as gateway,
                client_of(gateway) as client,
                gateway.client() as official,
            ):
                await ask(client, "hi")
                streamed = await client.post("/v1/responses", json={"input": "hi", "stream": True})
                assert "\n: the answer is being written\n\n" in streamed.text
                stream = await official.chat.completions.create(
                    model="hermes", messages=[{"role": "user", "content": "hi"}], stream=True
                )
                text = "".join([each.choices[0].delta.content or "" async for each in stream])
                assert text == "Two."

    run(test())


def test_a_response_in_the_background_is_fetched_later(home: Path) -> None:
    async def test() -> None:
        with ModelServer(Say("Done.", before_s=0.2)) as model:
            async with (
                serving(home, model.base_url) as gateway,
                gateway.client() as client,
                client_of(gateway) as plain,
            ):
                response = await client.responses.create(model="hermes", input="hi", background=True)
                assert response.status == "in_progress"
                await finished(plain, response.id)
                assert (await client.responses.retrieve(response.id)).output_text == "Done."

    run(test())


def test_an_old_response_of_a_long_conversation_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MOST_REPLIES", 1)

    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                first = await ask(client, "one")
                for text in ("two", "three"):
                    await ask(client, text, previous_response_id=first["id"])
                assert await finished(client, first["id"]) == {
                    **first,
                    "usage": (await finished(client, first["id"]))["usage"],
                }

    run(test())


def test_a_response_names_its_own_session_also_after_a_reset(home: Path) -> None:
    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                first = await ask(client, "one")
                reset = await ask(client, "/new", previous_response_id=first["id"])
                assert "New session" in reset["output"][0]["content"][0]["text"]
                second = await ask(client, "two", previous_response_id=first["id"])
                assert second["session_id"] != first["session_id"]
                assert (await finished(client, first["id"]))["session_id"] == first["session_id"]

    run(test())


def test_what_was_deleted_is_not_shown_again(home: Path) -> None:
    async def test() -> None:
        with ModelServer(otherwise=Say("the treasure")) as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                for path in ("/v1/sessions/{session_id}", "/v1/conversations/{conversation}"):
                    answer = await ask(client, "hi")
                    ids = {"session_id": answer["session_id"], "conversation": answer["conversation"]["id"]}
                    assert (await client.delete(path.format(**ids))).json()["deleted"] is True
                    gone = ("/v1/sessions/{session_id}", "/v1/conversations/{conversation}")
                    for each in (*gone, "/v1/conversations/{conversation}/items", f"/v1/responses/{answer['id']}"):
                        response = await client.get(each.format(**ids))
                        assert response.status_code == 404, each
                        assert "treasure" not in response.text
                    again = await ask(client, "hi", previous_response_id=answer["id"])
                    assert again["session_id"] != answer["session_id"]

    run(test())


def test_a_deleted_conversation_leaves_nothing_of_what_was_compressed(home: Path) -> None:
    async def test() -> None:
        with ModelServer(Say("a summary"), Say("ok")) as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                said = [
                    {"role": ("user", "assistant")[n % 2], "content": f"harbour {n} " + "x " * 900} for n in range(40)
                ]
                made = (await client.post("/v1/conversations", json={"items": said})).json()
                kept = (await client.post("/v1/conversations", json={"items": said[:2]})).json()
                await ask(client, "/compress", conversation=made["id"])
                now = (await client.get(f"/v1/conversations/{made['id']}")).json()
                assert now["session_id"] != made["session_id"]
                files = [home / "sessions" / f"{each['session_id']}.changes" for each in (made, now, kept)]
                files[0].parent.mkdir(mode=0o700, exist_ok=True)
                for each in files:
                    each.write_text("former content")
                assert (await client.delete(f"/v1/conversations/{made['id']}")).json()["deleted"]
                left = (await client.get("/v1/sessions")).json()["data"]
                assert [each["id"] for each in left] == [kept["session_id"]]
                assert (await client.get(f"/v1/sessions/{made['session_id']}/messages")).status_code == 404
                found = (await client.get("/v1/sessions/search", params={"q": "harbour"})).json()["data"]
                assert {each["session_id"] for each in found} == {kept["session_id"]}
                assert [each.exists() for each in files] == [False, False, True]
                await client.delete(f"/v1/sessions/{kept['session_id']}")
                assert not files[2].exists()

    run(test())


def test_conversations_are_paged_and_their_items_fetched(home: Path) -> None:
    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, gateway.client() as client:
                said: Any = [{"role": "user", "content": f"text {number}"} for number in range(130)]
                conversation = await client.conversations.create(items=said)
                texts = {}
                for order in ("asc", "desc"):
                    page = client.conversations.items.list(conversation.id, order=order, limit=50)
                    texts[order] = [each.model_dump()["content"][0]["text"] async for each in page]
                expected = [f"text {number}" for number in range(130)]
                assert texts == {"asc": expected, "desc": expected[::-1]}
                (first, *_) = (await client.conversations.items.list(conversation.id, limit=1)).data
                found = await client.conversations.items.retrieve(str(first.id), conversation_id=conversation.id)
                assert found.model_dump()["content"][0]["text"] == "text 129"
                await client.conversations.delete(conversation.id)
                with pytest.raises(openai.NotFoundError):
                    await client.conversations.retrieve(conversation.id)

    run(test())


def test_a_page_of_messages_ends_where_it_gets_too_large(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes.platforms.http.routes.sessions.MAX_PAGE_BYTES", 1000)

    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                said = [{"role": "user", "content": "x" * 700}] * 60
                body = {"items": said}
                session = (await client.post("/v1/conversations", json=body)).json()["session_id"]
                after, count, pages = 0, 0, 0
                while True:
                    page = (await client.get(f"/v1/sessions/{session}/messages", params={"after": str(after)})).json()
                    count, pages, after = count + len(page["data"]), pages + 1, page["data"][-1]["id"]
                    if not page["has_more"]:
                        break
                assert (count, pages) == (60, 30)

    run(test())


def test_a_page_of_items_ends_where_it_gets_too_large(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes.platforms.http.routes.conversations.MAX_PAGE_BYTES", 1000)

    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                said = [{"role": "user", "content": f"{number} " + "x" * 700} for number in range(60)]
                place = (
                    f"/v1/conversations/{(await client.post('/v1/conversations', json={'items': said})).json()['id']}"
                )
                for order, expected in (("asc", list(range(60))), ("desc", list(range(60))[::-1])):
                    query, numbers, pages = {"order": order, "limit": "100"}, list[int](), 0
                    while True:
                        page = (await client.get(f"{place}/items", params=query)).json()
                        numbers += [int(each["content"][0]["text"].split()[0]) for each in page["data"]]
                        pages, query = pages + 1, {**query, "after": page["last_id"]}
                        if not page["has_more"]:
                            break
                    assert (numbers, pages) == (expected, 30)

    run(test())


def test_ids_are_random(home: Path) -> None:
    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                answers = [await ask(client, "the same") for _ in range(3)]
                for name, pattern in (("id", r"resp_[0-9a-f]{56}"), ("session_id", r"\d{8}_\d{6}_[0-9a-f]{24}")):
                    found = {each[name] for each in answers}
                    assert len({each[-24:] for each in found}) == 3
                    assert all(re.fullmatch(pattern, each) for each in found), found

    run(test())


def test_many_requests_at_once_are_all_answered(home: Path) -> None:
    async def test() -> None:
        with ModelServer() as model:
            async with serving(home, model.base_url) as gateway, client_of(gateway) as client:
                bodies = [{"messages": [{"role": "user", "content": f"text {number}"}]} for number in range(30)]
                found = await asyncio.gather(*(client.post("/v1/chat/completions", json=each) for each in bodies))
                texts = [each.json()["choices"][0]["message"]["content"] for each in found]
                assert texts == [f"You said: text {number}" for number in range(30)]

    run(test())
