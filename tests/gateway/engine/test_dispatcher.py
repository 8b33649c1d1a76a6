"""When lanes are claimed and actors are woken: at once if this node knows why, else by a look at the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.gateway.engine.engine_node import BOB, EngineNode, running

MakeNode = Callable[..., EngineNode]


class SilentWatch:
    """A watch that sees nothing."""

    async def wait(self, timeout_s: float) -> bool:
        await asyncio.Event().wait()
        return False

    async def close(self) -> None:
        return None


class NoNews:
    """A watch that returns at once, without news: what it compares has not changed."""

    async def wait(self, timeout_s: float) -> bool:
        await asyncio.sleep(0.01)
        return False

    async def close(self) -> None:
        return None


def test_a_lane_that_waits_for_a_free_turn_is_claimed_as_soon_as_one_ends(make_node: MakeNode) -> None:
    async def main() -> None:
        node = make_node(max_turns=1)
        node.dispatcher._watch = SilentWatch()
        async with running(node):
            await node.say("first")
            turn = await node.brain.next_turn()
            await node.say("of another chat", BOB)
            turn.answer()
            (await node.brain.next_turn()).answer()
            await node.idle()

    asyncio.run(main())


def test_a_message_of_another_node_that_the_watch_does_not_see_still_interrupts_the_turn(make_node: MakeNode) -> None:
    async def main() -> None:
        node, other = make_node(), make_node(name="n2")
        node.dispatcher._watch = NoNews()
        async with running(node):
            await node.say("first")
            await node.brain.next_turn()
            await other.say("second")
            turn = await node.brain.next_turn()
            assert turn.texts == ["first", "second"]
            turn.answer()
            await node.idle()

    asyncio.run(main())
