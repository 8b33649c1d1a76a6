"""What writers said before and after each operation, and what must therefore be stored.

A session belongs to one writing thread, which says each step before it begins it and when the call has returned. A
thread that dies in between leaves a session in one of two states and in no other. The shared session belongs to all,
who only append to it.
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
        """What makes it repeatable: every second message has a uid."""
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
    """The message from which on others are hidden or shown, by its place in the session."""
    title: str | None = None


def after(state: State | None, step: Step) -> State | None:
    """What a session holds after a step; None is a session that does not exist."""
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
    """The line that says what a writer is about to do."""
    return json.dumps(["begun", stream, step])


def done(stream: str) -> str:
    """The line that says that the call has returned."""
    return json.dumps(["done", stream])


def failed(stream: str, why: str) -> str:
    """The line that says that the call has raised, which means that nothing was written."""
    return json.dumps(["failed", stream, why])


def wrong(stream: str, what: str) -> str:
    """The line of a writer that was told something untrue."""
    return json.dumps(["wrong", stream, what])


def ready(stream: str) -> str:
    """The line of a writer that has opened the store and waits."""
    return json.dumps(["ready", stream])


def took(stream: str, milliseconds: float) -> str:
    """The line that says how long a call took."""
    return json.dumps(["took", stream, milliseconds])


class Journal:
    """All that was heard from the writers of one store."""

    def __init__(self) -> None:
        self.shared: set[str] = set()
        """The words that are acknowledged in the session of all."""
        self.ready = 0
        self.slowest_ms = 0.0
        self.failures: list[str] = []
        self.complaints: list[str] = []
        self._states: dict[str, State | None] = {}
        self._pending: dict[str, Step] = {}

    def hear(self, line: str) -> None:
        """Take a line of a writer in."""
        what, stream, *rest = json.loads(line)
        match what:
            case "begun":
                kind, session, messages, *more = rest[0]
                self._pending[stream] = Step(kind, session, tuple(Message(*each) for each in messages), *more)
            case "done":
                self._settle(self._pending.pop(stream))
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
        """Every session that has one owner, with the states that it may be in."""
        pending = {step.session: step for step in self._pending.values() if step.session != SHARED}
        for session in dict.fromkeys([*self._states, *pending]):
            now = self._states.get(session)
            yield session, [now, after(now, pending[session])] if session in pending else [now]

    def owed(self, stream: str) -> tuple[Message, ...]:
        """What a writer was appending to the shared session when it was last heard of."""
        step = self._pending.get(stream)
        return step.messages if step is not None and step.session == SHARED else ()

    def maybe_shared(self) -> set[str]:
        """The words that may be in the shared session or not."""
        return {message.word for stream in self._pending for message in self.owed(stream)} - self.shared

    def _settle(self, step: Step) -> None:
        if step.session == SHARED:
            self.shared |= {message.word for message in step.messages}
        else:
            self._states[step.session] = after(self._states.get(step.session), step)
