"""A process that is killed just after it gave a message up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hermes.gateway.node.recovery import announce_given_up, resume_lanes
from tests.gateway.engine.engine_node import ALICE, EngineNode


async def give_up(node: EngineNode) -> str:
    """Have processes die during the turn of a message until it is given up; return its uid."""
    uid = await node.say("hello")
    for number in range(3):
        claim = await node.db.turns.claim_next(f"n1/{number:08d}", 60.0, choose=lambda rows: [rows[0]["id"]])
        assert claim is not None
        await node.db.turns.end_leases(f"n1/{number:08d}")
    claim = await node.db.turns.claim_next("n1/00000009", 60.0)
    assert claim is not None
    assert [row["uid"] for row in claim.dead] == [uid]
    return uid


def test_a_kill_right_after_a_message_was_given_up_does_not_keep_the_chat_from_learning_it(
    make_node: Callable[..., EngineNode],
) -> None:
    async def main() -> None:
        node = make_node()
        await give_up(node)
        assert await node.texts() == []
        assert await announce_given_up(node.parts) == 1
        (text,) = await node.texts()
        assert "could not be answered" in text

    asyncio.run(main())


def test_a_chat_learns_only_once_that_a_message_was_given_up(make_node: Callable[..., EngineNode]) -> None:
    async def main() -> None:
        node = make_node()
        uid = await give_up(node)
        assert [await announce_given_up(node.parts) for _ in range(3)] == [1, 0, 0]
        assert len(await node.texts()) == 1
        row = await node.db.outbox.find(f"notice:dead:{uid}")
        assert row is not None
        assert (row["payload"] or {})["answers"] == [(await node.message(uid))["message_id"]]

    asyncio.run(main())


def test_a_lane_does_not_resume_with_a_message_that_was_given_up(make_node: Callable[..., EngineNode]) -> None:
    async def main() -> None:
        node = make_node()
        await node.store.get_or_create_session(ALICE)
        assert await node.store.mark_resume_pending(node.key(), "restart_interrupted")
        await give_up(node)
        await announce_given_up(node.parts)
        assert await resume_lanes(node.parts) == 0
        assert (await node.lane())["suspended"]

    asyncio.run(main())


def test_a_message_that_was_given_up_long_ago_is_not_announced_any_more(make_node: Callable[..., EngineNode]) -> None:
    async def main() -> None:
        node = make_node(reply_ttl_s=3600.0)
        await give_up(node)
        row = (await node.db.inbox.dead())[0]
        assert row["finished_at"] is not None
        node.parts.clock = lambda: (row["finished_at"] or 0.0) + 7200.0
        assert await announce_given_up(node.parts) == 0
        assert await node.texts() == []

    asyncio.run(main())
