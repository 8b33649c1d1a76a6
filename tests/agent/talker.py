"""A child process for the tests of conversations: `python -m tests.agent.talker talk HOME ...`."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hermes.agent.conversation import Conversation
from hermes.agent.listener import Listener
from hermes.agent.models.model import ToolCall
from hermes.agent.models.offline.model import OfflineModel
from hermes.agent.turns.incoming import Incoming
from hermes.state.engine import Transaction
from hermes.state.owner import EVERYBODY
from hermes_state import SessionDB
from tests.agent.talking import agent_with
from tests.support.stores import engine_of

T = TypeVar("T")

LIMIT_S = 30.0


def say(text: object) -> None:
    """Send one line to the parent at once."""
    os.write(1, f"{text}\n".encode())


def wait_for_parent() -> None:
    """Wait for a line from the parent, or until the limit."""
    if select.select([0], [], [], LIMIT_S)[0]:
        os.read(0, 4096)


class PausingListener(Listener):
    """Reports events to the parent and waits for its reaction."""

    def __init__(self, moment: str) -> None:
        self._moment = moment

    def text(self, piece: str) -> None:
        self._report("text")

    def tool_started(self, call: ToolCall) -> None:
        self._report("tool")

    def _report(self, what: str) -> None:
        if what == self._moment:
            say(what)
            wait_for_parent()


def pause_at_write(store: SessionDB, number: int, where: str) -> None:
    """Pause at the n-th write: before it, or inside its transaction just before the commit."""
    write: Callable[..., object] = engine_of(store).write
    writes = 0

    def pause_before_write(work: Callable[[Transaction], T]) -> object:
        nonlocal writes
        writes += 1
        if writes != number:
            return write(work)

        def inside(tx: Transaction) -> T:
            done = work(tx)
            say("paused")
            wait_for_parent()
            return done

        if where == "inside":
            return write(inside)
        say("paused")
        wait_for_parent()
        return write(work)

    setattr(engine_of(store), "write", pause_before_write)  # noqa: B010 - a method, which no type checker lets go


def talk(home: Path, session_id: str, text: str, moment: str) -> None:
    """Send a message in a session and pause at a given point."""
    with SessionDB(home / "state.db") as store:
        agent = agent_with(OfflineModel(), store, home)
        conversation = (
            Conversation.resume(agent, session_id, asker=EVERYBODY)
            if session_id
            else Conversation.start(agent, asker=EVERYBODY)
        )
        _prepare(store, moment)
        conversation.say(text, PausingListener(moment))
        agent.settle(LIMIT_S)
    say("over")


def answer(home: Path, session_id: str, text: str, moment: str) -> None:
    """Send a message with a known uid to a session and pause at a given point."""
    with SessionDB(home / "state.db") as store:
        agent = agent_with(OfflineModel(), store, home)
        conversation = Conversation.resume(agent, session_id, asker=EVERYBODY)
        _prepare(store, moment)
        conversation.answer([Incoming(text, "inbox-1")], PausingListener(moment))
        agent.settle(LIMIT_S)
    say("over")


def compress(home: Path, session_id: str, moment: str) -> None:
    """Compress a session and pause at a given point."""
    with SessionDB(home / "state.db") as store:
        conversation = Conversation.resume(agent_with(OfflineModel(), store, home), session_id, asker=EVERYBODY)
        _prepare(store, moment)
        say(conversation.compress().reason or "over")


def _prepare(store: SessionDB, moment: str) -> None:
    if ":" in moment:
        number, _, where = moment.partition(":")
        pause_at_write(store, int(number), where)


DEEDS: dict[str, Callable[..., None]] = {"talk": talk, "answer": answer, "compress": compress}

if __name__ == "__main__":
    DEEDS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
