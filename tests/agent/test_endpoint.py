"""A model behind a real HTTP server: requests, answers and retries."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.agent.models.model import Retrying, ToolCall, Usage
from hermes.errors import (
    AnswerCut,
    ContextTooLong,
    ModelBusy,
    ModelError,
    ModelGarbled,
    ModelKeyRefused,
    ModelRefused,
    ModelUnavailable,
    UnknownModel,
)
from tests.agent.asking import SEARCH_TOOL, ask, choice_of, endpoint
from tests.support.modelserver import Call, Fail, ModelServer, Raw, Received, Say


class TestRequests:
    def test_conversation_tools_and_key_are_sent(self) -> None:
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "京都 🍁"}]
        with ModelServer() as server:
            ask(endpoint(server, choice=choice_of(server, api_key="k")), messages, [SEARCH_TOOL])
        (request,) = server.requests
        assert request.path == "/v1/chat/completions"
        assert request.headers["authorization"] == "Bearer k"
        assert request.headers["content-type"] == "application/json"
        assert request.body == {
            "model": "test-model",
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": [SEARCH_TOOL],
        }

    def test_request_without_tools_and_key_has_neither(self) -> None:
        with ModelServer() as server:
            ask(endpoint(server))
        (request,) = server.requests
        assert "tools" not in request.body
        assert "authorization" not in request.headers

    def test_openrouter_is_asked_for_the_cost(self) -> None:
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25}
        with ModelServer(Say("x", usage=usage)) as server:
            received = ask(endpoint(server, choice=choice_of(server, provider="openrouter")))
        assert server.requests[0].body["usage"] == {"include": True}
        assert received.reply.usage == Usage(1, 1, cost_usd=0.25)

    def test_lone_surrogate_is_sent_as_a_question_mark(self) -> None:
        with ModelServer() as server:
            assert ask(endpoint(server), "a\ud800b").reply.text == "You said: a?b"

    def test_connection_is_reused(self) -> None:
        with ModelServer() as server:
            for _ in range(3):
                ask(endpoint(server))
        assert len({request.port for request in server.requests}) == 1


class TestAnswers:
    def test_pieces_arrive_as_sent_and_then_the_reply(self) -> None:
        with ModelServer(Say(pieces=["Hel", "lo ", "京都"], reasoning="hmm", model="test-model-7")) as server:
            received = ask(endpoint(server))
        assert (received.pieces, received.thoughts) == (["Hel", "lo ", "京都"], ["hmm"])
        reply = received.reply
        assert (reply.text, reply.reasoning, reply.finish_reason) == ("Hello 京都", "hmm", "stop")
        assert (reply.usage, reply.model) == (Usage(20, 5), "test-model-7")

    def test_tool_calls_are_assembled(self) -> None:
        calls = [Call("search", {"query": "naïve 京都"}, "c1", fragments=5), Call("read", "no json", "c2", fragments=2)]
        with ModelServer(Say("Let me see.", calls=calls)) as server:
            reply = ask(endpoint(server)).reply
        assert reply.tool_calls == (
            ToolCall("c1", "search", json.dumps({"query": "naïve 京都"})),
            ToolCall("c2", "read", "no json"),
        )
        assert (reply.text, reply.finish_reason) == ("Let me see.", "tool_calls")

    def test_answer_that_is_not_streamed_is_read(self) -> None:
        answer = Say("Hello.", reasoning="hmm", calls=[Call("search", {"q": 1})], stream=False)
        with ModelServer(answer, answer) as server:
            reply = ask(endpoint(server)).reply
        assert (reply.text, reply.reasoning, reply.usage) == ("Hello.", "hmm", Usage(20, 5))
        assert reply.tool_calls == (ToolCall("call_1", "search", '{"q": 1}'),)

    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    @pytest.mark.parametrize("done", [True, False])
    def test_stream_may_end_without_done(self, newline: str, done: bool) -> None:
        with ModelServer(Say("Hello there.", newline=newline, done=done)) as server:
            assert ask(endpoint(server)).reply.text == "Hello there."

    def test_done_ends_a_stream_without_a_finish_reason(self) -> None:
        with ModelServer(Say("Hello.", finish_reason="")) as server:
            reply = ask(endpoint(server)).reply
        assert (reply.text, reply.finish_reason) == ("Hello.", None)

    def test_connection_lost_after_the_last_word_is_no_error(self) -> None:
        with ModelServer(Say(pieces=["Hello."], cut_after=2)) as server:
            reply = ask(endpoint(server)).reply
        assert (reply.text, reply.finish_reason, reply.usage) == ("Hello.", "stop", None)

    def test_comments_and_odd_chunking_are_ignored(self) -> None:
        chunk = {"choices": [{"delta": {"content": "京"}, "finish_reason": "stop"}]}
        stream = f": hello\n\ndata: {json.dumps(chunk, ensure_ascii=False)}\n\ndata: [DONE]\n\n".encode()
        with ModelServer(Raw([bytes([each]) for each in stream])) as server:
            assert ask(endpoint(server)).reply.text == "京"

    def test_empty_events_and_blanks_around_done_are_ignored(self) -> None:
        stream = b'data: \n\ndata: {"choices": [{"delta": {"content": "x"}}]}\n\ndata:  [DONE] \n\n'
        with ModelServer(Raw([stream])) as server:
            assert ask(endpoint(server)).reply.text == "x"

    def test_empty_answer_is_accepted(self) -> None:
        with ModelServer(Say("")) as server:
            assert ask(endpoint(server)).reply.text == ""


class TestFallbacks:
    def test_refused_token_counting_is_omitted(self) -> None:
        refusal = Fail(400, {"error": {"message": "Unknown parameter: 'stream_options'."}})
        with ModelServer(refusal) as server:
            model = endpoint(server)
            assert ask(model).reply.usage is None
            ask(model)
        assert ["stream_options" in request.body for request in server.requests] == [True, False, False]

    def test_refused_streaming_is_omitted(self) -> None:
        with ModelServer(Fail(400, {"error": {"message": "streaming is not supported"}}), Say("Hello.")) as server:
            assert ask(endpoint(server)).reply.text == "Hello."
        assert "stream" not in server.requests[1].body

    @pytest.mark.parametrize(
        ("status", "message"),
        [
            (400, "registry.ollama.ai/library/gemma:latest does not support tools"),
            (404, "No endpoints found that support tool use."),
            (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
            (500, "tools param requires --jinja flag"),
        ],
    )
    def test_refused_tools_are_omitted_with_a_notice(self, status: int, message: str) -> None:
        with ModelServer(Fail(status, {"error": {"message": message}})) as server:
            received = ask(endpoint(server), "hi", [SEARCH_TOOL])
        assert received.reply.text == "You said: hi"
        assert [request.tool_names for request in server.requests] == [["session_search"], []]
        host = f"127.0.0.1:{server.port}"
        assert received.notices == [f"{host} does not support tools with test-model; trying without"]

    @pytest.mark.parametrize(
        "message",
        ["roles must alternate", "Invalid schema for function 'search': 'x' is not permitted.", "stream ended"],
    )
    def test_other_refusal_is_final(self, message: str) -> None:
        with ModelServer(Fail(400, {"error": {"message": message}})) as server:
            assert isinstance(ask(endpoint(server), "hi", [SEARCH_TOOL]).error, ModelRefused)
        assert len(server.requests) == 1


class TestRetries:
    @pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
    def test_temporary_failure_is_retried(self, status: int) -> None:
        with ModelServer(Fail(status), Fail(status)) as server:
            assert ask(endpoint(server)).reply.text == "You said: hi"
        assert len(server.requests) == 3

    @pytest.mark.parametrize("retry_after", [0, "Wed, 21 Oct 2015 07:28:00 GMT"])
    def test_retry_waits_as_long_as_the_endpoint_asks(self, retry_after: Any) -> None:
        with ModelServer(Fail(429, retry_after=retry_after)) as server:
            received = ask(endpoint(server, random=lambda: 0.0))
        assert received.events[0] == Retrying(0.0, f"127.0.0.1:{server.port} is busy (rate limit): scripted")
        assert received.reply.text == "You said: hi"

    def test_long_requested_wait_is_not_retried(self) -> None:
        with ModelServer(Fail(429, retry_after=3600)) as server:
            error = ask(endpoint(server)).error
        assert isinstance(error, ModelBusy)
        assert error.hint == "try again in 3600 s"
        assert len(server.requests) == 1

    def test_last_attempt_raises_the_error(self) -> None:
        with ModelServer(otherwise=Fail(503, {"error": {"message": "maintenance"}})) as server:
            error = ask(endpoint(server)).error
        assert isinstance(error, ModelUnavailable)
        assert "maintenance" in error.message
        assert len(server.requests) == 4

    @pytest.mark.parametrize(("status", "kind"), [(401, ModelKeyRefused), (400, ModelRefused), (413, ContextTooLong)])
    def test_permanent_failure_is_not_retried(self, status: int, kind: type[ModelError]) -> None:
        with ModelServer(otherwise=Fail(status)) as server:
            assert isinstance(ask(endpoint(server)).error, kind)
        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        "cut", [Say("Hello.", cut_after=0), Say("", finish_reason="", done=False, usage=None), Raw([], is_cut=True)]
    )
    def test_stream_cut_before_the_first_word_is_retried(self, cut: Say | Raw) -> None:
        with ModelServer(Fail(500), cut) as server:
            received = ask(endpoint(server))
        assert (received.pieces, received.reply.text) == (["You ", "said: ", "hi"], "You said: hi")
        assert len(server.requests) == 3

    def test_stream_cut_within_a_tool_call_is_retried(self) -> None:
        call = Call("search", {"query": "long enough"}, fragments=4)
        with ModelServer(Say(calls=[call], cut_after=2), Say(calls=[call])) as server:
            (found,) = ask(endpoint(server)).reply.tool_calls
        assert found.arguments == call.written

    def test_error_event_before_the_first_word_is_retried(self) -> None:
        with ModelServer(Say(error={"message": "overloaded", "code": 502})) as server:
            assert ask(endpoint(server)).reply.text == "You said: hi"

    def test_refused_connection_is_retried(self) -> None:
        with ModelServer() as server:
            pass
        received = ask(endpoint(server))
        assert isinstance(received.error, ModelUnavailable)
        assert received.error.message == f"no connection to 127.0.0.1:{server.port}: Connection refused"
        assert received.waits == [received.error.message] * 3


class TestBrokenAnswers:
    @pytest.mark.parametrize(
        "broken",
        [
            Say(pieces=["Once ", "upon "], cut_after=2),
            Say(pieces=["Once ", "upon "], error={"message": "overloaded", "code": 503}),
            Say(pieces=["Once ", "upon "], finish_reason="", done=False, usage=None),
        ],
    )
    def test_cut_answer_keeps_its_text_and_is_not_retried(self, broken: Say) -> None:
        with ModelServer(broken) as server:
            received = ask(endpoint(server))
        assert received.pieces == ["Once ", "upon "]
        assert not received.has_reply
        assert isinstance(received.error, AnswerCut)
        assert received.error.message.startswith("the answer was cut off: ")
        assert len(server.requests) == 1

    def test_cut_reasoning_is_not_retried(self) -> None:
        with ModelServer(Say("x", reasoning="hmm", cut_after=1)) as server:
            received = ask(endpoint(server))
        assert received.thoughts == ["hmm"]
        assert isinstance(received.error, AnswerCut)

    @pytest.mark.parametrize(
        "garbage",
        [
            Raw([b"data: {not json}\n\n"]),
            Raw([b"data: [1, 2]\n\n"]),
            Raw([b"<html>Please log in</html>"], content_type="text/html"),
            Raw([b"\xff\xfe\x00" * 100], content_type="application/octet-stream"),
            Raw([b"{}"], content_type="application/json"),
            Raw([b"nonsense"], content_type="application/json"),
            Raw([b"[" * 100_000], content_type="application/json"),
        ],
    )
    def test_unreadable_answer_is_an_error_and_not_retried(self, garbage: Raw) -> None:
        with ModelServer(garbage) as server:
            assert isinstance(ask(endpoint(server)).error, ModelGarbled)
        assert len(server.requests) == 1

    def test_error_with_status_200_is_an_error(self) -> None:
        with ModelServer(Say(error={"message": "no such model", "code": "model_not_found"}, stream=False)) as server:
            assert isinstance(ask(endpoint(server)).error, UnknownModel)


class TestUnknownModels:
    def test_unknown_model_error_suggests_similar_names(self) -> None:
        refusal = Fail(404, {"error": {"message": "no", "code": "model_not_found"}})
        models = ["openai/gpt-5", "openai/gpt-5-mini", "llama3.2"]
        with ModelServer(refusal, models=models) as server:
            error = ask(endpoint(server, choice=choice_of(server, name="gpt5-mini", api_key="k"))).error
        assert error is not None
        assert error.hint == "similar models: openai/gpt-5-mini; set model.default to one"
        assert server.visits[-1].headers["authorization"] == "Bearer k"

    def test_unknown_model_error_works_without_a_model_list(self) -> None:
        refusal = Fail(404, {"error": {"message": "no", "code": "model_not_found"}})
        with ModelServer(refusal, models=[]) as server:
            error = ask(endpoint(server)).error
        assert error is not None
        assert error.hint.startswith("set model.default in config.yaml to a model that the provider has")


def test_redirect_does_not_forward_the_key() -> None:
    with (
        ModelServer() as other,
        ModelServer(Fail(307, headers={"Location": f"{other.base_url}/chat/completions"})) as server,
    ):
        error = ask(endpoint(server, choice=choice_of(server, api_key="k"))).error
    assert isinstance(error, ModelRefused)
    assert other.base_url in error.hint
    assert other.visits == []


def test_log_contains_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with ModelServer(Fail(503)) as server:
        choice = choice_of(server, base_url=f"{server.base_url}?token=t0ken", api_key="sk-s3cret", key_source="MY_KEY")
        ask(endpoint(server, choice=choice))
    assert "send_request_headers" in caplog.text
    assert not any(secret in caplog.text for secret in ("t0ken", "s3cret"))
    assert server.requests[0].path == "/v1/chat/completions?token=t0ken"


def test_server_behaviour_can_depend_on_the_request() -> None:
    def count(request: Received) -> Say:
        return Say(str(len(request.messages)))

    with ModelServer(otherwise=count) as server:
        assert ask(endpoint(server), [{"role": "user", "content": "a"}] * 3).reply.text == "3"
