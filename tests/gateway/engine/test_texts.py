"""The sentences that the engine writes."""

from __future__ import annotations

import pytest

from hermes.errors import HermesError, ModelError
from hermes.gateway.engine import texts


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (89, "89 seconds"),
        (90, "2 minutes"),
        (1800, "30 minutes"),
        (5400, "2 hours"),
        (86_400, "24 hours"),
    ],
)
def test_a_time_span_in_words(seconds: float, expected: str) -> None:
    assert texts.duration(seconds) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, "The turn failed. /retry tries again."),
        (HermesError("no luck."), "The turn failed: no luck. /retry tries again."),
        (HermesError("no luck", hint="wait a minute"), "The turn failed: no luck. Wait a minute."),
    ],
)
def test_the_reply_to_a_message_whose_turn_failed(error: HermesError | None, expected: str) -> None:
    assert texts.failed(error) == expected


@pytest.mark.parametrize("kind", [ModelError, *ModelError.__subclasses__()])
def test_an_error_of_a_model_names_no_address_and_no_setting(kind: type[ModelError]) -> None:
    text = texts.failed(kind("http://10.0.0.7:8000 refuses the key sk-1", hint="set model.base_url in config.yaml"))
    assert not [word for word in ("10.0.0.7", "sk-1", "base_url", "config.yaml") if word in text]
    assert text.startswith("The ")


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [("short", 10, "short"), ("a  b\nc", 10, "a b c"), ("x" * 11, 10, "xxxxxxx..."), ("", 5, "")],
)
def test_a_long_text_is_shortened_to_one_line(text: str, most: int, expected: str) -> None:
    assert texts.shorten(text, most) == expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("idle", "after 24 hours without a message"),
        ("daily", "by the daily reset at 04:00"),
        ("suspended", "was stopped"),
        (None, "was stopped"),
    ],
)
def test_a_user_learns_why_a_session_is_new_and_how_to_return(reason: str | None, expected: str) -> None:
    notice = texts.reset_notice(reason, 1440, 4)
    assert expected in notice
    assert "/resume" in notice


@pytest.mark.parametrize("reason", ["idle", "daily", "suspended", None])
def test_the_model_learns_that_earlier_context_is_absent(reason: str | None) -> None:
    note = texts.reset_note(reason)
    assert "without its context" in note
    assert "  " not in note
    assert "ended ." not in note


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("restart_timeout", "the gateway restarted"),
        ("shutdown_timeout", "was shut down"),
        ("restart_interrupted", "stopped unexpectedly"),
        ("unknown", "was interrupted"),
    ],
)
def test_the_note_of_a_resumed_turn_says_why_and_never_to_skip_the_work(reason: str, why: str) -> None:
    with_message = texts.resume_note(reason, has_message=True)
    without = texts.resume_note(reason, has_message=False)
    assert why in with_message
    assert why in without
    assert "reply to the message" in with_message
    assert "message" not in without.partition("it.")[2]
    assert "finish it" in without
    assert "check before you repeat it" in without


@pytest.mark.parametrize(("depth", "expected"), [(1, "Queued."), (2, "Queued. 2 messages waiting.")])
def test_the_acknowledgement_of_a_queued_message_says_how_many_wait(depth: int, expected: str) -> None:
    assert texts.queued(depth) == expected


def test_a_refusal_names_the_limit() -> None:
    assert "33 characters; at most 32" in texts.too_long(33, 32)
    assert "100 messages" in texts.queue_full(100)


def test_a_stopped_turn_names_the_limit_and_the_last_activity() -> None:
    assert "30 minutes (last activity: running terminal)" in texts.timed_out(1800, "running terminal")
    assert "last activity" not in texts.timed_out(1800, "")
    assert "after 2 hours" in texts.took_too_long(7200)
