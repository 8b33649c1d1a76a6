"""Draining, crashes, resumed lanes, two nodes, and approvals that come after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hermes.config import Config
from hermes.gateway.node.recovery import clear_marks, mark_running, resume_lanes
from hermes.state.lanes.approvals import ApprovalRow
from tests.gateway.engine.conftest import RunScenario
from tests.gateway.engine.engine_node import ALICE, BOB, GROUP_BOB, EngineNode, running
from tests.gateway.engine.scripted import ScriptedTurn

MakeNode = Callable[..., EngineNode]


async def start_and_crash(node: EngineNode, *texts: str, progress: bool = False) -> list[str]:
    """Store messages, start a turn with them as a process that dies, and return their uids."""
    uids = [await node.say(text) for text in texts]
    claim = await node.db.turns.acquire(node.key(), "dead/00000000", 60.0)
    assert claim is not None
    ids = [row["id"] for row in claim.messages]
    turn_id = await node.db.turns.start(claim.lease, ids)
    if progress:
        await node.db.turns.progress(claim.lease, turn_id, {"steps": 1})
    await node.db.turns.end_leases("dead/00000000")
    return uids


async def talk(node: EngineNode, text: str = "hello") -> ScriptedTurn:
    await node.say(text)
    turn = await node.brain.next_turn()
    turn.answer()
    await node.idle()
    return turn


# --- draining ---------------------------------------------------------------------------------------------------------


def test_draining_lets_the_turn_end_starts_no_other_and_loses_no_queued_message(make_node: MakeNode) -> None:
    async def main() -> None:
        node = make_node()
        async with running(node):
            await node.say("now")
            turn = await node.brain.next_turn()
            uids = [await node.say(f"/queue q{number}") for number in range(8)]
            await node.reply(8)
            node.parts.draining.set()
            late = await node.say("during the drain", BOB)
            turn.answer("finished")
            assert await node.dispatcher.settle(20)
            assert not node.brain.has_new_turn
            rows = [await node.message(uid) for uid in (*uids, late)]
            assert {row["state"] for row in rows} == {"accepted"}
            assert {row["attempts"] for row in rows} == {0}
            assert "finished" in await node.texts()
            node.parts.draining.clear()
            node.dispatcher.arrived("")
            node.brain.auto = lambda request: "answer"
            await node.idle()
            assert await node.states(*uids, late) == ["done"] * 9

    asyncio.run(main())


def test_commands_of_a_busy_chat_run_while_the_node_drains(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("now")
        turn = await node.brain.next_turn()
        node.parts.draining.set()
        await node.say("/status")
        assert "running" in await node.reply()
        turn.answer()
        assert await node.dispatcher.settle(20)
        node.parts.draining.clear()

    run(scenario)


def test_a_turn_that_is_cut_off_waits_again_uncharged_and_the_next_process_resumes_it(make_node: MakeNode) -> None:
    async def main() -> None:
        node = make_node()
        async with running(node):
            uid = await node.say("now")
            await node.brain.next_turn()
            node.parts.draining.set()
            assert await mark_running(node.parts, [node.key()], "restart_timeout") == [node.key()]
            node.dispatcher.stop()
            node.parts.expelled.set()
            assert await node.dispatcher.settle(20)
            assert node.parts.cut_lanes == {node.key()}
            row = await node.message(uid)
            assert (row["state"], row["attempts"]) == ("accepted", 0)
        after = make_node(name="n1")
        async with running(after):
            turn = await after.brain.next_turn()
            assert turn.texts == ["now"]
            assert any("the gateway restarted" in note for note in turn.request.notes)
            turn.answer()
            await after.idle()
            assert not (await after.lane())["resume_pending"]
            assert await after.texts() == ["done"]

    asyncio.run(main())


@pytest.mark.parametrize("is_failure", [False, True])
def test_the_mark_before_a_drain_is_removed_when_the_turn_has_ended_also_if_it_failed(
    run: RunScenario, is_failure: bool
) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("now")
        turn = await node.brain.next_turn()
        marked = await mark_running(node.parts, [node.key()], "shutdown_timeout")
        assert (await node.lane())["resume_pending"]
        turn.fail() if is_failure else turn.answer()
        await node.idle()
        await clear_marks(node.parts, marked)
        assert not (await node.lane())["resume_pending"]
        assert await resume_lanes(node.parts) == 0

    run(scenario)


def test_an_earlier_mark_stays_when_the_drain_ends(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await talk(node)
        await node.store.mark_resume_pending(node.key(), "restart_interrupted")
        assert await mark_running(node.parts, [node.key()], "shutdown_timeout") == []
        assert await mark_running(node.parts, ["agent:main:telegram:dm:unknown"], "shutdown_timeout") == []

    run(scenario)


def test_a_lane_that_is_claimed_while_the_node_stops_is_given_back(
    make_node: MakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        node = make_node()
        owner: Any = type(node.db.turns)
        original = owner.claim_next
        has_claimed = asyncio.Event()

        async def slow_claim(self: Any, *args: Any, **kwargs: Any) -> Any:
            claim = await original.__get__(self, owner)(*args, **kwargs)
            has_claimed.set()
            await asyncio.sleep(0.1)
            return claim

        monkeypatch.setattr(owner, "claim_next", slow_claim)
        uid = await node.say("hello")
        async with running(node):
            await has_claimed.wait()
            node.parts.draining.set()
            node.dispatcher.stop()
            assert await node.dispatcher.settle(20)
            totals = await node.db.inbox.totals()
            assert (totals.leased, totals.waiting) == (0, 1)
            assert (await node.message(uid))["attempts"] == 0

    asyncio.run(main())


# --- crashes ----------------------------------------------------------------------------------------------------------


def test_a_turn_of_a_dead_process_runs_again_with_its_note_and_one_reply(make_node: MakeNode) -> None:
    async def main() -> None:
        node = make_node()
        await node.store.get_or_create_session(ALICE)
        uids = await start_and_crash(node, "one", "two")
        async with running(node):
            turn = await node.brain.next_turn()
            assert turn.texts == ["one", "two"]
            assert any("stopped unexpectedly" in note for note in turn.request.notes)
            assert (await node.lane())["restart_count"] == 1
            turn.answer()
            await node.idle()
            assert await node.states(*uids) == ["done", "done"]
            lane = await node.lane()
            assert (lane["resume_pending"], lane["restart_count"]) == (False, 0)
            assert await node.texts() == ["done"]

    asyncio.run(main())


def test_a_message_that_killed_three_processes_is_given_up_with_a_notice_and_neighbours_are_served(
    make_node: MakeNode,
) -> None:
    async def main() -> None:
        node = make_node()
        await node.store.get_or_create_session(ALICE)
        uids = await start_and_crash(node, "poison")
        for _ in range(2):
            claim = await node.db.turns.acquire(node.key(), "dead/00000000", 60.0)
            assert claim is not None
            await node.db.turns.start(claim.lease, [row["id"] for row in claim.messages])
            await node.db.turns.end_leases("dead/00000000")
        async with running(node):
            node.brain.auto = lambda request: "answer"
            await node.say("neighbour", BOB)
            assert await node.reply(source=BOB) == "answer"
            assert "the gateway stopped three times" in await node.reply()
            await node.idle()
            assert await node.states(*uids) == ["dead"]
            assert (await node.lane())["suspended"]
            await node.say("next")
            await node.idle()
            assert (await node.texts())[-1] == "answer"

    asyncio.run(main())


def test_a_lane_that_crashed_with_progress_is_not_counted_towards_suspension(make_node: MakeNode) -> None:
    async def main() -> None:
        node = make_node()
        await node.store.get_or_create_session(ALICE)
        await start_and_crash(node, "long work", progress=True)
        async with running(node):
            turn = await node.brain.next_turn()
            assert (await node.lane())["restart_count"] == 0
            turn.answer()
            await node.idle()

    asyncio.run(main())


# --- resumed lanes ----------------------------------------------------------------------------------------------------


def test_a_marked_lane_is_resumed_once_although_two_nodes_start(make_node: MakeNode) -> None:
    async def main() -> None:
        first, second = make_node(name="n1"), make_node(name="n2")
        await first.store.get_or_create_session(ALICE)
        await first.store.mark_resume_pending(first.key(), "restart_timeout")
        for node in (first, second):
            node.brain.auto = lambda request: "continued"
        counts = await asyncio.gather(resume_lanes(first.parts), resume_lanes(second.parts))
        assert sum(counts) == 1
        async with running(first), running(second):
            await first.idle()
            turns = [*first.brain.turns, *second.brain.turns]
            assert len(turns) == 1
            assert turns[0].texts == []
            assert any("Continue where you stopped" in note for note in turns[0].request.notes)
            assert await first.texts() == ["continued"]
            assert not (await first.lane())["resume_pending"]

    asyncio.run(main())


def test_a_message_that_waits_in_a_marked_lane_is_answered_instead_of_a_resumed_turn(make_node: MakeNode) -> None:
    async def main() -> None:
        node = make_node()
        await node.store.get_or_create_session(ALICE)
        await node.store.mark_resume_pending(node.key(), "restart_timeout")
        await node.say("hello")
        async with running(node):
            turn = await node.brain.next_turn()
            assert turn.texts == ["hello"]
            assert any("reply to the message" in note for note in turn.request.notes)
            turn.answer()
            await node.idle()
        assert len(node.brain.turns) == 1

    asyncio.run(main())


def test_a_message_that_arrives_during_a_resumed_turn_does_not_interrupt_it(make_node: MakeNode) -> None:
    async def main() -> None:
        node = make_node()
        await node.store.get_or_create_session(ALICE)
        await node.store.mark_resume_pending(node.key(), "restart_timeout")
        async with running(node):
            resumed = await node.brain.next_turn()
            await node.say("hello")
            await node.reply()
            assert not resumed.is_cancelled
            resumed.answer("continued")
            turn = await node.brain.next_turn()
            assert turn.texts == ["hello"]
            turn.answer("to hello")
            await node.idle()
            assert await node.texts(kind="reply") == ["continued", "to hello"]

    asyncio.run(main())


def test_a_lane_is_not_resumed_after_the_freshness_or_when_it_is_stopped(make_node: MakeNode) -> None:
    async def main() -> None:
        node = make_node(freshness_s=60.0)
        await node.store.get_or_create_session(ALICE)
        await node.store.get_or_create_session(BOB)
        await node.store.mark_resume_pending(node.key(ALICE), "restart_timeout")
        await node.store.mark_resume_pending(node.key(BOB), "restart_timeout")
        await node.store.suspend_session(node.key(BOB))
        node.clock.advance(120)
        assert await resume_lanes(node.parts) == 0
        always = make_node(name="n2", freshness_s=0.0)
        assert await resume_lanes(always.parts) == 1

    asyncio.run(main())


def test_a_resumed_answer_goes_to_the_account_of_the_chat(make_node: MakeNode) -> None:
    async def main() -> None:
        node = make_node()
        async with running(node):
            node.brain.auto = lambda request: "answer"
            await node.say("hello", account="bot-2")
            await node.idle()
            await node.store.mark_resume_pending(node.key(), "restart_timeout")
            assert await resume_lanes(node.parts) == 1
            await node.idle()
            rows = await node.db.outbox.pending()
            assert [row["account"] for row in rows] == ["bot-2", "bot-2"]

    asyncio.run(main())


# --- two nodes --------------------------------------------------------------------------------------------------------


def test_a_message_that_another_node_receives_reaches_the_turn_that_runs_here(make_node: MakeNode) -> None:
    async def main() -> None:
        first, second = make_node(name="n1"), make_node(name="n2")
        async with running(first):
            await first.say("one")
            turn = await first.brain.next_turn()
            async with running(second):
                await second.say("two")
                again = await first.brain.next_turn()
                assert turn.is_cancelled
                assert again.texts == ["one", "two"]
                again.answer("both")
                await first.idle()
                assert second.brain.turns == []
                assert await first.texts() == ["both"]

    asyncio.run(main())


def test_a_node_that_lost_its_lease_stores_and_answers_nothing(make_node: MakeNode) -> None:
    async def main() -> None:
        first, second = make_node(name="n1", lease_s=0.6), make_node(name="n2")
        async with running(first):
            uid = await first.say("one")
            turn = await first.brain.next_turn()
            await first.db.turns.end_leases(first.parts.settings.holder)
            async with running(second):
                taken = await second.brain.next_turn()
                assert taken.texts == ["one"]

                async def is_cancelled() -> bool:
                    return turn.is_cancelled

                await first.until(is_cancelled, "the first node notices")
                taken.answer("from the second node")
                await second.idle()
                assert await second.states(uid) == ["done"]
                assert await second.texts() == ["from the second node"]
                assert first.parts.counters["leases_lost"] == 1

    asyncio.run(main())


# --- approvals --------------------------------------------------------------------------------------------------------

CHARLIE = replace(BOB, chat_id="3", user_id="3", user_name="Charlie")


def approving_config() -> Config:
    config = Config()
    return replace(config, gateway=replace(config.gateway, approvers=("telegram:2",)))


async def request_approval(node: EngineNode, ttl_s: float = 60.0) -> ApprovalRow:
    turn = await talk(node, "please delete it")
    return await node.db.approvals.request(
        node.key(), turn.request.session_id, "terminal", '{"command": "rm x"}', ttl_seconds=ttl_s, summary="rm x"
    )


@pytest.mark.parametrize("command", ["approve", "deny"])
def test_a_decision_of_the_named_person_continues_the_lane_of_the_request(run: RunScenario, command: str) -> None:
    async def scenario(node: EngineNode) -> None:
        row = await request_approval(node)
        await node.say(f"/{command} {row['id']}", BOB)
        turn = await node.brain.next_turn()
        assert turn.request.session_key == node.key(ALICE)
        assert turn.request.approval_id == row["id"]
        assert turn.texts == []
        assert turn.request.source == ALICE
        turn.answer("the result")
        await node.idle()
        assert (await node.texts(ALICE))[-1] == "the result"
        decided = await node.db.approvals.get(row["id"])
        assert decided is not None
        assert decided["state"] == ("approved" if command == "approve" else "denied")
        assert decided["decided_by"] == "telegram:2"

    run(scenario, config=approving_config())


@pytest.mark.parametrize("source", [ALICE, CHARLIE, replace(GROUP_BOB, user_id="3")])
def test_no_other_user_can_approve_not_even_the_one_who_asked(run: RunScenario, source: object) -> None:
    async def scenario(node: EngineNode) -> None:
        row = await request_approval(node)
        await node.say(f"/approve {row['id']}", source)  # type: ignore[arg-type]
        await node.idle()
        assert not node.brain.has_new_turn
        pending = await node.db.approvals.get(row["id"])
        assert pending is not None
        assert pending["state"] == "pending"

    run(scenario, config=approving_config())


def test_an_approval_after_a_restart_continues_the_lane_once_although_the_command_comes_twice(
    make_node: MakeNode,
) -> None:
    async def main() -> None:
        before = make_node(config=approving_config())
        async with running(before):
            row = await request_approval(before)
        after = make_node(config=approving_config())
        async with running(after):
            await after.say(f"/approve {row['id']}", BOB)
            turn = await after.brain.next_turn()
            assert turn.request.approval_id == row["id"]
            await after.say(f"/approve {row['id']}", BOB)
            turn.answer("the result")
            await after.idle()
            assert not after.brain.has_new_turn
            assert (await after.texts(ALICE))[-1] == "the result"

    asyncio.run(main())


def test_an_expired_request_cannot_be_approved(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        row = await request_approval(node, ttl_s=0.01)
        await asyncio.sleep(0.05)
        await node.say(f"/approve {row['id']}", BOB)
        await node.idle()
        assert not node.brain.has_new_turn
        assert "not decided in time" in (await node.texts(BOB))[-1]

    run(scenario, config=approving_config())


def test_an_approval_during_a_turn_of_the_chat_runs_after_it(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        row = await request_approval(node)
        await node.say("meanwhile")
        turn = await node.brain.next_turn()
        await node.say(f"/approve {row['id']}", BOB)
        await node.reply(source=BOB)
        assert not turn.is_cancelled
        turn.answer()
        following = await node.brain.next_turn()
        assert following.request.approval_id == row["id"]
        following.answer()
        await node.idle()

    run(scenario, config=approving_config())


def test_the_result_of_an_approved_action_goes_to_the_account_of_the_chat_that_asked(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("please delete it", account="bot-2")
        turn = await node.brain.next_turn()
        turn.answer()
        await node.idle()
        row = await node.db.approvals.request(
            node.key(), turn.request.session_id, "terminal", "{}", ttl_seconds=60.0, summary="rm x"
        )
        await node.say(f"/approve {row['id']}", BOB, account="bot-1")
        (await node.brain.next_turn()).answer("the result")
        await node.idle()
        rows = [each for each in await node.db.outbox.pending() if (each["payload"] or {})["text"] == "the result"]
        assert [each["account"] for each in rows] == ["bot-2"]

    run(scenario, config=approving_config())
