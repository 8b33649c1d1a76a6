"""Commands of chats in the engine: those that stop a turn, those that run beside it, and those that wait."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes.config import Config
from hermes.gateway.engine.parts import CommandReply
from tests.gateway.engine.conftest import RunScenario
from tests.gateway.engine.engine_node import ALICE, BOB, GROUP_ALICE, GROUP_BOB, EngineNode, shared_chats

LATER = "This runs after the current turn. /stop ends the turn."


def test_stop_discards_the_turn_and_the_next_message_starts_a_new_session(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        uid = await node.say("one")
        turn = await node.brain.next_turn()
        await node.say("/stop")
        await node.idle()
        assert turn.is_cancelled
        assert await node.states(uid) == ["discarded"]
        assert (await node.lane())["suspended"]
        await node.say("two")
        following = await node.brain.next_turn()
        assert following.texts == ["two"]
        assert following.request.session_id != turn.request.session_id
        following.answer()
        await node.idle()
        assert not (await node.lane())["suspended"]

    run(scenario)


def test_stop_that_waits_behind_a_message_still_stops_its_turn(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        node.parts.draining.set()
        uid = await node.say("one")
        await node.say("/stop")
        node.parts.draining.clear()
        node.dispatcher.arrived("")
        turn = await node.brain.next_turn()
        await node.idle()
        assert turn.is_cancelled
        assert await node.states(uid) == ["discarded"]

    run(scenario)


def test_new_while_a_turn_runs_stops_it_and_starts_a_session(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        uid = await node.say("one")
        turn = await node.brain.next_turn()
        await node.say("/new Plans")
        await node.say("two")
        following = await node.brain.next_turn()
        assert turn.is_cancelled
        assert await node.states(uid) == ["discarded"]
        assert following.texts == ["two"]
        assert following.request.session_id != turn.request.session_id
        following.answer()
        await node.idle()
        row = await node.db.for_owner(following.request.owner).get_session(following.request.session_id)
        assert row is not None
        assert row["title"] == "Plans"

    run(scenario)


def test_a_turn_that_was_complete_before_it_could_be_stopped_is_answered(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        node.brain.is_stubborn = True
        uid = await node.say("one")
        turn = await node.brain.next_turn()
        await node.say("/stop")

        async def is_cancelled() -> bool:
            return turn.is_cancelled

        await node.until(is_cancelled, "the turn is cancelled")
        turn.answer("complete")
        await node.idle()
        assert (await node.texts())[0] == "complete"
        assert await node.states(uid) == ["done"]

    run(scenario, stop_grace_s=5.0)


@pytest.mark.parametrize("command", ["/status", "/help", "/title Plans", "/sessions", "/usage", "/model", "/queue"])
def test_a_command_that_bypasses_runs_beside_the_turn(run: RunScenario, command: str) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        turn = await node.brain.next_turn()
        uid = await node.say(command)
        await node.reply()
        assert not turn.is_cancelled
        assert await node.states(uid) == ["done"]
        turn.answer()
        await node.idle()
        assert len(await node.texts()) == 2

    run(scenario)


@pytest.mark.parametrize("command", ["/undo", "/branch", "/compress", "/retry", "/resume"])
def test_a_command_that_changes_the_session_waits_for_the_end_of_the_turn_and_says_so(
    run: RunScenario, command: str
) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        turn = await node.brain.next_turn()
        uid = await node.say(command)
        assert await node.reply() == LATER
        assert await node.states(uid) == ["accepted"]
        turn.answer()
        if command == "/retry":
            (await node.brain.next_turn()).answer("again")
        await node.idle()
        assert await node.states(uid) == ["done"]

    run(scenario)


def test_a_status_request_neither_creates_a_session_nor_resets_one(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("/status")
        await node.idle()
        assert await node.db.lanes.count() == 0
        await node.say("one")
        (await node.brain.next_turn()).answer()
        await node.idle()
        before = await node.lane()
        node.clock.advance(3 * 86_400)
        await node.say("/status")
        await node.idle()
        after = await node.lane()
        assert (after["session_id"], after["updated_at"]) == (before["session_id"], before["updated_at"])

    run(scenario)


def test_retry_is_a_turn_without_a_new_message(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        (await node.brain.next_turn()).answer("first")
        await node.idle()
        await node.say("/retry")
        turn = await node.brain.next_turn()
        assert turn.request.is_retry
        assert turn.texts == []
        turn.answer("second")
        await node.idle()
        assert await node.texts() == ["first", "second"]

    run(scenario)


def test_a_command_that_raises_is_a_reply_and_the_lane_continues(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        original = node.parts.run_command

        async def broken(message, session_key, lease, *, is_turn_running):  # type: ignore[no-untyped-def]
            if message.command == "help":
                raise RuntimeError("a bug")
            return await original(message, session_key, lease, is_turn_running=is_turn_running)

        node.parts.run_command = broken
        uid = await node.say("/help")
        await node.say("/status")
        await node.idle()
        texts = await node.texts()
        assert "internal error" in texts[0]
        assert texts[1].startswith("Session:")
        assert await node.states(uid) == ["failed"]

    run(scenario)


def test_a_background_task_runs_in_a_lane_of_its_own_and_names_its_task(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        turn = await node.brain.next_turn()
        await node.say("/background count the stars")
        background = await node.brain.next_turn()
        assert not turn.is_cancelled
        assert background.texts == ["count the stars"]
        assert background.request.session_id != turn.request.session_id
        assert background.request.session_key != turn.request.session_key
        background.answer("many")
        turn.answer()
        await node.idle()
        assert "Background task finished: count the stars\n\nmany" in await node.texts(kind="reply")
        assert (await node.lane())["session_id"] == turn.request.session_id

    run(scenario)


def test_the_answer_of_a_background_task_goes_to_the_account_that_asked(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("/background count", account="bot-2")
        (await node.brain.next_turn()).answer("many")
        await node.idle()
        assert {row["account"] for row in await node.db.outbox.pending()} == {"bot-2"}

    run(scenario)


def test_a_chosen_model_is_used_by_the_next_turn_also_after_a_restart(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("/model other")
        await node.idle()
        node.brain.models.clear()  # as a new process starts
        await node.say("one")
        turn = await node.brain.next_turn()
        assert node.brain.models[turn.request.session_key] == "other"
        turn.answer()
        await node.idle()

    run(scenario)


def test_only_an_admin_restarts_the_gateway(run: RunScenario) -> None:
    config = Config()
    config = replace(config, gateway=replace(config.gateway, admins=("telegram:1",)))

    async def scenario(node: EngineNode) -> None:
        await node.say("/restart", BOB)
        await node.idle()
        assert node.restarts == 0
        await node.say("/restart", ALICE)
        await node.idle()
        assert node.restarts == 1

    run(scenario, config=config)


def test_a_command_can_reply_nothing(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        async def silent(message, session_key, lease, *, is_turn_running):  # type: ignore[no-untyped-def]
            return CommandReply()

        node.parts.run_command = silent
        uid = await node.say("/help")
        await node.idle()
        assert await node.texts() == []
        assert await node.states(uid) == ["done"]

    run(scenario)


@pytest.mark.parametrize("command", ["/stop", "/new"])
def test_another_user_of_a_private_chat_cannot_stop_a_turn(run: RunScenario, command: str) -> None:
    async def scenario(node: EngineNode) -> None:
        uid = await node.say("one")
        turn = await node.brain.next_turn()
        stranger = replace(ALICE, user_id="666", user_name="Mallory")
        await node.say(command, stranger)
        assert await node.reply() == LATER
        assert not turn.is_cancelled
        turn.answer("answer to one")
        await node.idle()
        assert await node.states(uid) == ["done"]
        assert (await node.texts(kind="reply"))[0] == "answer to one"

    run(scenario)


def test_any_user_of_a_shared_lane_can_stop_its_turn(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one", GROUP_ALICE)
        turn = await node.brain.next_turn()
        await node.say("/stop", GROUP_BOB)
        await node.idle()
        assert turn.is_cancelled

    run(scenario, chats=shared_chats(home))
