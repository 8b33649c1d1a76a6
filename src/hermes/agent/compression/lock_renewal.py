"""The compression lock of a session, renewed while a compression runs."""

from __future__ import annotations

import os
import socket
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hermes.errors import StaleLease, StoreError
from hermes.log import warn

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.state.owner_view import OwnerView


MAX_RENEWALS = 100
"""A limit, so that a hanging compression does not hold the lock forever."""


class LockRenewal:
    """A context manager that holds a session's compression lock; a thread renews it and calls `lost` on loss."""

    def __init__(self, store: OwnerView, session_id: str, ttl_s: float, lost: Callable[[], None]) -> None:
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{os.urandom(6).hex()}"
        self.is_held = False
        """Whether this process holds the lock."""
        self._store = store
        self._session_id = session_id
        self._ttl_s = ttl_s
        self._lost = lost
        self._over = Event()

    def __enter__(self) -> Self:
        self.is_held = self._store.try_acquire_compression_lock(self._session_id, self.holder, self._ttl_s)
        if self.is_held:
            Thread(target=self._renew, name="hermes-compression-lock", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        try:
            self._store.release_compression_lock(self._session_id, self.holder)
        except StoreError as failure:
            warn(
                __name__,
                "the compression lock of session %s was not released and will expire: %s",
                self._session_id,
                failure,
            )

    def _renew(self) -> None:
        for _ in range(MAX_RENEWALS):
            if self._over.wait(self._ttl_s / 3):
                return
            try:
                self.is_held = self._store.renew_compression_lock(self._session_id, self.holder, self._ttl_s)
            except StoreError as failure:
                # Two more attempts follow before the lock expires, and the transaction itself checks it again.
                warn(__name__, "the compression lock of session %s was not renewed: %s", self._session_id, failure)
                continue
            except StaleLease:  # another node has the lane now
                self.is_held = False
            if not self.is_held:
                self._lost()
                return
