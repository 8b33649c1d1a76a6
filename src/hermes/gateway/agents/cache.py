"""The conversations that a gateway keeps between turns, so that a turn need not open its session again."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, Protocol, TypeVar

MAX_ENTRIES = 128
IDLE_S = 3600.0
MAX_BYTES = 64 * 1024 * 1024


class Weighed(Protocol):
    """Something that knows how much memory it takes."""

    def weight(self) -> int:
        """Return the approximate number of bytes."""


C = TypeVar("C", bound=Weighed)


@dataclass(frozen=True, slots=True)
class Signature:
    """What a kept conversation must agree with: with another model, toolset or session it is opened again."""

    model: str
    provider: str
    base_url: str | None
    toolsets: frozenset[str]
    session_id: str


@dataclass(frozen=True, slots=True)
class CacheFigures:
    """The state of a cache, for metrics."""

    entries: int
    running: int
    bytes: int
    hits: int
    misses: int
    evictions: int


@dataclass(slots=True)
class _Entry(Generic[C]):
    value: C
    signature: Signature
    used_at: float
    weight: int
    is_borrowed: bool = False


class AgentCache(Generic[C]):
    """Keeps one conversation per lane, the most recently used ones, up to a number and an amount of memory.

    A borrowed conversation, in which a turn runs, is never dropped to make space, so the limits can be exceeded while
    many turns run. Threads may share a cache.
    """

    def __init__(
        self,
        max_entries: int = MAX_ENTRIES,
        idle_s: float = IDLE_S,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_entries = max_entries
        self._idle_s = idle_s
        self._max_bytes = max_bytes
        self._clock = clock
        self._entries: OrderedDict[str, _Entry[C]] = OrderedDict()
        """The least recently used first."""
        self._bytes = 0
        self._hits = 0
        self._misses = 0
        self._evictions = 0
        self._lock = Lock()

    def get(self, key: str, signature: Signature) -> C | None:
        """Return the conversation of a lane if it agrees with the signature; one that does not is dropped."""
        with self._lock:
            entry = self._find(key, signature)
            return None if entry is None else entry.value

    def put(self, key: str, signature: Signature, value: C) -> None:
        """Keep the conversation of a lane."""
        with self._lock:
            self._add(key, signature, value, is_borrowed=False)

    def borrow(self, key: str, signature: Signature) -> C | None:
        """Return the conversation of a lane for one turn, as `get` does; None while it is borrowed."""
        with self._lock:
            entry = self._find(key, signature)
            if entry is None or entry.is_borrowed:
                return None
            entry.is_borrowed = True
            return entry.value

    def lend(self, key: str, signature: Signature, value: C) -> None:
        """Keep a conversation that was opened for a turn and is in use until it is given back.

        While another one of the lane is borrowed, it is not kept.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or not entry.is_borrowed:
                self._add(key, signature, value, is_borrowed=True)

    def give_back(self, key: str, signature: Signature, value: C) -> None:
        """End the use of a borrowed conversation, which may be in another session by now.

        Nothing happens if it was evicted meanwhile.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.value is value:
                self._add(key, signature, value, is_borrowed=False)

    def evict(self, key: str, value: C | None = None) -> bool:
        """Drop the conversation of a lane, also a borrowed one; with `value`, only if it is that one."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or (value is not None and entry.value is not value):
                return False
            self._remove(key)
            return True

    def sweep(self) -> int:
        """Drop conversations that were not used for a while; return how many."""
        with self._lock:
            before = self._clock() - self._idle_s
            idle = [key for key, each in self._entries.items() if not each.is_borrowed and each.used_at < before]
            for key in idle:
                self._remove(key)
            return len(idle) + self._shrink()

    def clear(self) -> None:
        """Drop all conversations."""
        with self._lock:
            for key in list(self._entries):
                self._remove(key)

    def figures(self) -> CacheFigures:
        """Return the number of conversations, their memory, and how often they were found."""
        with self._lock:
            running = sum(each.is_borrowed for each in self._entries.values())
            return CacheFigures(len(self._entries), running, self._bytes, self._hits, self._misses, self._evictions)

    def _find(self, key: str, signature: Signature) -> _Entry[C] | None:
        entry = self._entries.get(key)
        if entry is not None and entry.signature != signature and not entry.is_borrowed:
            self._remove(key)
            entry = None
        if entry is None or entry.signature != signature:
            self._misses += 1
            return None
        self._hits += 1
        entry.used_at = self._clock()
        self._entries.move_to_end(key)
        return entry

    def _add(self, key: str, signature: Signature, value: C, *, is_borrowed: bool) -> None:
        old = self._entries.pop(key, None)
        self._bytes -= 0 if old is None else old.weight
        weight = max(0, value.weight())
        self._entries[key] = _Entry(value, signature, self._clock(), weight, is_borrowed)
        self._bytes += weight
        self._shrink()

    def _remove(self, key: str) -> None:
        self._bytes -= self._entries.pop(key).weight
        self._evictions += 1

    def _shrink(self) -> int:
        """Drop the least recently used conversations until the limits hold; return how many."""
        dropped = 0
        if not self._is_over():
            return dropped
        for key in [key for key, each in self._entries.items() if not each.is_borrowed]:
            if not self._is_over():
                break
            self._remove(key)
            dropped += 1
        return dropped

    def _is_over(self) -> bool:
        return len(self._entries) > self._max_entries or self._bytes > self._max_bytes
