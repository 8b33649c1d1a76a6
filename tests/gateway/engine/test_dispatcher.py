"""When lanes are claimed: a slot that becomes free is used at once, without a look at the database."""

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
