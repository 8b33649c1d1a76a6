"""A turn that the database has started although its response was lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hermes.errors import StoreUnavailable
from hermes.gateway.engine import actor
from hermes.state.lanes.types import Lease
from tests.gateway.engine.engine_node import GROUP_ALICE, GROUP_BOB, EngineNode, running, shared_chats


def test_a_turn_whose_start_was_stored_without_a_response_does_not_block_the_lane(
    make_node: Callable[..., EngineNode], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = make_node(chats=shared_chats(home))
    turns, starts = type(node.provider.turns), list[Sequence[int]]()
    start = turns.start
    monkeypatch.setattr(actor, "PAUSE_S", 0.02)

    def start_without_response(self: object, lease: Lease, message_ids: Sequence[int]) -> str:
        turn_id = start(node.provider.turns, lease, message_ids)
        starts.append(message_ids)
        if len(starts) == 1:
            raise StoreUnavailable("it is not known whether it was done")
        return turn_id

    async def main() -> None:
        node.parts.draining.set()
        async with running(node):
            uids = [await node.say("one", GROUP_ALICE), await node.say("two", GROUP_BOB)]
            monkeypatch.setattr(turns, "start", start_without_response)
            node.brain.auto = lambda request: f"to {request.messages[0].uid}"
            node.parts.draining.clear()
            node.dispatcher.arrived("")
            await node.idle()
            assert await node.states(*uids) == ["done", "done"]
            assert await node.texts(GROUP_ALICE) == [f"to {uid}" for uid in uids]
            assert [(await node.message(uid))["attempts"] for uid in uids] == [1, 1]

    asyncio.run(main())
    assert starts == [[1], [1], [2]]
