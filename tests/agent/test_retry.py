"""Whether a call is made again, and after how long."""

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
    def test_it_doubles_up_to_what_chance_makes_of_it(self, attempt: int, most: float) -> None:
        assert pause(ModelUnavailable(), attempt) == most
        assert pause(ModelUnavailable(), attempt, luck=0.5) == most / 2
        assert pause(ModelUnavailable(), attempt, luck=0.0) == 0.0

    def test_it_never_grows_beyond_the_longest(self) -> None:
        policy = RetryPolicy(attempts=50, longest_s=30.0, budget_s=1e9)
        assert pause_before_retry(ModelBusy(), 40, 0.0, policy, lambda: 1.0) == 30.0

    def test_the_last_attempt_is_the_last(self) -> None:
        assert pause(ModelUnavailable(), 4) is None

    def test_one_attempt_is_one(self) -> None:
        assert pause_before_retry(ModelBusy(), 1, 0.0, RetryPolicy(attempts=1), lambda: 0.0) is None

    def test_nothing_is_tried_when_the_budget_would_be_spent(self) -> None:
        assert pause(ModelUnavailable(), elapsed_s=89.5, luck=0.4) == 0.4
        assert pause(ModelUnavailable(), elapsed_s=89.5, luck=0.6) is None

    @pytest.mark.parametrize("failure", [ModelKeyRefused(), ContextTooLong(), ModelError()])
    def test_what_will_not_change_is_not_tried_again(self, failure: ModelError) -> None:
        assert pause(failure) is None

    @pytest.mark.parametrize("failure", [AnswerCut(), ModelTimeout()])
    def test_what_was_seen_or_waited_for_is_not_tried_again(self, failure: ModelError) -> None:
        assert failure.retryable
        assert pause(failure) is None

    def test_what_the_endpoint_asks_for_is_waited(self) -> None:
        assert pause(ModelBusy(retry_after_s=7.0), luck=0.0) == 7.0
        assert pause(ModelBusy(retry_after_s=7.0)) == pytest.approx(7.1)

    def test_an_endpoint_that_asks_for_too_much_is_left(self) -> None:
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
    def test_a_header(self, headers: dict[str, str], seconds: float | None) -> None:
        assert read_retry_after(headers, NOW) == seconds
