"""Messages that arrive while a turn runs: interruptions, steering, waiting, and what is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.gateway.engine.settings import BusyMode
from hermes.gateway.engine.turns import supervisor
from tests.gateway.engine.conftest import RunScenario
from tests.gateway.engine.engine_node import (
    ALICE,
    BOB,
    GROUP_ALICE,
    GROUP_BOB,
    GROUP_CAROL,
    EngineNode,
    running,
    shared_chats,
    texts_of,
)

WAITS = "Your message is saved and will be answered after the current turn. /stop ends the turn."


def test_a_message_of_the_same_sender_interrupts_the_turn_and_both_are_answered_together(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        first = await node.say("one")
        turn = await node.brain.next_turn()
        second = await node.say("two")
        again = await node.brain.next_turn()
        assert turn.is_cancelled
        assert again.texts == ["one", "two"]
        assert again.request.session_id == turn.request.session_id
        again.answer("both")
        await node.idle()
        assert await node.outbox() == [("reply", "both")]
        assert await node.states(first, second) == ["done", "done"]
        assert (await node.message(first))["attempts"] == 1

    run(scenario)


def test_interruptions_do_not_count_as_attempts_and_lose_no_message(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        uids = [await node.say("m0")]
        for number in range(1, 6):
            await node.brain.next_turn()
            uids.append(await node.say(f"m{number}"))
        turn = await node.brain.next_turn()
        assert turn.texts == [f"m{number}" for number in range(6)]
        turn.answer()
        await node.idle()
        assert await node.states(*uids) == ["done"] * 6
        assert await node.texts() == ["done"]
        session = (await node.lane())["session_id"]
        rows = await node.db.for_owner(turn.request.owner).get_messages(session)
        assert texts_of(rows) == ["m0", "m1", "m2", "m3", "m4", "m5", "done"]

    run(scenario)


@pytest.mark.parametrize("mode", ["queue", "collect"])
def test_a_message_waits_for_the_end_of_the_turn_in_other_modes_and_is_acknowledged(
    run: RunScenario, mode: BusyMode
) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        turn = await node.brain.next_turn()
        await node.say("two")
        assert await node.reply() == WAITS
        assert not turn.is_cancelled
        turn.answer("first")
        following = await node.brain.next_turn()
        assert following.texts == ["two"]
        following.answer("second")
        await node.idle()
        assert await node.texts(kind="reply") == ["first", "second"]

    run(scenario, mode=mode)


def test_all_messages_that_wait_are_one_turn_in_collect_mode(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        turn = await node.brain.next_turn()
        await node.say_all("two", "three", "four")
        turn.answer()
        following = await node.brain.next_turn()
        assert following.texts == ["two", "three", "four"]
        following.answer()
        await node.idle()

    run(scenario, mode="collect")


def test_a_turn_takes_steering_messages_and_answers_them(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        first = await node.say("one")
        turn = await node.brain.next_turn()
        second = await node.say("two")
        third = await node.say("/steer three")
        await node.seen(3)
        turn.answer("all")
        await node.idle()
        assert [each.text for each in turn.steered] == ["two", "three"]
        assert not node.brain.has_new_turn
        assert await node.states(first, second, third) == ["done"] * 3
        assert await node.outbox() == [("reply", "all")]
        reply = (await node.db.outbox.pending())[0]["payload"] or {}
        assert len(reply["answers"]) == 3

    run(scenario, mode="steer")


def test_a_steering_message_that_the_turn_cannot_take_is_answered_afterwards(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        node.brain.takes_more = False
        await node.say("one")
        turn = await node.brain.next_turn()
        await node.say("/steer two")
        assert await node.reply() == WAITS
        turn.answer()
        following = await node.brain.next_turn()
        assert following.texts == ["two"]
        following.answer()
        await node.idle()

    run(scenario)


def test_a_steering_message_of_another_sender_waits(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one", GROUP_ALICE)
        turn = await node.brain.next_turn()
        await node.say("/steer two", GROUP_BOB)
        assert await node.reply(source=GROUP_BOB) == WAITS
        assert turn.steered == []
        turn.answer()
        (await node.brain.next_turn()).answer()
        await node.idle()
        assert [turn.texts for turn in node.brain.turns] == [["[Alice] one"], ["[Bob] two"]]

    run(scenario, chats=shared_chats(home))


def test_three_senders_of_a_shared_lane_are_never_merged_and_none_is_lost(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("a1", GROUP_ALICE)
        turn = await node.brain.next_turn()
        for text, source in (
            ("b1", GROUP_BOB),
            ("c1", GROUP_CAROL),
            ("a2", GROUP_ALICE),
            ("a3", GROUP_ALICE),
            ("b2", GROUP_BOB),
        ):
            await node.say(text, source)
        turn.answer()
        for _ in range(4):
            (await node.brain.next_turn()).answer()
        await node.idle()
        assert [turn.texts for turn in node.brain.turns] == [
            ["[Alice] a1"],
            ["[Bob] b1"],
            ["[Carol] c1"],
            ["[Alice] a2", "[Alice] a3"],
            ["[Bob] b2"],
        ]
        assert len({turn.request.session_id for turn in node.brain.turns}) == 1

    run(scenario, chats=shared_chats(home))


def test_users_of_a_group_with_sessions_of_their_own_run_side_by_side_without_prefixes(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("a", GROUP_ALICE)
        await node.say("b", GROUP_BOB)
        turns = [await node.brain.next_turn(), await node.brain.next_turn()]
        assert sorted(turn.texts[0] for turn in turns) == ["a", "b"]
        assert turns[0].request.session_id != turns[1].request.session_id
        assert turns[0].request.owner != turns[1].request.owner
        for turn in turns:
            turn.answer()
        await node.idle()

    run(scenario)


def test_messages_that_wait_are_acknowledged_once_in_a_while(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        turn = await node.brain.next_turn()
        await node.say_all("two", "three", "four")
        await node.seen(4)
        assert await node.outbox() == [("notice", WAITS)]
        turn.answer()
        (await node.brain.next_turn()).answer()
        await node.idle()

    run(scenario, mode="collect")


def test_messages_are_acknowledged_again_after_the_interval(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        turn = await node.brain.next_turn()
        await node.say("two")
        await node.reply(1)
        await asyncio.sleep(0.06)
        await node.say("three")
        assert await node.reply(2) == WAITS
        turn.answer()
        (await node.brain.next_turn()).answer()
        await node.idle()

    run(scenario, mode="collect", ack_interval_s=0.05)


def test_acknowledgements_can_be_turned_off_but_not_those_of_the_queue(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        turn = await node.brain.next_turn()
        await node.say_all("two", "/queue three")
        assert await node.reply() == "Queued."
        assert await node.texts() == ["Queued."]
        turn.answer()
        (await node.brain.next_turn()).answer()
        (await node.brain.next_turn()).answer()
        await node.idle()

    run(scenario, mode="collect", acknowledges=False)


def test_an_acknowledgement_only_follows_a_message_that_is_stored(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        turn = await node.brain.next_turn()
        uid = await node.say("two")
        await node.reply()
        rows = await node.db.outbox.pending()
        assert [row["key"] for row in rows] == [f"ack:{uid}"]
        assert (await node.message(uid))["state"] == "accepted"
        turn.answer()
        (await node.brain.next_turn()).answer()
        await node.idle()

    run(scenario, mode="collect")


def test_an_album_of_six_photos_is_one_turn_in_one_session_as_first_contact(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        for number in range(6):
            media = ({"path": f"/p{number}", "type": "photo"},)
            await node.say("look" if number == 0 else "", message_type="photo", media=media)
            await asyncio.sleep(0.02)
        turn = await node.brain.next_turn()
        assert len(turn.texts) == 6
        assert turn.texts[0] == "look"
        assert [file["path"] for each in turn.request.messages for file in each.media] == [f"/p{n}" for n in range(6)]
        turn.answer()
        await node.idle()
        assert len(node.brain.turns) == 1
        assert await node.db.lanes.count() == 1
        assert await node.texts() == ["done"]

    run(scenario, album_s=0.5)


def test_photos_that_arrive_during_a_turn_do_not_interrupt_it_and_are_one_turn_afterwards(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        turn = await node.brain.next_turn()
        for number in range(6):
            await node.say("", message_type="photo", media=({"path": f"/p{number}", "type": "photo"},))
        await node.seen(7)
        assert not turn.is_cancelled
        turn.answer()
        following = await node.brain.next_turn()
        assert len(following.texts) == 6
        following.answer()
        await node.idle()
        assert len(node.brain.turns) == 2

    run(scenario, album_s=0.05)


def test_a_lane_that_is_busy_does_not_delay_another_one(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("slow", ALICE)
        slow = await node.brain.next_turn()
        await node.say("quick", BOB)
        (await node.brain.next_turn()).answer("quick answer")
        assert await node.reply(source=BOB) == "quick answer"
        assert not slow.is_over
        slow.answer()
        await node.idle()

    run(scenario)


def test_no_more_turns_run_at_a_time_than_allowed_and_the_oldest_lane_is_next(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one", ALICE)
        first = await node.brain.next_turn()
        await node.say("two", BOB)
        await node.say("three", GROUP_CAROL)
        await asyncio.sleep(0.1)
        assert not node.brain.has_new_turn
        first.answer()
        for expected in ("two", "three"):
            turn = await node.brain.next_turn()
            assert turn.texts == [expected]
            turn.answer()
        await node.idle()

    run(scenario, max_turns=1)


def test_commands_do_not_wait_for_a_free_turn_and_messages_do(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one", ALICE)
        turn = await node.brain.next_turn()
        await node.say("/status", BOB)
        assert (await node.reply(source=BOB)).startswith("Session: ")
        waiting = await node.say("two", BOB)
        await node.say("/help", BOB)
        await node.say("/new Title", GROUP_CAROL)
        assert "New session" in await node.reply(source=GROUP_CAROL)
        assert await node.states(waiting) == ["accepted"]
        assert not node.brain.has_new_turn
        turn.answer()
        turn = await node.brain.next_turn()
        assert turn.texts == ["two"]
        turn.answer()
        await node.idle()
        assert [text.partition(" ")[0] for text in await node.texts(BOB)] == ["Session:", "/new", "done"]

    run(scenario, max_turns=1)


def test_a_chat_that_never_becomes_quiet_does_not_keep_its_turn_from_older_messages_of_others(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one", ALICE)
        turn = await node.brain.next_turn()
        await node.say("other", BOB)
        await node.say("two", ALICE)
        turn.answer()
        for expected in ("other", "two"):
            turn = await node.brain.next_turn()
            assert turn.texts == [expected]
            turn.answer()
        await node.idle()

    run(scenario, max_turns=1, mode="queue")


def test_a_chat_that_never_becomes_quiet_does_not_keep_its_turn_from_the_lane_of_a_dead_node(
    make_node: Callable[..., EngineNode],
) -> None:
    async def main() -> None:
        node, dead = make_node(max_turns=1, mode="queue"), make_node(name="n2")
        async with running(node):
            await node.say("first")
            turn = await node.brain.next_turn()
            await dead.say("of a dead node", BOB)
            assert await dead.db.turns.claim_next(dead.parts.settings.holder, 0.0) is not None
            for number in range(40):
                await node.say(f"/queue number {number}")
            turns = 0
            while turn.texts != ["of a dead node"]:
                turn.answer()
                turns += 1
                turn = await node.brain.next_turn()
            assert turns < 20
            node.brain.auto = lambda request: "answer"
            turn.answer()
            await node.idle()

    asyncio.run(main())


def test_a_chat_learns_that_a_long_turn_still_runs_at_longer_and_longer_intervals(
    run: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "PROGRESS_S", 0.02)

    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        turn = await node.brain.next_turn()
        started_at = asyncio.get_running_loop().time()
        turn.activity = "running terminal"
        assert await node.reply(3) == "Still working, for 0 seconds so far (running terminal). /stop ends the turn."
        assert asyncio.get_running_loop().time() - started_at >= 0.15  # the notices come after 0.05, 0.1 and 0.2 s
        turn.answer("done at last")
        await node.idle()
        assert (await node.outbox())[-1] == ("reply", "done at last")

    run(scenario, notify_s=0.05)


def test_without_an_interval_a_long_turn_is_silent(run: RunScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "PROGRESS_S", 0.001)

    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        turn = await node.brain.next_turn()
        await asyncio.sleep(0.05)
        turn.answer()
        await node.idle()
        assert await node.outbox() == [("reply", "done")]

    run(scenario, notify_s=0.0)
