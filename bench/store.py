"""The interface through which the workloads use every store alike."""

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
    """How many results a search returned, and whether it was complete."""

    results: int
    is_complete: bool = True


@dataclass(slots=True)
class Calls:
    """The times of a series of calls, and those that failed."""

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
        """Add an empty session, perhaps with an owner."""

    @abstractmethod
    def append(self, session_id: str, message: Message) -> None:
        """Add one message durably."""

    @abstractmethod
    def close(self) -> None:
        """Finish everything that was acknowledged and close the file."""

    def append_many(self, session_id: str, messages: list[Message]) -> None:
        """Add several messages in one transaction."""
        raise Unsupported("no call for several messages at once")

    def fill(self, session_id: str, messages: list[Message]) -> None:
        """Add messages to a new session, as fast as the store allows."""
        self.append_many(session_id, messages)

    def load(self, session_id: str) -> int:
        """Read a conversation for replay, and return how many entries it has."""
        raise Unsupported("no call for a whole conversation")

    def count(self, session_id: str) -> int:
        """How many messages of a session are stored."""
        raise Unsupported("no call that counts messages")

    def list_page(self, page: Page) -> list[str]:
        """Read a page of the session list, and return the cursor (or id) of each row."""
        raise Unsupported("no session list")

    def fill_lanes(self, count: int) -> None:
        """Create lanes of so many private chats in a new file."""
        raise Unsupported("no lanes")

    def touch_lane(self, number: int) -> None:
        """Find the session of a chat, and note that its turn is over."""
        raise Unsupported("no lanes")

    def search(self, question: Question) -> Answer:
        """Search for messages, and return them as an application gets them."""
        raise Unsupported("no search")

    def unindexed(self) -> int:
        """How many messages are stored but not indexed yet."""
        return 0

    def settle(self) -> None:  # noqa: B027 - most stores index at once
        """Index what is stored but not indexed yet."""

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
    """The store does not support a workload."""
