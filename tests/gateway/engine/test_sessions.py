"""The session of a turn: resets by themselves, their notices, memories before them, hooks, and what the model reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.gateway import GatewayConfig, SessionResetPolicy
from tests.gateway.engine.conftest import RunScenario
from tests.gateway.engine.engine_node import ALICE, GROUP_ALICE, GROUP_BOB, EngineNode, shared_chats

HOUR, DAY = 3600.0, 86_400.0


def chats(home: Path, **policy: object) -> GatewayConfig:
    values = {"mode": "idle", "idle_minutes": 60} | policy
    return GatewayConfig(
        sessions_dir=home / "sessions",
        timezone="UTC",
        default_reset_policy=SessionResetPolicy(**values),  # type: ignore[arg-type]
    )


async def talk(node: EngineNode, text: str = "hello") -> str:
    """Have one message answered, and return the session."""
    await node.say(text)
    turn = await node.brain.next_turn()
    turn.answer(f"to {text}")
    await node.idle()
    return turn.request.session_id


def test_an_idle_chat_starts_a_new_session_and_the_user_and_the_model_learn_why(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        old = await talk(node)
        node.clock.advance(2 * HOUR)
        await node.say("again")
        turn = await node.brain.next_turn()
        assert turn.request.session_id != old
        assert any("because of inactivity" in note for note in turn.request.notes)
        turn.answer()
        await node.idle()
        notices = await node.texts(kind="notice")
        assert len(notices) == 1
        assert "after 60 minutes without a message" in notices[0]
        assert "/resume" in notices[0]

    run(scenario, chats=chats(home))


def test_the_daily_reset_is_named_with_its_hour(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        await talk(node)
        node.clock.advance(DAY)
        await node.say("again")
        turn = await node.brain.next_turn()
        assert any("daily reset" in note for note in turn.request.notes)
        turn.answer()
        await node.idle()
        assert "daily reset at 05:00" in (await node.texts(kind="notice"))[0]

    run(scenario, chats=chats(home, mode="daily", at_hour=5))


def test_the_reset_after_stop_is_always_announced(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        await talk(node)
        await node.say("/stop")
        await node.idle()
        await node.say("again")
        turn = await node.brain.next_turn()
        assert any("because it was stopped" in note for note in turn.request.notes)
        turn.answer()
        await node.idle()
        assert "The session was stopped." in (await node.texts(kind="notice"))[0]

    run(scenario, chats=chats(home, notify=False))


@pytest.mark.parametrize("policy", [{"notify": False}, {"notify_exclude_platforms": ["telegram"]}])
def test_a_reset_is_not_announced_where_the_policy_excludes_it_but_the_model_learns_it(
    run: RunScenario, home: Path, policy: dict[str, object]
) -> None:
    async def scenario(node: EngineNode) -> None:
        await talk(node)
        node.clock.advance(2 * HOUR)
        await node.say("again")
        turn = await node.brain.next_turn()
        assert any("because of inactivity" in note for note in turn.request.notes)
        turn.answer()
        await node.idle()
        assert await node.texts(kind="notice") == []

    run(scenario, chats=chats(home, **policy))


def test_a_reset_without_messages_before_it_is_not_announced(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("/title Empty")
        await node.idle()
        node.clock.advance(2 * HOUR)
        await node.say("hello")
        (await node.brain.next_turn()).answer()
        await node.idle()
        assert await node.texts(kind="notice") == []

    run(scenario, chats=chats(home))


def test_the_notice_of_a_reset_comes_once_although_the_first_turn_is_interrupted(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        await talk(node)
        node.clock.advance(2 * HOUR)
        node.events.clear()
        await node.say("one")
        first = await node.brain.next_turn()
        await node.say("two")
        second = await node.brain.next_turn()
        assert second.request.session_id == first.request.session_id
        assert any("because of inactivity" in note for note in second.request.notes)
        second.answer()
        await node.idle()
        assert len(await node.texts(kind="notice")) == 1
        assert node.event_names().count("session:start") == 1
        await node.say("three")
        third = await node.brain.next_turn()
        assert not any("inactivity" in note for note in third.request.notes)
        third.answer()
        await node.idle()

    run(scenario, chats=chats(home))


def test_memories_are_saved_once_before_a_reset_and_the_session_is_finalized(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        old = await talk(node)
        node.clock.advance(2 * HOUR)
        node.events.clear()
        await talk(node, "again")
        assert node.brain.saved == [old]
        assert node.brain.ended == [old]
        assert node.event_names() == ["on_session_finalize", "session:start", "agent:start", "agent:end"]
        assert node.events[0][1]["reason"] == "session_expired"

    run(scenario, chats=chats(home))


def test_a_stopped_session_is_finalized_without_a_memory_turn(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        old = await talk(node)
        await node.say("/stop")
        await node.idle()
        node.events.clear()
        await talk(node, "again")
        assert node.brain.saved == []
        assert node.brain.ended == [old]
        assert node.event_names()[0] == "on_session_finalize"
        assert node.events[0][1]["reason"] == "session_stopped"

    run(scenario, chats=chats(home))


def test_a_session_that_the_watcher_has_finalized_is_not_finalized_again(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        await talk(node)
        node.clock.advance(2 * HOUR)
        entry = (await node.store.expired_entries())[0]
        await node.store.set_expiry_finalized(entry)
        await talk(node, "again")
        assert node.brain.saved == []
        assert node.brain.ended == []

    run(scenario, chats=chats(home))


def test_a_session_with_background_processes_is_neither_reset_nor_finalized(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        old = await talk(node)
        node.clock.advance(2 * HOUR)
        assert await talk(node, "again") == old
        assert node.brain.ended == []
        assert await node.texts(kind="notice") == []

    run(scenario, chats=chats(home), has_processes=lambda key: True)


def test_hooks_run_in_order_around_turns_and_the_first_turn_starts_the_session(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        session = await talk(node)
        await talk(node, "again")
        assert node.event_names() == ["session:start", "agent:start", "agent:end", "agent:start", "agent:end"]
        context = node.events[0][1]
        assert context["session_id"] == session
        assert (context["platform"], context["chat_id"], context["user_id"]) == ("telegram", "1", "1")
        assert node.events[2][1]["status"] == "done"

    run(scenario)


def test_hooks_of_new_name_the_session_that_ended_and_the_one_that_follows(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        old = await talk(node)
        node.events.clear()
        await node.say("/new")
        await node.idle()
        assert node.event_names() == ["on_session_finalize", "session:end", "session:reset"]
        assert [context["session_id"] for _, context in node.events[:2]] == [old, old]
        new = node.events[2][1]["session_id"]
        assert new != old
        node.events.clear()
        assert await talk(node, "again") == new
        assert node.event_names() == ["session:start", "agent:start", "agent:end"]

    run(scenario)


def test_a_turn_that_fails_ends_for_the_hooks_too(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        (await node.brain.next_turn()).fail()
        await node.idle()
        assert node.events[-1][0] == "agent:end"
        assert node.events[-1][1]["status"] == "failed"

    run(scenario)


def test_the_model_learns_about_the_chat_when_its_session_starts(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("hello")
        turn = await node.brain.next_turn()
        assert "## Current Session Context" in turn.request.context
        assert turn.request.source == ALICE
        turn.answer()
        await node.idle()

    run(scenario)


def test_a_session_of_another_owner_is_not_continued(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("ours", GROUP_ALICE)
        shared = await node.brain.next_turn()
        shared.answer()
        await node.idle()
        node.chats.group_sessions_per_user = True  # the key of the lane stays, its owner does not
        key = node.key(GROUP_BOB)
        await node.db.lanes.switch(node.key(GROUP_ALICE), shared.request.session_id)
        row = await node.db.lanes.get(key)
        assert row is None
        await node.say("mine", GROUP_BOB)
        turn = await node.brain.next_turn()
        assert turn.request.session_id != shared.request.session_id
        assert turn.request.owner != shared.request.owner
        turn.answer()
        await node.idle()

    run(scenario, chats=shared_chats(home))


def test_an_empty_answer_is_named(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("hello")
        (await node.brain.next_turn()).answer("")
        assert "empty answer" in await node.reply()
        await node.idle()

    run(scenario)


def test_notices_of_a_turn_come_before_its_reply(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("hello")
        (await node.brain.next_turn()).answer("text", notices=("The conversation was compressed.",))
        await node.idle()
        assert await node.outbox() == [("notice", "The conversation was compressed."), ("reply", "text")]

    run(scenario)


def test_the_size_of_the_prompt_is_stored_with_the_end_of_the_turn(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("hello")
        (await node.brain.next_turn()).answer("text", prompt_tokens=1234)
        await node.idle()
        assert (await node.lane())["last_prompt_tokens"] == 1234

    run(scenario)
