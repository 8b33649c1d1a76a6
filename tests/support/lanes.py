"""Short forms of operations on lanes for tests, and the rules that every state of the tables obeys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hermes.state.lanes.queue.leases import turn_of_one
from hermes.state.lanes.types import Accepted, Claim, Intent, LaneFields, LaneRow, MessageKind, NewSession, Start
from hermes.state.provider import SessionDBProvider
from tests.support.stores import engine_of

KEY = "agent:main:telegram:dm:1"
OTHER = "agent:main:telegram:dm:2"


def start_lane(
    store: SessionDBProvider, key: str = KEY, session_id: str = "s1", fields: LaneFields | None = None
) -> LaneRow:
    """Create a lane with a session, or start a new session in it."""
    session = NewSession(session_id, "telegram", user_id="1")
    return store.lanes.resolve(key, lambda *_: Start(session, fields or {})).lane


def accept(
    store: SessionDBProvider, name: str, key: str = KEY, *, kind: MessageKind = "normal", node: str | None = None
) -> Accepted:
    """Accept a message whose delivery id, message id and text are its name."""
    return store.inbox.accept(
        key,
        {"text": name},
        platform="telegram",
        chat_id=key,
        message_id=name,
        delivery_id=name,
        kind=kind,
        node=node,
    )


def claim(store: SessionDBProvider, node: str = "n1", seconds: float = 60.0) -> Claim:
    """Claim the next lane and start a turn with its oldest message; there must be one."""
    found = store.turns.claim_next(node, seconds, choose=turn_of_one)
    assert found is not None
    return found


def turn_of(claimed: Claim) -> str:
    """The id of the turn that was started with a claim."""
    assert claimed.turn_id is not None
    return claimed.turn_id


def reply(key: str = "k1", **fields: Any) -> Intent:
    """A message to Telegram."""
    return Intent(key, {"text": key}, "telegram", **fields)


def names(rows: Sequence[Any]) -> list[str]:
    """The names of messages in the inbox."""
    return [row["message_id"] for row in rows]


def state_of(store: SessionDBProvider, name: str) -> str:
    """The state of a message in the inbox, by its name."""
    (row,) = store.inbox.find(name)
    return row["state"]


def end_leases(store: SessionDBProvider) -> None:
    """Let all leases of lanes and senders end now, as if their time had passed."""
    store._engine.write(lambda tx: tx.run("UPDATE lane_queues SET lease_until = 1 WHERE lease_until > 0"))
    store._engine.write(lambda tx: tx.run("UPDATE outbox SET due_at = 1 WHERE due_at > 1"))


def broken_rules(store: SessionDBProvider) -> list[str]:
    """The rules that the tables break; none, whatever happened."""
    queries = {
        "a lane is ready, leased or idle": """SELECT lane_id FROM lane_queues WHERE (ready_id > 0 AND lease_until > 0)
            OR (ready_id > 0 AND ready_id <> waiting_id) OR (lease_until = 0 AND ready_id <> waiting_id)""",
        "the count and the oldest of the waiting messages are right": """SELECT q.lane_id FROM lane_queues q
            WHERE q.waiting_count <> (SELECT COUNT(*) FROM inbox i WHERE i.lane_id = q.lane_id AND i.state = 'accepted')
               OR q.waiting_id <> COALESCE((SELECT MIN(i.id) FROM inbox i
                                            WHERE i.lane_id = q.lane_id AND i.state = 'accepted'), 0)""",
        "a waiting message has a queue": """SELECT i.id FROM inbox i WHERE i.is_open = 1
            AND NOT EXISTS (SELECT 1 FROM lane_queues q WHERE q.lane_id = i.lane_id)""",
        "open means accepted, held or running": """SELECT id FROM inbox
            WHERE (is_open = 1 AND state NOT IN ('accepted', 'held', 'running'))
               OR (is_open = 0 AND state IN ('accepted', 'held', 'running'))""",
        "a held message belongs to no turn": "SELECT id FROM inbox WHERE state = 'held' AND turn_id IS NOT NULL",
        "a running message belongs to the running turn of its lane": """SELECT i.id FROM inbox i
            WHERE i.state = 'running' AND NOT EXISTS (
                SELECT 1 FROM lane_queues q WHERE q.lane_id = i.lane_id AND q.turn_id = i.turn_id)""",
        "a running turn is the one of its lane": """SELECT t.turn_id FROM turns t WHERE t.state = 'running'
            AND NOT EXISTS (SELECT 1 FROM lane_queues q WHERE q.turn_id = t.turn_id AND q.lease_token = t.token)""",
        "a lane without a node has no turn": """SELECT lane_id FROM lane_queues
            WHERE lease_holder IS NULL AND turn_id IS NOT NULL""",
        "a message that is done has no payload": "SELECT id FROM inbox WHERE state = 'done' AND payload IS NOT NULL",
        "every lane has a session": """SELECT l.id FROM lanes l
            LEFT JOIN sessions s ON s.id = l.session_id WHERE s.id IS NULL""",
        "a message that is to be sent is due": """SELECT id FROM outbox
            WHERE (due_at > 0 AND state NOT IN ('pending', 'sending'))
               OR (due_at <= 0 AND state IN ('pending', 'sending')) OR (due_at < 0 AND state <> 'draft')
               OR (due_at >= 0 AND state = 'draft')""",
    }
    found = engine_of(store).read(lambda tx: {rule: tx.rows(sql) for rule, sql in queries.items()})
    return [f"{rule}: {rows}" for rule, rows in found.items() if rows]
