"""Trying again: whether, and after how long. Nothing here waits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from hermes.errors import AnswerCut, ModelError, ModelTimeout

Random = Callable[[], float]
"""Answers a number from 0 to 1."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a call is made, and how long is waited in between."""

    attempts: int = 4
    base_s: float = 1.0
    """The most that is waited after the first failure; it doubles with each one."""
    longest_s: float = 30.0
    """The most that is ever waited at once, also when the endpoint asks for more."""
    budget_s: float = 90.0
    """When so much time has gone by, the call is not made again."""


def pause_before_retry(
    failure: ModelError, attempt: int, elapsed_s: float, policy: RetryPolicy, random: Random
) -> float | None:
    """How long to wait after the failure of an attempt, counted from 1, or None to give up.

    What was seen cannot be taken back, and who has waited for the whole of a time limit is not made to wait again.
    """
    if not failure.retryable or isinstance(failure, AnswerCut | ModelTimeout) or attempt >= policy.attempts:
        return None
    backoff = random() * min(policy.longest_s, policy.base_s * 2 ** (attempt - 1))
    asked = failure.retry_after_s
    if asked is not None and asked > policy.longest_s:
        return None
    # A little above what is asked for, so that all who were sent away do not come back at once.
    pause = backoff if asked is None else asked + backoff / 10
    return pause if elapsed_s + pause <= policy.budget_s else None


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """How many seconds an endpoint wants to be left alone: a number or a date in its headers, by lower-case name."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    written = headers.get("retry-after", "").strip()
    seconds = _number(written)
    if seconds is None and written:
        try:
            seconds = parsedate_to_datetime(written).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return None if seconds is None else max(0.0, seconds)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(number) else number
