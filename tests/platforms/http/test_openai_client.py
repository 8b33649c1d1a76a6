"""The official client of OpenAI, unchanged, against a whole gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import openai
import pytest

from tests.platforms.http.api_gateway import serving
from tests.platforms.local_gateway import run
from tests.support.modelserver import Fail, ModelServer, Say


def run_plain(home: Path, model: ModelServer, work: Callable[[openai.OpenAI], None]) -> None:
    """Let a program without an event loop use the client of a gateway."""

    async def test() -> None:
        with model:
            async with serving(home, model.base_url) as gateway:
                with gateway.plain_client() as client:
                    await asyncio.to_thread(work, client)

    run(test())


def test_a_chat_is_answered_with_its_history_and_usage(home: Path) -> None:
    async def test() -> None:
        with ModelServer(Say("Four.")) as model:
            async with serving(home, model.base_url) as gateway, gateway.client() as client:
                answer = await client.chat.completions.create(
                    model="hermes",
                    messages=[
                        {"role": "user", "content": "Count to three."},
                        {"role": "assistant", "content": "One, two, three."},
                        {"role": "user", "content": "And then?"},
                    ],
                )
                assert answer.choices[0].message.content == "Four."
                assert answer.choices[0].finish_reason == "stop"
                assert answer.usage is not None
                assert answer.usage.total_tokens > 0
            texts = [each["content"] for each in model.requests[0].messages if each["role"] != "system"]
            assert texts[:2] == ["Count to three.", "One, two, three."]
            assert "And then?" in texts[2]

    run(test())


def test_a_named_session_continues_over_requests_and_a_restart(home: Path) -> None:
    async def test() -> None:
        with ModelServer(Say("Hello."), Say("You said hi.")) as model:
            named = {"X-Hermes-Session-Id": "my chat"}
            for text, expected in (("hi", "Hello."), ("what did I say?", "You said hi.")):
                async with serving(home, model.base_url) as gateway, gateway.client() as client:
                    answer = await client.chat.completions.create(
                        model="hermes", messages=[{"role": "user", "content": text}], extra_headers=named
                    )
                    assert answer.choices[0].message.content == expected
            assert "hi" in [each["content"] for each in model.requests[1].messages]

    run(test())


def test_a_streamed_chat_is_the_whole_answer_once(home: Path) -> None:
    async def test() -> None:
        text = " ".join(f"word{number}" for number in range(200))
        with ModelServer(Say(text)) as model:
            async with serving(home, model.base_url) as gateway, gateway.client() as client:
                stream = await client.chat.completions.create(
                    model="hermes",
                    messages=[{"role": "user", "content": "hi"}],
                    stream=True,
                    stream_options={"include_usage": True},
                )
                chunks = [each async for each in stream]
        assert "".join(each.choices[0].delta.content or "" for each in chunks if each.choices) == text
        assert chunks[-1].usage is not None

    run(test())


def test_responses_continue_each_other_and_can_be_fetched(home: Path) -> None:
    async def test() -> None:
        with ModelServer(Say("First."), Say("Second."), Say("Third.")) as model:
            async with serving(home, model.base_url) as gateway, gateway.client() as client:
                first = await client.responses.create(model="hermes", input="one", instructions="Be short.")
                assert (first.output_text, first.status) == ("First.", "completed")
                second = await client.responses.create(model="hermes", input="two", previous_response_id=first.id)
                assert second.output_text == "Second."
                assert (await client.responses.retrieve(first.id)).output_text == "First."
                events = [
                    each
                    async for each in await client.responses.create(
                        model="hermes", input="three", previous_response_id=second.id, stream=True
                    )
                ]
                deltas = [each.delta for each in events if each.type == "response.output_text.delta"]
                assert "".join(deltas) == "Third."
                assert events[-1].type == "response.completed"
                assert events[-1].response.output_text == "Third."
            assert "one" in str(model.requests[1].messages)

    run(test())


def test_conversations_are_created_used_and_listed(home: Path) -> None:
    async def test() -> None:
        with ModelServer(Say("Hello.")) as model:
            async with serving(home, model.base_url) as gateway, gateway.client() as client:
                conversation = await client.conversations.create()
                answer = await client.responses.create(model="hermes", input="hi", conversation=conversation.id)
                assert answer.output_text == "Hello."
                assert (await client.conversations.retrieve(conversation.id)).id == conversation.id
                items = await client.conversations.items.list(conversation.id, order="asc")
                texts = [each.model_dump()["content"][0]["text"] for each in items.data]
                assert texts == ["hi", "Hello."]
                assert [each.id async for each in await client.models.list()] == ["hermes"]

    run(test())


def test_errors_are_those_of_the_client(home: Path) -> None:
    async def test() -> None:
        with ModelServer(Fail(400)) as model:
            async with serving(home, model.base_url) as gateway, gateway.client() as client:
                with pytest.raises(openai.InternalServerError) as failed:
                    await client.responses.create(model="hermes", input="hi")
                assert failed.value.code == "turn_failed"
                with pytest.raises(openai.NotFoundError):
                    await client.responses.retrieve("resp_" + "0" * 56)
                with pytest.raises(openai.BadRequestError):
                    await client.chat.completions.create(model="hermes", messages=[])
                with pytest.raises(openai.BadRequestError):  # not a stream without events
                    await client.responses.retrieve("resp_" + "0" * 56, stream=True)
                async with gateway.client("stranger") as stranger:
                    with pytest.raises(openai.AuthenticationError):
                        await stranger.models.list()

    run(test())


def test_a_retry_with_the_same_idempotency_key_is_the_same_message(home: Path) -> None:
    async def test() -> None:
        with ModelServer(Say("Once."), Say("Twice.")) as model:
            async with serving(home, model.base_url) as gateway, gateway.client() as client:
                answers = [
                    await client.chat.completions.create(
                        model="hermes",
                        messages=[{"role": "user", "content": "hi"}],
                        extra_headers={"Idempotency-Key": "k1"},
                    )
                    for _ in range(2)
                ]
                assert [each.choices[0].message.content for each in answers] == ["Once.", "Once."]
                assert answers[0].id == answers[1].id
                async with gateway.client("bob") as bob:
                    other = await bob.chat.completions.create(
                        model="hermes",
                        messages=[{"role": "user", "content": "hi"}],
                        extra_headers={"Idempotency-Key": "k1"},
                    )
                assert other.choices[0].message.content == "Twice."

    run(test())


def test_the_answer_of_a_client_that_left_in_the_middle_of_a_stream_can_be_fetched(home: Path) -> None:
    async def test() -> None:
        text = " ".join(f"word{number}" for number in range(50))
        with ModelServer(Say(text, between_s=0.01)) as model:
            async with serving(home, model.base_url) as gateway, gateway.client() as client:
                stream = await client.responses.create(model="hermes", input="hi", stream=True)
                created = await anext(aiter(stream))
                assert created.type == "response.created"
                response_id = created.response.id
                await stream.close()
                found = await client.responses.retrieve(response_id)
                while found.status == "in_progress":
                    found = await client.responses.retrieve(response_id)
                assert found.output_text == text

    run(test())


def test_the_plain_client_chats_and_streams(home: Path) -> None:
    def work(client: openai.OpenAI) -> None:
        answer = client.chat.completions.create(model="hermes", messages=[{"role": "user", "content": "one"}])
        assert answer.choices[0].message.content == "First."
        pieces = client.chat.completions.create(
            model="hermes", messages=[{"role": "user", "content": "two"}], stream=True
        )
        assert "".join(each.choices[0].delta.content or "" for each in pieces) == "Second answer."
        with client.chat.completions.stream(model="hermes", messages=[{"role": "user", "content": "three"}]) as stream:
            stream.until_done()
            final = stream.get_final_completion()
        assert final.choices[0].message.content == "Third answer."

    run_plain(home, ModelServer(Say("First."), Say("Second answer."), Say("Third answer.")), work)


def test_the_plain_client_continues_responses_and_conversations(home: Path) -> None:
    def work(client: openai.OpenAI) -> None:
        conversation = client.conversations.create(items=[{"type": "message", "role": "user", "content": "before"}])
        first = client.responses.create(model="hermes", input="one", conversation=conversation.id)
        assert first.output_text == "First."
        with client.responses.stream(model="hermes", input="two", previous_response_id=first.id) as stream:
            kinds = [each.type for each in stream]
            final = stream.get_final_response()
        assert (kinds[0], kinds[-1], final.output_text) == ("response.created", "response.completed", "Second.")
        assert client.responses.retrieve(final.id).output_text == "Second."
        texts = [each.model_dump()["content"][0]["text"] for each in client.conversations.items.list(conversation.id)]
        assert texts == ["Second.", "two", "First.", "one", "before"]
        found = next(iter(client.conversations.items.list(conversation.id)))
        assert client.conversations.items.retrieve(str(found.id), conversation_id=conversation.id).id == found.id
        assert client.conversations.delete(conversation.id).deleted
        with pytest.raises(openai.NotFoundError):
            client.conversations.retrieve(conversation.id)

    run_plain(home, ModelServer(Say("First."), Say("Second.")), work)


def test_the_plain_client_runs_a_response_in_the_background(home: Path) -> None:
    def work(client: openai.OpenAI) -> None:
        response = client.responses.create(model="hermes", input="hi", background=True)
        while response.status in ("queued", "in_progress"):
            response = client.responses.retrieve(response.id)
        assert (response.status, response.output_text) == ("completed", "Done.")

    run_plain(home, ModelServer(Say("Done.")), work)


def test_the_plain_client_raises_its_own_errors(home: Path) -> None:
    def work(client: openai.OpenAI) -> None:
        with pytest.raises(openai.InternalServerError):
            client.chat.completions.create(model="hermes", messages=[{"role": "user", "content": "hi"}])
        with pytest.raises(openai.APIError):
            for _ in client.chat.completions.create(
                model="hermes", messages=[{"role": "user", "content": "hi"}], stream=True
            ):
                pass
        with pytest.raises(openai.AuthenticationError):
            client.with_options(api_key="wrong").models.list()

    run_plain(home, ModelServer(otherwise=Fail(400)), work)
