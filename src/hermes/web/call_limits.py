"""Limits of a call over the network: its time in total, and a user who cancels it.

Looking up a name, connecting and reading can each block for any time, and a server that sends one byte now and then
blocks for ever. Therefore the call runs on a thread of its own, and its caller leaves it at the time limit.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Protocol, TypeVar

from hermes.errors import WebError, WebTimeout

T = TypeVar("T")


class Cancellable(Protocol):
    """A token with which a user cancels a call."""

    def on_cancel(self, close: Callable[[], None], /) -> Callable[[], None]:
        """Call `close` on cancellation; return a function that unregisters it."""


class RunningCall:
    """A call that is running: its deadline, and its connection, which another thread can close."""

    def __init__(self, timeout_s: float) -> None:
        self._deadline = time.monotonic() + timeout_s
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._is_left = False

    @property
    def seconds_left(self) -> float:
        """The time until the deadline; raises `WebTimeout` if there is none."""
        left = self._deadline - time.monotonic()
        if left <= 0 or self._is_left:
            raise WebTimeout
        return left

    def keep(self, connection: socket.socket) -> None:
        """Keep a connection, so that `leave` can close it."""
        with self._lock:
            self._drop()
            # A second handle of the connection: TLS replaces the first one.
            self._socket = connection.dup()
            if self._is_left:
                self._shut_down()

    def leave(self) -> None:
        """Close the connection; the thread that uses it ends with an error."""
        with self._lock:
            self._is_left = True
            self._shut_down()

    def end(self) -> None:
        """Forget the connection."""
        with self._lock:
            self._drop()

    def _shut_down(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it is closed already
                self._socket.shutdown(socket.SHUT_RDWR)

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def run_limited(work: Callable[[RunningCall], T], timeout_s: float, cancellation: Cancellable | None = None) -> T:
    """Run a call on a thread of its own and return its result; raises `WebTimeout` at the time limit."""
    call = RunningCall(timeout_s)
    results: SimpleQueue[tuple[T] | BaseException | None] = SimpleQueue()

    def run() -> None:
        try:
            results.put((work(call),))
        except BaseException as error:  # noqa: BLE001 - the waiting caller must get every error
            results.put(error)
        finally:
            call.end()

    unregister = cancellation.on_cancel(lambda: results.put(None)) if cancellation else lambda: None
    # A daemon thread: it must not keep the process from ending.
    Thread(target=run, name="hermes-web", daemon=True).start()
    try:
        result = results.get(timeout=timeout_s)
    except Empty:
        raise WebTimeout(f"no complete response within {timeout_s:g} s") from None
    finally:
        unregister()
        call.leave()
    if result is None:
        raise WebError("the user stopped this turn", hint="")
    if isinstance(result, BaseException):
        raise result
    return result[0]
