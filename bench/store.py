"""The small port through which the workloads drive every store alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns

from bench.corpus import Message
from bench.questions import Question


@dataclass(frozen=True, slots=True)
class Page:
    """Which page of the session list to read."""

    by_activity: bool = False
    source: str | None = None
    cursor: str | None = None
    offset: int = 0
    limit: int = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """How many results a search gave, and whether it looked at everything."""

    results: int
    is_complete: bool = True


@dataclass(slots=True)
class Calls:
    """What a series of calls took, and those that failed."""

    nanoseconds: list[int]
    failures: list[str]


class Store(ABC):
    """An open store of one file."""

    has_keyset = False
    """Whether a page can start after a cursor instead of at an offset."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def create_session(self, session_id: str, source: str, user_id: str | None = None) -> None:
        """Add an empty session, perhaps somebody's."""

    @abstractmethod
    def append(self, session_id: str, message: Message) -> None:
        """Add one message durably."""

    @abstractmethod
    def close(self) -> None:
        """Finish everything that was acknowledged and let go of the file."""

    def append_many(self, session_id: str, messages: list[Message]) -> None:
        """Add several messages in one transaction."""
        raise Unsupported("no call for several messages at once")

    def fill(self, session_id: str, messages: list[Message]) -> None:
        """Give a new session its messages, as fast as the store allows."""
        self.append_many(session_id, messages)

    def load(self, session_id: str) -> int:
        """Read a conversation for replay, and say how many entries it has."""
        raise Unsupported("no call for a whole conversation")

    def count(self, session_id: str) -> int:
        """How many messages of a session are stored."""
        raise Unsupported("no call that counts messages")

    def list_page(self, page: Page) -> list[str]:
        """Read a page of the session list, and give the cursor (or id) of each row."""
        raise Unsupported("no session list")

    def search(self, question: Question) -> Answer:
        """Look for messages, and give them out as an application gets them."""
        raise Unsupported("no search")

    def unindexed(self) -> int:
        """How many messages are stored but in no index yet."""
        return 0

    def append_each(self, messages: Iterable[tuple[str, Message]]) -> Calls:
        """Append one message after the other, timing each call."""
        calls = Calls([], [])
        for session_id, message in messages:
            started = perf_counter_ns()
            try:
                self.append(session_id, message)
            except Exception as error:  # noqa: BLE001 - a store's errors have no common type; each is counted and shown
                calls.failures.append(f"{type(error).__name__}: {error}")
            calls.nanoseconds.append(perf_counter_ns() - started)
        return calls

    def append_batches(self, batches: Iterable[tuple[str, list[Message]]]) -> Calls:
        """Append one batch after the other, timing each call."""
        calls = Calls([], [])
        for session_id, messages in batches:
            started = perf_counter_ns()
            self.append_many(session_id, messages)
            calls.nanoseconds.append(perf_counter_ns() - started)
        return calls


class Unsupported(Exception):
    """The store has nothing that a workload could use."""
