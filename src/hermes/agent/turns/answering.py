"""Which stored messages a turn answers, and whether they are answered already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.agent.history.attachments import ROLE, attached_uid
from hermes.agent.history.tool_results import INTERRUPTED
from hermes.agent.turns.steering import Steering
from hermes.agent.turns.turn import BETWEEN_ANSWERS, CUT
from hermes.state.messages.partial import PARTIAL
from hermes.state.operations import UNLIMITED
from hermes.state.rows import AnyRow, flatten_text

if TYPE_CHECKING:
    from hermes.agent.listener import Listener
    from hermes.agent.open_session import OpenSession
    from hermes.agent.turns.incoming import Incoming
    from hermes.agent.turns.turn_record import TurnRecord

CONTINUED = (
    "Your turn ended before the answer to the last messages of the user was complete, and the user did not get it."
    " Continue from here: use the results above, check what a tool did before you run it again, and write the whole"
    " answer."
)
"""The note for a model that continues a turn."""
OVERTAKEN = (
    "Your turn ended before the answer to an earlier message of the user was complete, and another message has been"
    " answered since. The earlier one still waits; answer it now: {text}"
)
"""The note for a model that continues a turn after another one."""
_SHOWN_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """What a turn should answer."""

    messages: Sequence[Incoming]
    notes: Sequence[str] = ()
    steering: Steering = field(default_factory=Steering)
    may_be_stored: bool = True
    """Whether a message may be stored already; False for one that the caller has just named."""


@dataclass(frozen=True, slots=True)
class Answering:
    """What the store knows about the answer to some messages."""

    known: str | None = None
    """The complete answer; empty if the user has undone the messages; None if there is none yet."""
    is_continued: bool = False
    """Whether an earlier turn has begun to answer them."""
    overtaken: str | None = None
    """Their text, if another turn has followed that one, so that they are no longer the last messages."""

    @property
    def notes(self) -> Sequence[str]:
        """What the model must know about the earlier turn."""
        if self.overtaken is not None:
            return (OVERTAKEN.format(text=self.overtaken),)
        return (CONTINUED,) if self.is_continued else ()


def store_messages(session: OpenSession, record: TurnRecord, request: Request, listener: Listener) -> Answering:
    """Store the messages that are not stored yet, each as a row of its own, and return what is known about them."""
    newest = _newest_id(session) if request.may_be_stored and request.messages else 0
    ids: list[int | None] = []
    for each in request.messages:
        if session.is_stored:
            ids.append(record.add("user", each.content, uid=each.uid))
        else:
            ids.append(session.create(each.content, each.uid, listener))
        if each.attached:
            record.add(ROLE, each.attached, uid=attached_uid(each.uid))
    old = [each for each in ids if each is not None and each <= newest]
    if not old:
        return Answering()
    rows = session.store.get_messages(session.session_id, after_id=min(old) - 1)
    known = [row for row in rows if row["id"] <= newest]
    found = find_answer(known, max(old), is_complete=len(old) == len(ids))
    if found.overtaken is None:
        return found
    return replace(found, overtaken="\n\n".join(each.text for each in request.messages)[:_SHOWN_CHARACTERS])


def _newest_id(session: OpenSession) -> int:
    """Return the id of the last message of a session; 0 if there is none."""
    if not session.is_stored:
        return 0
    rows = session.store.get_messages(session.session_id, include_inactive=True, before_id=UNLIMITED, limit=1)
    return rows[-1]["id"] if rows else 0


def find_answer(rows: Sequence[AnyRow], last_id: int, *, is_complete: bool = True) -> Answering:
    """Return what is known about the answer to messages that were stored before.

    The rows begin with the first of them, and `last_id` is the last. If they are not complete, because another message
    is new, there is no answer yet.
    """
    if is_complete and all(row["id"] != last_id for row in rows):
        return Answering(known="")
    complete = [row for row in rows if _is_complete_answer(row)]
    after = next((row for row in complete if row["id"] > last_id), None) if is_complete else None
    if after is not None and _is_of_another_turn(rows, last_id, after["id"]):
        return Answering(overtaken="")
    if after is None:
        return Answering(is_continued=any(row["role"] in ("assistant", "tool") for row in rows))
    texts = [flatten_text(row["content"]) for row in complete if row["id"] <= after["id"]]
    return Answering(known=BETWEEN_ANSWERS.join(each for each in texts if each))


def _is_of_another_turn(rows: Sequence[AnyRow], last_id: int, answer_id: int) -> bool:
    """Whether a user has written between the end of an answer that broke off and the complete one.

    A message that was added to a turn follows a tool or the question, never an answer that broke off.
    """
    between = [row for row in rows if last_id < row["id"] < answer_id]
    return any(
        second["role"] == "user" and first["role"] == "assistant" and not first["tool_calls"]
        for first, second in pairwise(between)
    )


def _is_complete_answer(row: AnyRow) -> bool:
    is_last = row["role"] == "assistant" and not row["tool_calls"]
    return is_last and row["finish_reason"] not in (INTERRUPTED, CUT, PARTIAL)
