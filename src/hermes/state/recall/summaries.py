"""Run a summarizer for several conversations at once, within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import NamedTuple

from hermes.state.rows import Row

Summarizer = Callable[[str, str, Row], str]
"""Takes a transcript, the query that found it and the session's metadata; returns a summary."""


class Summary(NamedTuple):
    """A summary, or the reason why there is none."""

    text: str | None
    error: str | None = None


class SummaryRequest(NamedTuple):
    """The input of a summarizer."""

    transcript: str
    topic: str
    metadata: Row


SummaryQueue = SimpleQueue[tuple[int, Summary]]


def summarize_all(summarizer: Summarizer, requests: Sequence[SummaryRequest], deadline: float) -> list[Summary]:
    """Return a summary of each request, in order; those that are not ready at `deadline` (`time.monotonic`) fail."""
    summaries: SummaryQueue = SimpleQueue()
    for number, request in enumerate(requests):
        # A summarizer that hangs must not stop the process from ending.
        Thread(target=_summarize, args=(summarizer, number, request, summaries), daemon=True).start()
    received: dict[int, Summary] = {}
    while len(received) < len(requests):
        try:
            number, summary = summaries.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        received[number] = summary
    late = Summary(None, "the summary was not ready in time")
    return [received.get(number, late) for number in range(len(requests))]


def _summarize(summarizer: Summarizer, number: int, request: SummaryRequest, summaries: SummaryQueue) -> None:
    try:
        text: object = summarizer(*request)
    except BaseException as error:  # noqa: BLE001 - the waiting caller must get every error
        summaries.put((number, Summary(None, f"{type(error).__name__}: {error}")))
        return
    if isinstance(text, str) and text.strip():
        summaries.put((number, Summary(text.strip())))
    else:
        summaries.put((number, Summary(None, "the summary is empty")))
