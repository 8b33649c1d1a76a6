"""A worker that does its work in the background, soon after it is woken."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from hermes.log import warn


class BackgroundWorker:
    """Does its work on its own thread whenever it is woken; the thread ends when there is nothing more to do."""

    def __init__(self, work: Callable[[], bool], name: str) -> None:
        self._work = work
        """Does a part of the work; returns whether there may be more."""
        self._name = name
        self._thread: threading.Thread | None = None
        self._is_wanted = False
        self._start_over()

    def wake(self) -> None:
        """Start the work soon."""
        if self._process != os.getpid():
            self._start_over()  # threads do not survive a fork
        elif self._is_wanted and self._thread is not None:
            return  # the thread has yet to begin the work that it was woken for last
        with self._lock:
            self._is_wanted = True
            if self._thread is None and not self._is_closing:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Wait for the part that is being done, and do no more."""
        self._is_closing = True
        if self._process != os.getpid():
            return  # threads do not survive a fork, but the lock may be held
        with self._lock:  # so that a thread that is being started has been started
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _start_over(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._thread = None
        self._is_wanted = False
        self._is_closing = False

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._is_wanted or self._is_closing:
                    self._thread = None
                    return
                self._is_wanted = False
            try:
                while not self._is_closing and self._work():
                    pass
            except Exception as exc:  # noqa: BLE001 - a background thread has no caller that gets the error
                if not self._is_closing:
                    warn(__name__, "%s will be tried again: %s", self._name, exc)
