"""Shortcuts to fill a store and to read its results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from hermes.state.owner_view import OwnerView
from hermes.state.provider import SessionDBProvider
from hermes.state.rows import AnyRow
from tests.support.clock import FakeClock

T = TypeVar("T")

Row = dict[str, Any]

CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}},
    {"id": "c2", "type": "function", "function": {"name": "read_file", "arguments": "{}"}},
]
"""Tool calls, as models make them."""
PICTURE = [
    {"type": "text", "text": "what is this? 世界"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
]
"""Content with a picture."""


def start(store: SessionDBProvider, *session_ids: str, source: str = "cli", **fields: Any) -> str:
    """Create sessions and return the id of the last."""
    for session_id in session_ids:
        store.create_session(session_id, source, **fields)
    return session_ids[-1]


def start_apart(store: SessionDBProvider, clock: FakeClock, *session_ids: str, **fields: Any) -> None:
    """Create sessions a second apart."""
    for session_id in session_ids:
        clock.advance(1)
        start(store, session_id, **fields)


def say(store: SessionDBProvider, session_id: str, *texts: Any, role: str = "user") -> list[int]:
    """Append messages of one role."""
    return [store.append_message(session_id, role, text) for text in texts]


def talk(store: SessionDBProvider, session_id: str, turns: int) -> list[int]:
    """Append turns of a question and an answer; return all message ids."""
    found = []
    for turn in range(turns):
        found += say(store, session_id, f"question {turn}")
        found += say(store, session_id, f"answer {turn}", role="assistant")
    return found


def compress(store: SessionDBProvider, clock: FakeClock, session_id: str, child_id: str, **fields: Any) -> str:
    """Continue a conversation in a new session, like compression does."""
    store.end_session(session_id, "compression")
    clock.advance(1)
    return store.create_session(child_id, "cli", parent_session_id=session_id, **fields)


def session_of(store: SessionDBProvider | OwnerView, session_id: str) -> Row:
    """A session that must exist."""
    row = store.get_session(session_id)
    assert row is not None, f"session {session_id!r} is missing"
    return {**row}


def exported(store: SessionDBProvider, session_id: str, *, include_inactive: bool = False) -> Row:
    """The export of a session that must exist."""
    data = store.export_session(session_id, include_inactive)
    assert data is not None, f"session {session_id!r} is missing"
    return {**data}


def column(rows: Iterable[AnyRow], name: str) -> list[Any]:
    """One column of some rows."""
    return [row[name] for row in rows]


def ids(rows: Iterable[AnyRow]) -> list[Any]:
    """The ids of some rows."""
    return column(rows, "id")


def contents(rows: Iterable[AnyRow]) -> list[Any]:
    """The contents of some messages."""
    return column(rows, "content")


def only_message(store: SessionDBProvider, session_id: str) -> Row:
    """The one message of a session."""
    (message,) = store.get_messages(session_id)
    return {**message}


def at_once(count: int, work: Callable[[int], T]) -> list[T]:
    """Run `work(0)`, `work(1)`, ... on `count` threads that start together; return their results in order."""
    barrier = threading.Barrier(count)
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def run(number: int) -> None:
        barrier.wait(timeout=10)
        try:
            results[number] = work(number)
        except BaseException as exc:  # noqa: BLE001 - raised again below, on the thread of the test
            errors.append(exc)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return [results[number] for number in range(count)]


def known(store: SessionDBProvider | OwnerView) -> set[str]:
    """The ids of all sessions."""
    return set(ids(store.search_sessions(limit=-1)))


def start_ended(store: SessionDBProvider, *session_ids: str, source: str = "cli") -> None:
    """Create sessions that have a message and are ended."""
    for session_id in session_ids:
        start(store, session_id, source=source)
        say(store, session_id, "x")
        store.end_session(session_id, "user_exit")
