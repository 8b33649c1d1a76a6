"""A turn that is interrupted just before its node stops: the message is answered with the newer one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hermes.gateway.engine.intents import reply_intent, reply_key
from hermes.gateway.engine.messages import decode_message
from hermes.gateway.engine.ports import RunningTurn, TurnRequest
from hermes.state.lanes.types import Intent
from tests.gateway.engine.engine_node import EngineNode, running


class SlowPreview:
    """A preview that the chat has seen, and that takes its time to end."""

    def __init__(self) -> None:
        self.is_ending, self.may_end = asyncio.Event(), asyncio.Event()
        self._shown: dict[str, Intent] = {}

    def start(self, request: TurnRequest, running: RunningTurn) -> None:
        last = request.rows[-1]
        shown = [decode_message(each) for each in request.rows]
        key = reply_key(last["uid"])
        self._shown[request.turn_id] = reply_intent(key, "so far (stopped)", shown, request.session_key, "", 60.0)

    async def end(self, turn_id: str, text: str) -> Intent | None:
        self.is_ending.set()
        await self.may_end.wait()
        return self._shown.pop(turn_id)


def test_a_message_whose_turn_was_interrupted_is_answered_with_the_newer_one_by_the_next_process(
    make_node: Callable[..., EngineNode],
) -> None:
    async def main() -> None:
        node = make_node()
        preview = node.parts.watcher = SlowPreview()
        async with running(node):
            first = await node.say("first")
            await node.brain.next_turn()
            second = await node.say("second")
            await asyncio.wait_for(preview.is_ending.wait(), 20)
            node.parts.draining.set()
            preview.may_end.set()
            assert await node.dispatcher.settle(20)
            assert await node.states(first, second) == ["accepted", "accepted"]
            node.parts.draining.clear()
            node.dispatcher.arrived("")
            turn = await node.brain.next_turn()
            assert turn.texts == ["first", "second"]
            turn.answer("to both")
            await node.idle()
            assert await node.texts(kind="reply") == ["so far (stopped)", "to both"]

    asyncio.run(main())
