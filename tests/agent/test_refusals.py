"""Error responses of endpoints, and the errors that users see."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.agent.models.choice import ModelChoice
from hermes.agent.models.http.errors import read_error_event, read_error_response, to_connection_error, to_model_error
from hermes.agent.models.http.http_call import ConnectionFailure
from hermes.errors import (
    ContextTooLong,
    CreditSpent,
    ModelBusy,
    ModelError,
    ModelKeyRefused,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    UnknownModel,
)

KEY = "sk-proj-0123456789abcdef"
OPENAI = ModelChoice("openai", "gpt-5-mini", "https://api.openai.com/v1", KEY, "OPENAI_API_KEY")
CUSTOM = ModelChoice("custom", "m", "https://ada:pa55word@models.example/v1?token=t0ken-t0ken")


def refused(status: int, body: Any = None, choice: ModelChoice = OPENAI, **headers: str) -> ModelError:
    data = body.encode() if isinstance(body, str) else json.dumps(body or {}).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return to_model_error(read_error_response(status, names, data, choice, now=0.0), choice)


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


class TestMeaning:
    @pytest.mark.parametrize(
        ("status", "body", "kind"),
        [
            (400, error("This model's maximum context length is 128000 tokens."), ContextTooLong),
            (400, error("x", code="context_length_exceeded"), ContextTooLong),
            (400, {"type": "error", **error("prompt is too long: 210000 tokens > 200000 maximum")}, ContextTooLong),
            (400, error("too big", type="exceed_context_size_error"), ContextTooLong),
            (400, error("The input token count (9) exceeds the maximum number of tokens allowed (8)."), ContextTooLong),
            (400, {"object": "error", "message": "Please reduce the length of the messages."}, ContextTooLong),
            (413, "Request Entity Too Large", ContextTooLong),
            (402, error("Insufficient credits", code=402), CreditSpent),
            (429, error("You exceeded your current quota", code="insufficient_quota"), CreditSpent),
            (400, error("Your credit balance is too low to access the API."), CreditSpent),
            (401, error("Incorrect API key provided", code="invalid_api_key"), ModelKeyRefused),
            (403, error("Country not supported"), ModelKeyRefused),
            (403, error("Project does not have access to it.", code="model_not_found"), UnknownModel),
            (400, "[" * 60_000, ModelRefused),
            (404, error("The model `gpt-9` does not exist or you do not have access to it."), UnknownModel),
            (404, error("x", code="model_not_found"), UnknownModel),
            (404, {"type": "error", "error": {"type": "not_found_error", "message": "model: claude-9"}}, UnknownModel),
            (404, error('model "llama9" not found, try pulling it first'), UnknownModel),
            (400, error("foo/bar is not a valid model ID", code=400), UnknownModel),
            (404, error("No endpoints found for foo/bar.", code=404), UnknownModel),
            (404, "404 page not found", ModelRefused),
            (405, "Method Not Allowed", ModelRefused),
            (400, error("messages: roles must alternate", type="invalid_request_error"), ModelRefused),
            (418, "", ModelRefused),
            (429, error("Rate limit reached for requests"), ModelBusy),
            (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, ModelBusy),
            (408, "", ModelUnavailable),
            (409, "", ModelUnavailable),
            (425, "", ModelUnavailable),
            (500, error("The server had an error"), ModelUnavailable),
            (502, "<html><title>502 Bad Gateway</title></html>", ModelUnavailable),
            (503, "", ModelUnavailable),
            (504, "", ModelUnavailable),
            (520, "", ModelUnavailable),
        ],
    )
    def test_status_and_text_give_the_right_error(self, status: int, body: Any, kind: type[ModelError]) -> None:
        assert type(refused(status, body)) is kind

    @pytest.mark.parametrize(
        ("content", "kind"),
        [
            ({"error": {"message": "Provider returned error", "code": 502}}, ModelUnavailable),
            ({"error": {"message": "slow down", "code": "429"}}, ModelBusy),
            ({"error": {"message": "x", "code": "rate_limit_exceeded"}}, ModelBusy),
            ({"error": {"type": "overloaded_error", "message": "Overloaded"}}, ModelBusy),
            ({"error": {"message": "x", "code": "context_length_exceeded"}}, ContextTooLong),
            ({"error": {"message": "bad", "type": "invalid_request_error"}}, ModelRefused),
            ({"error": "unexpected EOF"}, ModelUnavailable),
            ({"message": "lost"}, ModelUnavailable),
            ([{"error": {"code": 503, "message": "x"}}], ModelUnavailable),
        ],
    )
    def test_error_event_gives_the_right_error(self, content: Any, kind: type[ModelError]) -> None:
        assert type(to_model_error(read_error_event(content, OPENAI), OPENAI)) is kind

    def test_retryable_error_has_its_wait_time(self) -> None:
        assert refused(429, retry_after="7").retry_after_s == 7.0
        assert refused(503, retry_after="7").retry_after_s == 7.0
        assert refused(429).retry_after_s is None

    def test_html_page_is_quoted_by_its_title(self) -> None:
        assert "502 Bad Gateway" in refused(502, "<html><title>502 Bad Gateway</title><p>long</p></html>").message

    def test_redirect_is_named_and_not_followed(self) -> None:
        moved = refused(308, location="https://elsewhere.example/v1/chat/completions?key=x")
        assert isinstance(moved, ModelRefused)
        assert (
            moved.hint == "if that address is right, set model.base_url in config.yaml to https://elsewhere.example/v1"
        )


class TestAdvice:
    def test_refused_key_is_named_by_its_source(self) -> None:
        failure = refused(401, error(f"Incorrect API key provided: {KEY}."))
        assert failure.message == "api.openai.com does not accept the key from OPENAI_API_KEY"
        assert failure.hint == "set OPENAI_API_KEY to a key that is valid there"

    def test_missing_key_is_named_in_the_hint(self) -> None:
        failure = refused(401, choice=ModelChoice("custom", "m", "http://10.0.0.7:8000/v1", section="model.auxiliary"))
        assert failure.message == "10.0.0.7:8000 requires a key, and none is set"
        assert failure.hint == "set model.auxiliary.api_key in config.yaml"

    def test_wrong_path_gets_a_hint_about_v1(self) -> None:
        failure = refused(404, "404 page not found", ModelChoice("custom", "m", "http://10.0.0.7:11434"))
        assert "there is no /chat/completions at http://10.0.0.7:11434" in failure.message
        assert failure.hint == "correct model.base_url in config.yaml; it usually ends with /v1"

    def test_unknown_model_is_named(self) -> None:
        failure = refused(404, error("x", code="model_not_found"))
        assert "api.openai.com has no model gpt-5-mini" in failure.message
        assert "model.default" in failure.hint


class TestSecrets:
    @pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
    @pytest.mark.parametrize(
        "content", [KEY, f"key {KEY}!", f"Bearer {KEY}", "sk-or-v1-zzzzzzzzzz", "sk-proj-****cdef"]
    )
    def test_key_is_never_quoted(self, status: int, content: str) -> None:
        text = str(refused(status, error(f"something about {content} was wrong")))
        assert KEY not in text
        assert "sk-" not in text

    def test_secrets_of_an_address_are_never_quoted(self) -> None:
        for failure in (refused(404, "no", CUSTOM), refused(500, "at ada:pa55word with t0ken-t0ken", CUSTOM)):
            assert not any(secret in str(failure) for secret in ("pa55word", "t0ken"))
            assert "models.example" in str(failure)

    def test_quoted_text_is_one_short_line(self) -> None:
        text = refused(400, error("a\n\x1b[31m\u202eb" + "c" * 5_000)).message
        assert "a [31m b" in text
        assert text.isprintable()
        assert len(text) < 500

    @pytest.mark.parametrize(
        "body", ["[]", "7", '"text"', "null", '{"error": [1]}', '{"error": {"message": {"a": 1}}}']
    )
    def test_any_json_body_is_accepted(self, body: str) -> None:
        assert isinstance(refused(400, body), ModelRefused)


class TestBreaks:
    @pytest.mark.parametrize(
        ("how", "kind"),
        [
            ("unconnected", ModelUnavailable),
            ("cut", ModelUnavailable),
            ("silent", ModelTimeout),
            ("untrusted", ModelRefused),
            ("impossible", ModelRefused),
        ],
    )
    def test_each_connection_failure_has_its_error(self, how: Any, kind: type[ModelError]) -> None:
        failure = to_connection_error(ConnectionFailure(how, "because"), OPENAI)
        assert type(failure) is kind
        assert "api.openai.com" in failure.message

    def test_missing_local_server_gets_a_hint_to_start_it(self) -> None:
        local = ModelChoice("ollama", "llama3.2", "http://127.0.0.1:11434/v1")
        assert to_connection_error(ConnectionFailure("unconnected", "Connection refused"), local).hint.startswith(
            "start ollama"
        )
