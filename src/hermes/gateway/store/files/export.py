"""Files that follow the database: written soon after a change, in the background."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from hermes.errors import HermesError
from hermes.log import warn

DELAY_S = 0.3
"""How long after the first change the file is written; further changes until then are in the same file."""
RETRY_S = 5.0
CLOSE_S = 60.0


class Exporter:
    """Calls `write` in a background thread, soon after `mark` was called."""

    def __init__(self, write: Callable[[Callable[[], None]], None], *, delay_s: float = DELAY_S) -> None:
        self._write = write
        self._delay_s = delay_s
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._is_dirty = False
        self._is_closed = False
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def mark(self) -> None:
        """Note that something changed."""
        if self._is_dirty and self._process == os.getpid():
            return
        if self._process != os.getpid():  # a fork has neither the thread nor a usable lock
            self._changed, self._writing, self._thread = threading.Condition(), threading.Lock(), None
            self._process = os.getpid()
        with self._changed:
            if self._is_closed:
                return
            self._is_dirty = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="hermes-export", daemon=True)
                self._thread.start()
            self._changed.notify()

    def flush(self) -> None:
        """Write now, if something changed since the last time."""
        if self._process != os.getpid():
            return  # a fork has changed nothing, and its copy of the lock may be held for ever
        with self._writing:
            if self._is_dirty:
                self._is_dirty = False
                try:
                    self._write(lambda: None)
                except BaseException:
                    self._is_dirty = True
                    raise

    def close(self) -> None:
        """Write what changed, and stop."""
        if self._process != os.getpid():
            return
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._closing.set()
        if self._thread is not None:
            self._thread.join(CLOSE_S)
            if self._thread.is_alive():
                warn(__name__, "sessions.json was not written: the last export takes too long")
                return
        try:
            self.flush()
        except (HermesError, OSError) as error:
            warn(__name__, "sessions.json was not written: %s", error)

    def _run(self) -> None:
        while self._wait():
            try:
                with self._writing:
                    self._is_dirty = False
                    self._write(_Rest(self._closing).pause)
            except Exception as error:  # noqa: BLE001  the thread must live: it tries again
                self._is_dirty = True
                warn(__name__, "sessions.json was not written: %s", error)
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closed, RETRY_S)

    def _wait(self) -> bool:
        """Wait for a change and then for the delay; return False when closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_dirty or self._is_closed)
            self._changed.wait_for(lambda: self._is_closed, self._delay_s)
            return not self._is_closed


class _Rest:
    """Pauses an export, so that the other threads of the process have most of its time; a short one has less time."""

    SLICE_S = 0.002
    SHORT_S = 0.25

    def __init__(self, closing: threading.Event) -> None:
        self._closing = closing
        self._begun = self._started = time.thread_time()

    def pause(self) -> None:
        """Wait after every slice of work, unless the store is closing."""
        now = time.thread_time()
        worked = now - self._started
        if worked >= self.SLICE_S:
            self._closing.wait(worked if now - self._begun < self.SHORT_S else 3 * worked)
            self._started = time.thread_time()
