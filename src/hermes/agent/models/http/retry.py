"""Decides whether and when to retry a call; nothing here waits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from hermes.errors import AnswerCut, ModelError, ModelTimeout

Random = Callable[[], float]
"""Returns a number from 0 to 1."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to try a call, and how long to wait in between."""

    attempts: int = 4
    base_s: float = 1.0
    """The longest wait after the first failure; it doubles with each failure."""
    longest_s: float = 30.0
    """The longest single wait, even if the endpoint asks for more."""
    budget_s: float = 90.0
    """After so much time in total, the call is not retried."""


def pause_before_retry(
    failure: ModelError, attempt: int, elapsed_s: float, policy: RetryPolicy, random: Random
) -> float | None:
    """Return how long to wait after a failed attempt (counted from 1), or None to give up.

    A cut answer is not retried, because the user has seen its text; nor is a timeout, because the user has waited long.
    """
    if not failure.retryable or isinstance(failure, AnswerCut | ModelTimeout) or attempt >= policy.attempts:
        return None
    backoff = random() * min(policy.longest_s, policy.base_s * 2 ** (attempt - 1))
    requested = failure.retry_after_s
    if requested is not None and requested > policy.longest_s:
        return None
    # A little longer than requested, so that clients do not all return at the same moment.
    pause = backoff if requested is None else requested + backoff / 10
    return pause if elapsed_s + pause <= policy.budget_s else None


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that an endpoint asks to wait: a number or a date in its headers, by lower-case name."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    if seconds is None and text:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return None if seconds is None else max(0.0, seconds)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(number) else number
