"""Saves a streaming answer about once a second, so that a killed process loses almost nothing."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self

from hermes.log import warn

EVERY_S = 0.7
"""Including the write itself, also on a busy disk, displayed text is stored within a second."""


class PartialAnswerSaver:
    """Calls `keep` every `every_s` on its own thread, from the first piece of an answer to its end.

    A thread also stores the last words before a pause, when no further piece arrives.
    """

    def __init__(self, keep: Callable[[], None], every_s: float = EVERY_S) -> None:
        self._keep = keep
        self._every_s = every_s
        self._ended = Event()
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def begin(self) -> None:
        """Start the thread at the first piece of an answer; further calls do nothing."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="hermes-answer", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            while not self._ended.wait(self._every_s):
                self._keep()
        except Exception as error:  # noqa: BLE001 - the whole answer is stored at its end, which reports the error
            warn(__name__, "partial answers are not stored, only the complete one: %s: %s", type(error).__name__, error)
