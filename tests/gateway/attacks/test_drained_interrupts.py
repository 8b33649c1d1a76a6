"""A message that would interrupt a turn while the node drains, so that no turn can follow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.gateway.engine.engine_node import EngineNode, running


def test_a_message_during_a_drain_does_not_cost_the_chat_the_answer_that_is_being_written(
    make_node: Callable[..., EngineNode],
) -> None:
    async def main() -> None:
        node = make_node()
        async with running(node):
            first = await node.say("first")
            turn = await node.brain.next_turn()
            node.parts.draining.set()
            second = await node.say("second")
            await node.seen(1)
            assert not turn.is_cancelled
            turn.answer("to first")
            assert await node.dispatcher.settle(20)
            assert (await node.texts(kind="reply")) == ["to first"]
            assert await node.states(first, second) == ["done", "accepted"]
            node.parts.draining.clear()
            node.dispatcher.arrived("")
            (await node.brain.next_turn()).answer("to second")
            await node.idle()
            assert (await node.texts(kind="reply")) == ["to first", "to second"]

    asyncio.run(main())


def test_stop_still_stops_a_turn_while_the_node_drains(make_node: Callable[..., EngineNode]) -> None:
    async def main() -> None:
        node = make_node()
        async with running(node):
            await node.say("first")
            turn = await node.brain.next_turn()
            node.parts.draining.set()
            await node.say("/stop")
            assert await node.dispatcher.settle(20)
            assert turn.is_cancelled
            assert any("Stopped" in text for text in await node.texts())

    asyncio.run(main())
