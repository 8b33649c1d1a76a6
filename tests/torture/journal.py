"""The reports of writers before and after each operation, and what must therefore be stored.

A session belongs to one writing thread, which reports each step before it begins and after the call returned. If a
thread dies in between, its session must be in one of two states. The shared session belongs to all threads, which only
append to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal, NamedTuple

SHARED = "shared"

Kind = Literal["create", "append", "replace", "rewind", "restore", "title", "delete"]


class Message(NamedTuple):
    """A message, by the word that no other has."""

    word: str
    is_active: bool = True

    @property
    def uid(self) -> str | None:
        """The uid, which makes an append repeatable; every second message has one."""
        return f"uid of {self.word}" if self.word[-1] in "acegikmoqsuwy" else None


class State(NamedTuple):
    """What a session holds."""

    messages: tuple[Message, ...] = ()
    title: str | None = None


class Step(NamedTuple):
    """One operation on one session."""

    kind: Kind
    session: str
    messages: tuple[Message, ...] = ()
    start: int = 0
    """The position in the session from which messages are undone or restored."""
    title: str | None = None


def after(state: State | None, step: Step) -> State | None:
    """The state of a session after a step; None means that the session does not exist."""
    match step.kind:
        case "create":
            return state or State()
        case "delete":
            return None
    assert state is not None, f"{step.session} is written to before it is made"
    match step.kind:
        case "append":
            return state._replace(messages=(*state.messages, *step.messages))
        case "replace":
            return state._replace(messages=step.messages)
        case "title":
            return state._replace(title=step.title)
        case "rewind" | "restore":
            kept, changed = state.messages[: step.start], state.messages[step.start :]
            is_active = step.kind == "restore"
            return state._replace(messages=(*kept, *(each._replace(is_active=is_active) for each in changed)))


def begun(stream: str, step: Step) -> str:
    """The line for a step that is about to begin."""
    return json.dumps(["begun", stream, step])


def done(stream: str) -> str:
    """The line for a call that returned."""
    return json.dumps(["done", stream])


def failed(stream: str, why: str) -> str:
    """The line for a call that raised, so nothing was written."""
    return json.dumps(["failed", stream, why])


def wrong(stream: str, what: str) -> str:
    """The line for a wrong result of a read or a search."""
    return json.dumps(["wrong", stream, what])


def ready(stream: str) -> str:
    """The line of a writer that has opened the store and waits to be released."""
    return json.dumps(["ready", stream])


def took(stream: str, milliseconds: float) -> str:
    """The line for the time that a call took."""
    return json.dumps(["took", stream, milliseconds])


class Journal:
    """The reports of all writers of one store."""

    def __init__(self) -> None:
        self.shared: set[str] = set()
        """The words that are acknowledged in the shared session."""
        self.ready = 0
        self.slowest_ms = 0.0
        self.failures: list[str] = []
        self.complaints: list[str] = []
        self._states: dict[str, State | None] = {}
        self._pending: dict[str, Step] = {}

    def record(self, line: str) -> None:
        """Record a line of a writer."""
        what, stream, *rest = json.loads(line)
        match what:
            case "begun":
                kind, session, messages, *more = rest[0]
                self._pending[stream] = Step(kind, session, tuple(Message(*each) for each in messages), *more)
            case "done":
                self._finish_step(self._pending.pop(stream))
            case "failed":
                del self._pending[stream]
                self.failures.append(rest[0])
            case "ready":
                self.ready += 1
            case "took":
                self.slowest_ms = max(self.slowest_ms, rest[0])
            case _:
                self.complaints.append(f"{stream}: {rest[0]}")

    def possible(self) -> Iterator[tuple[str, list[State | None]]]:
        """Every session of a single writer, with the states that it may be in."""
        pending = {step.session: step for step in self._pending.values() if step.session != SHARED}
        for session in dict.fromkeys([*self._states, *pending]):
            now = self._states.get(session)
            yield session, [now, after(now, pending[session])] if session in pending else [now]

    def owed(self, stream: str) -> tuple[Message, ...]:
        """The messages that a writer was appending to the shared session in its last report."""
        step = self._pending.get(stream)
        return step.messages if step is not None and step.session == SHARED else ()

    def maybe_shared(self) -> set[str]:
        """Words that may be in the shared session, but need not be."""
        return {message.word for stream in self._pending for message in self.owed(stream)} - self.shared

    def _finish_step(self, step: Step) -> None:
        if step.session == SHARED:
            self.shared |= {message.word for message in step.messages}
        else:
            self._states[step.session] = after(self._states.get(step.session), step)
