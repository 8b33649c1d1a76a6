"""Turns of /queue that did not end, in lanes in which newer messages wait that usually run before the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count

import pytest

from hermes.gateway.engine.choosing import RunCommand, RunTurn, next_step, without_newer
from hermes.gateway.engine.messages import Message
from tests.gateway.engine.engine_node import ALICE, EngineNode, running
from tests.gateway.engine.pure_messages import message

MakeNode = Callable[..., EngineNode]


async def begin(node: EngineNode, text: str, *, progress: bool) -> None:
    """Store a message and a turn with it that has stored it in the session and then died or was stopped."""
    await node.store.get_or_create_session(ALICE)
    uid = await node.say(text)
    claim = await node.db.turns.acquire(node.key(), "dead/00000000", 60.0)
    assert claim is not None
    turn_id = await node.db.turns.start(claim.lease, [row["id"] for row in claim.messages])
    session_id = (await node.lane())["session_id"]
    rows = [{"role": "user", "content": text.removeprefix("/queue "), "uid": uid}]
    await asyncio.to_thread(node.provider.append_messages, session_id, rows)
    if progress:
        await node.db.turns.progress(claim.lease, turn_id, {"steps": 1})
        await node.db.turns.end_leases("dead/00000000")
    else:
        await node.db.turns.release(claim.lease)


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_queued_message_whose_turn_was_cut_off_is_answered_before_newer_ones(
    make_node: MakeNode, is_killed: bool
) -> None:
    async def main() -> None:
        node = make_node()
        await begin(node, "/queue first", progress=is_killed)
        await node.say("second")
        node.brain.auto = lambda request: f"to {request.messages[0].text}"
        async with running(node):
            await node.idle()
            turns = [[each.text for each in turn.request.messages] for turn in node.brain.turns]
            assert turns == [["first"], ["second"]]
            assert list(await node.texts(kind="reply")) == ["to first", "to second"]

    asyncio.run(main())


def test_a_message_whose_turn_was_stopped_by_a_restart_is_not_merged_with_newer_ones(make_node: MakeNode) -> None:
    async def main() -> None:
        node = make_node()
        await begin(node, "first", progress=False)
        await node.say("second")
        node.brain.auto = lambda request: "done"
        async with running(node):
            await node.idle()
            assert [[each.text for each in turn.request.messages] for turn in node.brain.turns] == [
                ["first"],
                ["second"],
            ]

    asyncio.run(main())


def waiting(*kinds: str) -> list[Message]:
    """Waiting messages of one user."""
    numbers = count(1)
    return [message(next(numbers), kind) for kind in kinds]  # type: ignore[arg-type]  # names of kinds


@pytest.mark.parametrize("mode", ["interrupt", "queue", "steer", "collect"])
@pytest.mark.parametrize("newer", ["normal", "steer", "command", "internal", "queue"])
def test_no_message_runs_before_a_queued_one_that_has_begun(mode: str, newer: str) -> None:
    rows = waiting("queue", newer)
    step = without_newer(next_step(rows, mode), rows, {1})  # type: ignore[arg-type]  # names of modes
    assert step == RunTurn((rows[0],))


def test_messages_that_were_added_to_a_queued_turn_run_again_with_it() -> None:
    rows = waiting("queue", "steer", "normal")
    assert without_newer(next_step(rows, "interrupt"), rows, {1, 2}) == RunTurn((rows[0], rows[1]))


def test_a_command_before_a_message_that_has_begun_still_runs_first() -> None:
    rows = waiting("command", "normal")
    assert without_newer(next_step(rows, "interrupt"), rows, {2}) == RunCommand(rows[0])
