"""`/queue`: each message is one turn, in order, none merged, none lost."""

from __future__ import annotations

import asyncio

import pytest

from hermes.gateway.engine.settings import BusyMode
from tests.gateway.engine.conftest import RunScenario
from tests.gateway.engine.engine_node import ALICE, BOB, EngineNode

SIX = [f"q{number}" for number in range(6)]


async def queue_six(node: EngineNode) -> list[str]:
    return [await node.say(f"/queue {text}") for text in SIX]


@pytest.mark.parametrize("mode", ["interrupt", "queue", "steer", "collect"])
def test_six_queued_messages_are_six_turns_in_order_each_acknowledged_with_its_depth(
    run: RunScenario, mode: BusyMode
) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("now")
        turn = await node.brain.next_turn()
        acks = []
        uids = []
        for number, text in enumerate(SIX, 1):
            uids.append(await node.say(f"/queue {text}"))
            acks.append(await node.reply(number))
        assert acks == ["Queued.", *(f"Queued. {n} messages waiting." for n in range(2, 7))]
        turn.answer("now")
        for text in SIX:
            turn = await node.brain.next_turn()
            assert turn.texts == [text]
            turn.answer(f"to {text}")
        await node.idle()
        assert await node.texts(kind="reply") == ["now", *(f"to {text}" for text in SIX)]
        assert await node.states(*uids) == ["done"] * 6
        assert len({turn.request.session_id for turn in node.brain.turns}) == 1

    run(scenario, mode=mode)


def test_a_depth_counts_only_what_was_queued_before(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        node.parts.draining.set()
        await node.say_all("now", "/queue one", "/queue two", "/queue three")
        node.parts.draining.clear()
        node.dispatcher.arrived("")
        turn = await node.brain.next_turn()
        await node.say_all("/queue four", "/queue five")
        await node.reply(2)
        assert await node.texts(kind="notice") == ["Queued. 4 messages waiting.", "Queued. 5 messages waiting."]
        turn.answer()
        for _ in range(5):
            (await node.brain.next_turn()).answer()
        await node.idle()

    run(scenario)


def test_a_queued_message_in_an_idle_chat_runs_at_once_as_its_text(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("/queue hello")
        turn = await node.brain.next_turn()
        assert turn.texts == ["hello"]
        turn.answer()
        await node.idle()
        assert await node.texts() == ["done"]

    run(scenario)


def test_a_message_is_never_merged_into_a_queued_one_and_runs_before_those_that_wait(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("/queue q1")
        first = await node.brain.next_turn()
        await node.say_all("/queue q2", "hello", "/steer more")
        await node.seen(4)
        assert not first.is_cancelled
        first.answer()
        second = await node.brain.next_turn()
        assert second.texts == ["hello"]
        second.answer()
        third = await node.brain.next_turn()
        assert third.texts == ["q2"]
        third.answer()
        await node.idle()
        assert [each.text for each in first.steered] == ["more"]

    run(scenario)


def test_queued_messages_survive_a_turn_that_fails(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("now")
        turn = await node.brain.next_turn()
        await node.say_all("/queue q1", "/queue q2")
        turn.fail()
        for text in ("q1", "q2"):
            turn = await node.brain.next_turn()
            assert turn.texts == [text]
            turn.fail()
        await node.idle()
        assert (await node.texts(kind="reply")) == ["The turn failed. /retry tries again."] * 3

    run(scenario)


def test_queued_messages_are_cleared_by_new(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("now")
        await node.brain.next_turn()
        uids = await queue_six(node)
        await node.say("/new")
        await node.idle()
        assert not node.brain.has_new_turn
        assert await node.states(*uids) == ["discarded"] * 6
        assert "6 waiting messages" in (await node.texts(kind="reply"))[-1]

    run(scenario)


def test_stop_holds_queued_messages_says_their_number_and_the_next_message_releases_them(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("now")
        turn = await node.brain.next_turn()
        uids = await queue_six(node)
        await node.reply(6)
        await node.say("/stop")
        stopped = await node.reply(7)
        assert "6 " in stopped
        await node.idle()
        await asyncio.sleep(0.1)
        assert turn.is_cancelled
        assert not node.brain.has_new_turn
        assert await node.states(*uids) == ["held"] * 6
        await node.say("hello")
        for text in ("hello", *SIX):
            following = await node.brain.next_turn()
            assert following.texts == [text]
            following.answer()
        await node.idle()
        assert await node.states(*uids) == ["done"] * 6
        assert turn.request.session_id not in {each.request.session_id for each in node.brain.turns[1:]}

    run(scenario)


def test_commands_do_not_release_held_messages(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("now")
        await node.brain.next_turn()
        await node.say_all("/queue q1", "/stop")
        await node.idle()
        await node.say("/status")
        await node.idle()
        assert "Held: 1 message" in (await node.texts())[-1]
        assert not node.brain.has_new_turn

    run(scenario)


def test_a_new_queued_message_runs_after_the_held_ones(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("now")
        await node.brain.next_turn()
        await node.say_all("/queue q1", "/queue q2", "/stop")
        await node.idle()
        await node.say("/queue q3")
        for text in ("q1", "q2", "q3"):
            turn = await node.brain.next_turn()
            assert turn.texts == [text]
            turn.answer()
        await node.idle()

    run(scenario)


def test_held_messages_are_cleared_by_new(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("now")
        await node.brain.next_turn()
        uids = await queue_six(node)
        await node.say("/stop")
        await node.idle()
        await node.say("/new")
        await node.idle()
        assert await node.states(*uids) == ["discarded"] * 6
        await node.say("hello")
        turn = await node.brain.next_turn()
        turn.answer()
        await node.idle()
        assert not node.brain.has_new_turn

    run(scenario)


def test_held_messages_of_one_chat_do_not_touch_another_one(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("now", ALICE)
        await node.brain.next_turn()
        await node.say_all("/queue q1", "/stop", source=ALICE)
        await node.idle()
        await node.say("hello", BOB)
        turn = await node.brain.next_turn()
        assert turn.texts == ["hello"]
        turn.answer()
        await node.idle()
        assert not node.brain.has_new_turn

    run(scenario)
