"""Faults that are planted into the gateway, to see whether the simulation notices them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hermes.gateway.delivery import attempt
from hermes.gateway.engine import choosing
from hermes.gateway.engine.actor import LaneActor
from hermes.gateway.engine.messages import Message
from hermes.state.lanes.queue import inbox, queue_row, turns
from hermes.state.lanes.queue.turns import Turns
from hermes.state.owner_view import OwnerView

Plant = Callable[[pytest.MonkeyPatch], None]


def without_fence(patch: pytest.MonkeyPatch) -> None:
    """Let a node store messages after it has lost its lease."""
    patch.setattr(OwnerView, "fenced", lambda self, lease: self)


def without_leases(patch: pytest.MonkeyPatch) -> None:
    """Let a node store messages and end turns after it has lost its lease."""
    without_fence(patch)
    patch.setattr(queue_row.QueueRow, "check", lambda self, lease: None)
    patch.setattr(turns, "_require_running", lambda queue, turn_id: None)


def without_recognition(patch: pytest.MonkeyPatch) -> None:
    """Store a message again that a platform delivers twice."""
    new_row = inbox._new_row

    def forgetful(*arguments: Any) -> dict[str, Any]:
        row = new_row(*arguments)
        return {**row, "message_key": row["uid"]}

    patch.setattr(inbox, "_new_row", forgetful)


def with_blind_repeats(patch: pytest.MonkeyPatch) -> None:
    """Send a message again that the platform may have."""

    async def not_there(*arguments: Any) -> None:
        return None

    patch.setattr(attempt, "_ask", not_there)


def with_mixed_senders(patch: pytest.MonkeyPatch) -> None:
    """Put messages of several people into one turn."""
    patch.setattr(Message, "sender", property(lambda self: "all"))


def with_merged_queue(patch: pytest.MonkeyPatch) -> None:
    """Put several messages of /queue into one turn."""
    merged = choosing.next_step

    def merge(waiting: Sequence[Message], mode: Any) -> Any:
        step = merged(waiting, mode)
        if isinstance(step, choosing.RunTurn) and step.messages[0].kind == "queue":
            return choosing.RunTurn(tuple(each for each in waiting if each.kind == "queue"))
        return step

    patch.setattr("hermes.gateway.engine.actor.next_step", merge)


def with_held_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Never release messages that /stop has held."""

    async def none_held(self: LaneActor) -> bool:
        return False

    patch.setattr(LaneActor, "_has_held", none_held)


def without_replies(patch: pytest.MonkeyPatch) -> None:
    """End turns without the intent to answer."""
    finish = Turns.finish

    def silent(self: Turns, lease: Any, turn_id: str, **more: Any) -> Any:
        return finish(self, lease, turn_id, **{**more, "intents": ()})

    patch.setattr(Turns, "finish", silent)


def with_lost_arrivals(patch: pytest.MonkeyPatch) -> None:
    """Lose the messages that arrive while a lane is being released."""
    free = queue_row.QueueRow.free

    def forget(self: queue_row.QueueRow, delay_s: float = 0.0) -> None:
        free(self, delay_s)
        self.ready_id = 0

    patch.setattr(queue_row.QueueRow, "free", forget)


PLANTS: dict[str, Plant] = {
    each.__name__: each
    for each in (
        without_fence,
        without_leases,
        without_recognition,
        with_blind_repeats,
        with_mixed_senders,
        with_merged_queue,
        with_held_forgotten,
        without_replies,
        with_lost_arrivals,
    )
}
