"""The life of one message: when it came, which turns worked on it, and what became of the replies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes.errors import HermesError, InvalidValue
from hermes.gateway.upkeep.status import age_s, node_of
from hermes.state.messages.partial import find_by_given_uid
from hermes.state.operations import read

if TYPE_CHECKING:
    from hermes.state.lanes.types import InboxRow, LaneRow, OutboxRow, TurnRow
    from hermes.state.provider import SessionDBProvider

MOST_TURNS = 200
"""How many turns of the lane are looked through."""
MOST_STEPS = 500
"""How many messages of a session are looked through for the tools of a turn."""

_INBOX_ID = re.compile(r"(?:in:)?([0-9]{1,18})")
_KEYS = ("command:{uid}", "ack:{uid}", "notice:command:{uid}", "notice:dead:{uid}")
"""The replies to a message that no turn has intended."""
_UNFINISHED = ("lost", "interrupted", "failed")
"""The ends of a turn after which its messages can wait again."""


def find_messages(store: SessionDBProvider, wanted: str, chat_id: str | None = None) -> list[InboxRow]:
    """Return the messages with an id of their platform; if there are none, the one with this number in the inbox."""
    if not wanted.strip():
        return []
    try:
        found = [] if wanted.startswith("in:") else store.inbox.find(wanted, chat_id=chat_id)
    except InvalidValue:
        return []
    number = _INBOX_ID.fullmatch(wanted)
    if not found and number is not None:
        row = store.inbox.get(int(number[1]))
        found = [] if row is None or chat_id not in (None, row["chat_id"]) else [row]
    return found


def explain_message(store: SessionDBProvider, row: InboxRow) -> dict[str, Any]:
    """Return the life of a message: times are those of the database."""
    now = store.turns.peek().now
    lane = store.lanes.get(row["session_key"])
    turns = turns_of(row, store.turns.history(row["session_key"], limit=MOST_TURNS))
    return {
        "id": f"in:{row['id']}",
        "uid": row["uid"],
        "platform": row["platform"],
        "account": row["account"],
        "chat_id": row["chat_id"],
        "message_id": row["message_id"],
        "delivery_id": row["delivery_id"],
        "user": user_of(row, lane),
        "kind": row["kind"],
        "state": row["state"],
        "reason": row["reason"],
        "attempts": row["attempts"],
        "starts": row["starts"],
        "session_key": row["session_key"],
        "session_id": _session_of(turns, lane),
        "accepted_at": row["accepted_at"],
        "started_at": row["started_at"],
        "finished_at": row["finished_at"],
        "waited_s": _waited_s(row, turns, now),
        "turns": [_explain_turn(store, row, turn, number, now) for number, turn in enumerate(turns, 1)],
        "replies": [explain_reply(each, now) for each in _replies(store, row, turns)],
    }


def explain_reply(row: OutboxRow, now: float) -> dict[str, Any]:
    """Return what became of a message to a platform."""
    return {
        "id": f"out:{row['id']}",
        "key": row["key"],
        "kind": row["kind"],
        "state": row["state"],
        "reason": row["reason"],
        "attempts": row["attempts"],
        "holder": row["holder"],
        "platform": row["platform"],
        "turn_id": row["turn_id"],
        "created_at": row["created_at"],
        "expires_at": row["expires_at"],
        "finished_at": row["finished_at"],
        "sent_at": row["finished_at"] if row["state"] == "sent" else None,
        "seconds": age_s(row["created_at"], row["finished_at"] or now),
        "receipt": row["receipt"],
    }


def turns_of(row: InboxRow, history: Sequence[TurnRow]) -> list[TurnRow]:
    """Return the turns of a message, oldest first, given the turns of its lane, newest first; pure.

    A message knows only its last turn and how many it had. A lane has one turn at a time, and a message that waits
    again keeps its place, so the earlier turns are those directly before that ended without an end for their messages.
    """
    number = next((index for index, turn in enumerate(history) if turn["turn_id"] == row["turn_id"]), None)
    last = [] if number is None else [history[number]]
    before = history if number is None else history[number + 1 :]
    earlier = [turn for turn in before if turn["state"] in _UNFINISHED and turn["started_at"] >= row["accepted_at"]]
    return [*reversed(earlier[: max(0, row["starts"] - len(last))]), *last]


def user_of(row: InboxRow, lane: LaneRow | None) -> dict[str, Any] | None:
    """Return the user of a message as stored; after its end only a private chat still tells."""
    source = (row["payload"] or {}).get("source")
    if not isinstance(source, dict) and lane is not None and lane["chat_type"] == "dm":
        source = lane["origin"]
    if not isinstance(source, dict) or not (source.get("user_id") or source.get("user_name")):
        return None
    return {"id": source.get("user_id"), "name": source.get("user_name")}


def _explain_turn(store: SessionDBProvider, row: InboxRow, turn: TurnRow, attempt: int, now: float) -> dict[str, Any]:
    note = turn["note"] or {}
    return {
        "turn_id": turn["turn_id"],
        "attempt": attempt,
        "node": node_of(turn["node"]),
        "holder": turn["node"],
        "token": turn["token"],
        "state": turn["state"],
        "reason": turn["reason"],
        "session_id": turn["session_id"],
        "started_at": turn["started_at"],
        "progressed_at": turn["progressed_at"],
        "finished_at": turn["finished_at"],
        "seconds": age_s(turn["started_at"], turn["finished_at"] or now),
        "steps": turn["progress"],
        "activity": note.get("activity"),
        "tools": _tools(store, row, turn),
    }


def _tools(store: SessionDBProvider, row: InboxRow, turn: TurnRow) -> list[str]:
    """Return the tools that the session used between a message and the next one of a user."""
    if turn["session_id"] is None:
        return []
    session_id, uid = turn["session_id"], row["uid"]
    try:
        found = read(store, lambda tx: find_by_given_uid(tx, session_id, uid))
        if found is None:
            return []
        messages = store.get_messages(session_id, True, after_id=found.id, limit=MOST_STEPS)
    except HermesError:  # the session was deleted
        return []
    tools, has_begun = [], False
    for message in messages:
        if message["role"] != "user":
            has_begun = True
        elif has_begun:
            break
        if message["role"] == "tool" and message["tool_name"]:
            tools.append(message["tool_name"])
    return tools


def _replies(store: SessionDBProvider, row: InboxRow, turns: Sequence[TurnRow]) -> list[OutboxRow]:
    found = {each["id"]: each for turn in turns for each in store.outbox.of_turn(turn["turn_id"])}
    for key in _KEYS:
        each = store.outbox.find(key.format(uid=row["uid"]))
        if each is not None:
            found[each["id"]] = each
    return [found[number] for number in sorted(found)]


def _session_of(turns: Sequence[TurnRow], lane: LaneRow | None) -> str | None:
    last = turns[-1]["session_id"] if turns else None
    return last or (None if lane is None else lane["session_id"])


def _waited_s(row: InboxRow, turns: Sequence[TurnRow], now: float) -> float | None:
    """Return how long a message has waited for its first turn, or for its end without one."""
    first = turns[0]["started_at"] if turns else row["started_at"]
    return age_s(row["accepted_at"], first or row["finished_at"] or now)
