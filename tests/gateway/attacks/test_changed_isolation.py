"""Messages that wait while the operator changes whether users of a group share a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gateway.engine.engine_node import GROUP_ALICE, GROUP_BOB, EngineNode, running, shared_chats


@pytest.mark.parametrize("was_shared", [True, False])
def test_messages_that_wait_while_the_isolation_changes_are_answered_in_the_session_they_were_written_in(
    make_node: Callable[..., EngineNode], home: Path, was_shared: bool
) -> None:
    shared = shared_chats(home)

    async def main() -> None:
        before = make_node(chats=shared if was_shared else None)
        async with running(before):
            await before.say("first", GROUP_ALICE)
            (await before.brain.next_turn()).answer()
            await before.idle()
            session_id = (await before.lane(GROUP_ALICE))["session_id"]
            before.parts.draining.set()
            await before.say("second", GROUP_ALICE)
        after = make_node(chats=None if was_shared else shared)
        async with running(after):
            turn = await after.brain.next_turn()
            assert turn.texts == ["[Alice] second" if was_shared else "second"]
            assert turn.request.session_id == session_id
            row = await after.db.for_owner(turn.request.owner).get_session(session_id)
            assert row is not None, "the owner of the turn cannot see its session"
            turn.answer("to second")
            await after.idle()
            assert (await after.texts(GROUP_ALICE))[-1] == "to second"

    asyncio.run(main())


def test_a_user_who_writes_after_isolation_was_turned_on_does_not_get_the_shared_session(
    make_node: Callable[..., EngineNode], home: Path
) -> None:
    async def main() -> None:
        before = make_node(chats=shared_chats(home))
        async with running(before):
            await before.say("for all", GROUP_ALICE)
            turn = await before.brain.next_turn()
            shared_id = turn.request.session_id
            turn.answer()
            await before.idle()
        after = make_node()
        async with running(after):
            await after.say("only mine", GROUP_BOB)
            turn = await after.brain.next_turn()
            assert turn.request.session_id != shared_id
            turn.answer()
            await after.idle()

    asyncio.run(main())
