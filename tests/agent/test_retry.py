"""Whether and when a call is retried."""

from __future__ import annotations

import pytest

from hermes.agent.models.http.retry import RetryPolicy, pause_before_retry, read_retry_after
from hermes.errors import (
    AnswerCut,
    ContextTooLong,
    ModelBusy,
    ModelError,
    ModelKeyRefused,
    ModelTimeout,
    ModelUnavailable,
)

POLICY = RetryPolicy(attempts=4, base_s=1.0, longest_s=30.0, budget_s=90.0)
NOW = 1_445_412_480.0
"""Wed, 21 Oct 2015 07:28:00 GMT"""


def pause(failure: ModelError, attempt: int = 1, *, elapsed_s: float = 0.0, luck: float = 1.0) -> float | None:
    return pause_before_retry(failure, attempt, elapsed_s, POLICY, lambda: luck)


class TestPause:
    @pytest.mark.parametrize(("attempt", "most"), [(1, 1.0), (2, 2.0), (3, 4.0)])
    def test_pause_doubles_with_random_jitter(self, attempt: int, most: float) -> None:
        assert pause(ModelUnavailable(), attempt) == most
        assert pause(ModelUnavailable(), attempt, luck=0.5) == most / 2
        assert pause(ModelUnavailable(), attempt, luck=0.0) == 0.0

    def test_pause_has_a_maximum(self) -> None:
        policy = RetryPolicy(attempts=50, longest_s=30.0, budget_s=1e9)
        assert pause_before_retry(ModelBusy(), 40, 0.0, policy, lambda: 1.0) == 30.0

    def test_no_retry_after_the_last_attempt(self) -> None:
        assert pause(ModelUnavailable(), 4) is None

    def test_policy_of_one_attempt_never_retries(self) -> None:
        assert pause_before_retry(ModelBusy(), 1, 0.0, RetryPolicy(attempts=1), lambda: 0.0) is None

    def test_no_retry_beyond_the_time_budget(self) -> None:
        assert pause(ModelUnavailable(), elapsed_s=89.5, luck=0.4) == 0.4
        assert pause(ModelUnavailable(), elapsed_s=89.5, luck=0.6) is None

    @pytest.mark.parametrize("failure", [ModelKeyRefused(), ContextTooLong(), ModelError()])
    def test_permanent_failure_is_not_retried(self, failure: ModelError) -> None:
        assert pause(failure) is None

    @pytest.mark.parametrize("failure", [AnswerCut(), ModelTimeout()])
    def test_cut_answer_and_timeout_are_not_retried(self, failure: ModelError) -> None:
        assert failure.retryable
        assert pause(failure) is None

    def test_requested_wait_is_respected(self) -> None:
        assert pause(ModelBusy(retry_after_s=7.0), luck=0.0) == 7.0
        assert pause(ModelBusy(retry_after_s=7.0)) == pytest.approx(7.1)

    def test_too_long_requested_wait_is_not_retried(self) -> None:
        assert pause(ModelBusy(retry_after_s=30.0), luck=0.0) == 30.0
        assert pause(ModelBusy(retry_after_s=31.0)) is None


class TestRetryAfter:
    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({"retry-after": "7"}, 7.0),
            ({"retry-after": " 0.5 "}, 0.5),
            ({"retry-after": "-3"}, 0.0),
            ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}, 30.0),
            ({"retry-after": "Wed, 21 Oct 2015 07:00:00 GMT"}, 0.0),
            ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
            ({"retry-after": "soon"}, None),
            ({"retry-after": "nan"}, None),
            ({"retry-after": ""}, None),
            ({}, None),
        ],
    )
    def test_retry_after_header_is_parsed(self, headers: dict[str, str], seconds: float | None) -> None:
        assert read_retry_after(headers, NOW) == seconds
