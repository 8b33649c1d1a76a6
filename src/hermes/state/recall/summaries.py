"""Summaries: made by somebody else, all at once, and never waited for beyond a limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import NamedTuple

from hermes.state.rows import Row

Summarizer = Callable[[str, str, Row], str]
"""Takes a transcript, what it was found for and the session's metadata; answers a summary."""


class Summary(NamedTuple):
    """A summary, or why there is none."""

    text: str | None
    error: str | None = None


class SummaryRequest(NamedTuple):
    """What a summarizer is given."""

    transcript: str
    topic: str
    metadata: Row


SummaryQueue = SimpleQueue[tuple[int, Summary]]


def summarize_all(summarizer: Summarizer, requests: Sequence[SummaryRequest], deadline: float) -> list[Summary]:
    """A summary of each, in order; at the deadline, a moment of `time.monotonic`, those that are there count."""
    answers: SummaryQueue = SimpleQueue()
    for number, request in enumerate(requests):
        # One that hangs must not keep the process from ending.
        Thread(target=_summarize, args=(summarizer, number, request, answers), daemon=True).start()
    received: dict[int, Summary] = {}
    while len(received) < len(requests):
        try:
            number, summary = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        received[number] = summary
    late = Summary(None, "the summary was not ready in time")
    return [received.get(number, late) for number in range(len(requests))]


def _summarize(summarizer: Summarizer, number: int, request: SummaryRequest, answers: SummaryQueue) -> None:
    try:
        said: object = summarizer(*request)
    except BaseException as error:  # noqa: BLE001 - the one who waits must hear of it, whatever it is
        answers.put((number, Summary(None, f"{type(error).__name__}: {error}")))
        return
    if isinstance(said, str) and said.strip():
        answers.put((number, Summary(said.strip())))
    else:
        answers.put((number, Summary(None, "the summary is empty")))
