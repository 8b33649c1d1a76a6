"""What has come of an answer, stored about once a second while it streams, so that no kill takes it away."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self

from hermes.log import warn

EVERY_S = 0.9
"""With the time of a write, what is shown is stored within a second."""


class PartialAnswerSaver:
    """Calls `keep` every `every_s` on a thread of its own, from the first piece of an answer to its end.

    The thread also stores the last words before a pause, which no further piece would bring along.
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
        """Start with the first piece; later ones change nothing."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="hermes-answer", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            while not self._ended.wait(self._every_s):
                self._keep()
        except Exception as error:  # noqa: BLE001 - the end of the answer is stored anyway, and says what is wrong
            warn(__name__, "an answer is stored only at its end: %s: %s", type(error).__name__, error)
