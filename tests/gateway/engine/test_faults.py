"""Turns that fail, hang, or meet a database that fails; limits; and messages that cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hermes.errors import HermesError, ModelUnavailable, StoreUnavailable
from hermes.gateway.engine import actor, dispatcher
from hermes.gateway.engine.turns import turn
from tests.gateway.engine.conftest import RunScenario
from tests.gateway.engine.engine_node import ALICE, BOB, EngineNode, running, with_limits


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "RETRY_S", (0.05, 0.05))
    monkeypatch.setattr(actor, "PAUSE_S", 0.05)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_failed_turn_is_answered_with_its_error_and_is_not_repeated(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        uid = await node.say("hello")
        (await node.brain.next_turn()).fail(ModelUnavailable("the model cannot be reached", hint="try later"))
        await node.idle()
        assert await node.texts() == ["The model cannot be reached now. /retry tries again."]
        assert await node.states(uid) == ["failed"]
        assert len(node.brain.turns) == 1

    run(scenario)


def test_a_bug_of_the_brain_is_tried_three_times_then_the_message_is_dead_and_the_user_learns_it(
    run: RunScenario,
) -> None:
    async def scenario(node: EngineNode) -> None:
        uid = await node.say("hello")
        for _ in range(3):
            (await node.brain.next_turn()).raise_bug(RuntimeError("a bug"))
        await node.idle()
        assert await node.states(uid) == ["dead"]
        texts = await node.outbox()
        assert len(texts) == 1
        assert texts[0][0] == "reply"
        assert "kept for the operator" in texts[0][1]
        assert node.event_names().count("agent:end") == 3
        await node.say("next")
        (await node.brain.next_turn()).answer("fine")
        await node.idle()
        assert (await node.texts())[-1] == "fine"

    run(scenario)


def test_a_bug_of_the_brain_leaves_no_turn_running_without_a_supervisor(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("hello")
        first = await node.brain.next_turn()
        first.raise_bug(RuntimeError("a bug"))
        second = await node.brain.next_turn()
        assert first.is_cancelled
        assert node.brain.forgotten
        second.answer()
        await node.idle()

    run(scenario)


def test_only_the_message_that_was_tried_three_times_is_dead_the_others_are_answered(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        poison = await node.say("poison")
        for _ in range(2):
            (await node.brain.next_turn()).raise_bug(RuntimeError("a bug"))
        third = await node.brain.next_turn()
        fresh = await node.say("fresh")
        both = await node.brain.next_turn()
        assert third.is_cancelled
        assert both.texts == ["poison", "fresh"]
        both.raise_bug(RuntimeError("a bug"))
        last = await node.brain.next_turn()
        assert last.texts == ["fresh"]
        last.answer("fine")
        await node.idle()
        assert await node.states(poison, fresh) == ["dead", "done"]
        rows = {row["key"]: row["payload"] or {} for row in await node.db.outbox.pending()}
        dead = rows[f"notice:dead:{poison}"]
        assert dead["answers"] == [(await node.message(poison))["message_id"]]

    run(scenario)


def test_a_turn_that_does_nothing_for_too_long_is_stopped_and_the_user_learns_its_last_activity(
    run: RunScenario,
) -> None:
    async def scenario(node: EngineNode) -> None:
        uid = await node.say("hello")
        running_turn = await node.brain.next_turn()
        running_turn.activity = "running terminal"
        assert "nothing happened for 0 seconds (last activity: running terminal)" in await node.reply()
        await node.idle()
        assert running_turn.is_cancelled
        assert await node.states(uid) == ["failed"]

    run(scenario, idle_timeout_s=0.1)


def test_a_turn_that_works_is_not_stopped_by_the_inactivity_timeout_but_by_the_total_limit(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("hello")
        running_turn = await node.brain.next_turn()

        async def works() -> bool:
            running_turn.active_at = asyncio.get_running_loop().time()
            running_turn.progress += 1
            return bool(await node.texts())

        await node.until(works, "the turn is stopped")
        assert "the limit of this gateway" in (await node.texts())[0]
        await node.idle()

    run(scenario, idle_timeout_s=0.3, total_timeout_s=1.5)


def test_a_turn_that_does_not_end_after_cancel_is_abandoned_and_its_late_result_is_discarded(
    run: RunScenario,
) -> None:
    async def scenario(node: EngineNode) -> None:
        node.brain.is_stubborn = True
        uid = await node.say("hello")
        stuck = await node.brain.next_turn()
        await node.say("/stop")
        await node.idle()
        assert node.brain.forgotten
        assert node.parts.counters["turns_abandoned"] == 1
        assert await node.states(uid) == ["discarded"]
        before = await node.outbox()
        node.brain.is_stubborn = False
        await node.say("next")
        following = await node.brain.next_turn()
        stuck.answer("too late")
        following.answer("in time")
        await node.idle()

        async def is_over() -> bool:
            return stuck.is_over

        await node.until(is_over, "the late turn ends")
        assert node.brain.refused_writes == 1
        texts = await node.texts()
        assert "too late" not in texts
        assert texts[-1] == "in time"
        assert len(before) == 1

    run(scenario)


# --- the database -----------------------------------------------------------------------------------------------------


def break_calls(node: EngineNode, group: str, name: str, monkeypatch: pytest.MonkeyPatch, times: int = 1) -> list[int]:
    """Let the next calls of an operation fail; the list has the number of calls left to fail."""
    left = [times]
    owner: Any = type(getattr(node.db, group))
    original: Callable[..., Any] = getattr(owner, name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if left[0] > 0:
            left[0] -= 1
            raise StoreUnavailable("the database cannot be reached")
        return original.__get__(self, owner)(*args, **kwargs)

    async def fail_or_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await call(self, *args, **kwargs)

    monkeypatch.setattr(owner, name, fail_or_call)
    return left


def test_a_message_is_refused_while_the_database_cannot_be_reached(
    run: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(node: EngineNode) -> None:
        break_calls(node, "inbox", "accept", monkeypatch)
        admission = await node.send("hello", message_id="m-1")
        assert admission.state == "refused"
        assert "could not be saved" in admission.message
        assert admission.uid == ""
        await node.say("hello", message_id="m-1")  # the same message is accepted when it comes again
        (await node.brain.next_turn()).answer()
        await node.idle()

    run(scenario)


def test_a_turn_survives_that_arrivals_cannot_be_read_for_a_moment(
    run: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("hello")
        running_turn = await node.brain.next_turn()
        left = break_calls(node, "inbox", "waiting", monkeypatch)
        uid = await node.say("/status")

        async def is_read() -> bool:
            return (await node.states(uid)) == ["done"]

        await node.until(is_read, "the command was run")
        assert left == [0]
        assert not running_turn.is_cancelled
        running_turn.answer()
        await node.idle()
        assert len(node.brain.turns) == 1

    run(scenario)


def test_a_steering_message_whose_row_could_not_be_changed_is_not_taken_twice(
    run: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("hello")
        running_turn = await node.brain.next_turn()
        break_calls(node, "turns", "join", monkeypatch)
        uid = await node.say("/steer more")

        async def has_joined() -> bool:
            return (await node.states(uid)) == ["running"]

        await node.until(has_joined, "the message belongs to the turn")
        assert [each.text for each in running_turn.steered] == ["more"]
        running_turn.answer("both")
        await node.idle()
        assert await node.texts() == ["both"]

    run(scenario)


@pytest.mark.parametrize("operation", ["start", "finish"])
def test_a_database_that_fails_at_a_turn_costs_no_message_and_no_second_reply(
    run: RunScenario, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    async def scenario(node: EngineNode) -> None:
        node.brain.auto = lambda request: "answer"
        break_calls(node, "turns", operation, monkeypatch)
        uid = await node.say("hello")
        await node.idle()
        assert await node.states(uid) == ["done"]
        assert await node.texts() == ["answer"]

    run(scenario)


def test_a_database_that_cannot_claim_for_a_moment_is_asked_again(
    run: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(node: EngineNode) -> None:
        node.brain.auto = lambda request: "answer"
        break_calls(node, "turns", "claim_next", monkeypatch)
        await node.say("hello")
        assert await node.reply() == "answer"
        await node.idle()

    run(scenario)


def test_a_bug_while_lanes_are_claimed_does_not_stop_the_node(
    run: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "LOOK_S", 0.05)
    original, calls = actor.LaneActor, []

    def broken(*arguments: Any, **fields: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 1:
            raise RuntimeError("a bug")
        return original(*arguments, **fields)

    monkeypatch.setattr(dispatcher, "LaneActor", broken)

    async def scenario(node: EngineNode) -> None:
        node.brain.auto = lambda request: "answer"
        await node.say("one", ALICE)
        await node.say("two", BOB)
        assert await node.reply(source=BOB) == "answer"
        assert await node.reply(source=ALICE) == "answer"  # when the lease of the lost claim has ended

    run(scenario, lease_s=0.5)


# --- limits -----------------------------------------------------------------------------------------------------------


def test_a_turn_above_the_limit_is_refused_before_the_brain_is_asked_and_says_when_it_ends(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        node.brain.auto = lambda request: "answer"
        await node.say("one")
        await node.idle()
        uid = await node.say("two")
        await node.idle()
        assert len(node.brain.turns) == 1
        refusal = (await node.texts())[-1]
        assert "Your 1 turn of today is used up" in refusal
        assert "after 00:00 (UTC)" in refusal
        assert await node.states(uid) == ["discarded"]
        node.clock.advance(86_400)
        await node.say("three")
        await node.idle()
        assert (await node.texts())[-1] == "answer"

    run(scenario, config=with_limits(turns_per_user=1))


def test_tokens_of_a_turn_count_for_the_next_one(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one")
        (await node.brain.next_turn()).answer("text", tokens=600)
        await node.idle()
        await node.say("two")
        await node.idle()
        assert "Your 500 tokens of today are used up" in (await node.texts())[-1]

    run(scenario, config=with_limits(tokens_per_user=500))


def test_a_turn_that_a_newer_message_interrupts_does_not_escape_the_limit(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        uids = [await node.say("one")]
        await node.brain.next_turn()
        uids.append(await node.say("two"))
        assert (await node.brain.next_turn()).texts == ["one", "two"]
        uids.append(await node.say("three"))
        await node.idle()
        assert len(node.brain.turns) == 2
        assert "Your 2 turns of today are used up" in (await node.texts())[-1]
        assert await node.states(*uids) == ["discarded"] * 3

    run(scenario, config=with_limits(turns_per_user=2))


def test_an_approved_call_runs_although_the_limit_is_reached(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        node.brain.auto = lambda request: "answer"
        await node.say("one")
        await node.idle()
        approved = {"internal": "approval", "approval_id": "3A7QXV", "text": "", "source": ALICE.to_dict()}
        await node.db.inbox.accept(node.key(), approved, platform="telegram", kind="internal")
        node.parts.arrived(node.key())
        await node.idle()
        assert [each.request.approval_id for each in node.brain.turns] == [None, "3A7QXV"]

    run(scenario, config=with_limits(turns_per_user=1))


def test_a_refused_turn_does_not_start_the_session_for_hooks(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        node.brain.auto = lambda request: "answer"
        await node.say("one")
        await node.idle()
        await node.say("/new")
        await node.idle()
        node.events.clear()
        await node.say("two")
        await node.idle()
        assert node.event_names() == []
        node.clock.advance(86_400)
        await node.say("three")
        await node.idle()
        assert "session:start" in node.event_names()

    run(scenario, config=with_limits(turns_per_user=1))


# --- the intake -------------------------------------------------------------------------------------------------------


def test_a_message_that_is_too_long_is_refused_and_not_stored(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        admission = await node.send("x" * 21)
        assert (admission.state, admission.code) == ("refused", "too_long")
        assert "21 characters; at most 20" in admission.message
        assert (await node.db.inbox.totals()).waiting == 0

    run(scenario, config=with_limits(message_characters=20))


@pytest.mark.parametrize("text", ["", " \n\t", "\u2003"])
def test_a_message_without_content_is_refused_in_silence(run: RunScenario, text: str) -> None:
    async def scenario(node: EngineNode) -> None:
        admission = await node.send(text)
        assert (admission.state, admission.code, admission.message) == ("refused", "empty", "")
        assert (await node.db.inbox.totals()).waiting == 0

    run(scenario)


def test_commands_that_wait_are_bounded_too_and_a_late_stop_is_seen(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("now")
        turn = await node.brain.next_turn()
        await node.say_all(*(f"/queue q{number}" for number in range(110)))
        assert (await node.send("/queue more")).state == "refused"
        await node.say_all(*("/undo" for _ in range(110)))
        refused = await node.send("/undo")
        assert (refused.state, refused.code) == ("refused", "queue_full")
        assert not turn.is_cancelled
        await node.say("/stop")

        async def is_cancelled() -> bool:
            return turn.is_cancelled

        await node.until(is_cancelled, "the turn is stopped")
        await node.idle()

    run(scenario, max_waiting=110, acknowledges=False)


def test_messages_are_refused_while_too_many_wait_but_commands_get_in(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("now")
        await node.brain.next_turn()
        for number in range(3):
            await node.say(f"/queue q{number}", message_id=f"q{number}")
        refused = await node.send("/queue q4")
        assert (refused.state, refused.code) == ("refused", "queue_full")
        assert "3 messages are waiting" in refused.message
        assert (await node.send("/queue q0", message_id="q0")).state == "known"
        await node.say("/new")
        await node.idle()
        node.brain.auto = lambda request: "answer"
        await node.say("after")
        await node.idle()
        assert (await node.texts())[-1] == "answer"

    run(scenario, max_waiting=3)


def test_the_same_message_again_is_known_and_not_answered_twice(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        node.brain.auto = lambda request: "answer"
        first = await node.send("hello", message_id="m-1")
        again = await node.send("hello", message_id="m-1")
        await node.idle()
        after = await node.send("hello", message_id="m-1")
        assert [first.state, again.state, after.state] == ["accepted", "known", "known"]
        assert first.uid == again.uid == after.uid
        assert await node.texts() == ["answer"]

    run(scenario)


def test_an_unreadable_message_is_given_up_and_the_lane_continues(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        node.brain.auto = lambda request: "answer"
        node.parts.draining.set()
        accepted = await node.db.inbox.accept(node.key(), {"text": "no source"}, platform="telegram")
        await node.say("hello")
        node.parts.draining.clear()
        node.dispatcher.arrived("")
        await node.idle()
        assert await node.states(accepted.message["uid"]) == ["failed"]
        assert "cannot be read" in ((await node.message(accepted.message["uid"]))["reason"] or "")
        assert await node.texts() == ["answer"]

    run(scenario)


def test_an_unreadable_message_that_arrives_during_a_turn_does_not_harm_it(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("hello")
        running_turn = await node.brain.next_turn()
        payload = {"source": ALICE.to_dict(), "command": ["stop"]}
        accepted = await node.db.inbox.accept(node.key(), payload, platform="telegram", kind="command")
        node.dispatcher.arrived(node.key())

        async def is_settled() -> bool:
            return (await node.states(accepted.message["uid"])) == ["failed"]

        await node.until(is_settled, "the message is given up")
        running_turn.answer("fine")
        await node.idle()
        assert await node.texts() == ["fine"]

    run(scenario)


def test_a_message_with_a_strange_platform_value_is_refused_with_a_reason(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        admission = await node.send("hello", media=({"path": "x" * 2_000_000, "type": "photo"},))
        assert admission.state == "refused"
        assert admission.message

    run(scenario)


def test_an_error_of_a_hermes_kind_in_the_start_of_a_turn_is_tried_again(
    make_node: Callable[..., EngineNode],
) -> None:
    async def main() -> None:
        node = make_node()
        calls: list[str] = []

        async def prepare(key: str, reply_key: str) -> None:
            calls.append(key)
            if len(calls) == 1:
                raise HermesError("not now")

        node.parts.prepare_chat = prepare
        async with running(node):
            node.brain.auto = lambda request: "answer"
            await node.say("hello")
            assert await node.reply() == "answer"
            await node.idle()
        assert len(calls) == 2

    asyncio.run(main())
