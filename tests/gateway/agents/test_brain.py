"""Turns of lanes: what they store, what they return, and how they are stopped."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.registry import Registry, tool
from hermes.errors import Conflict, HermesError, StaleLease
from hermes.gateway.agents.brain import AgentBrain
from hermes.gateway.engine.ports import Brain, RunningTurn, TurnMessage
from hermes_state import SessionDB
from tests.agent.talking import TOOLS, add
from tests.gateway.agents.lane import Lane, answer, blocking, brain_at, config_for, until
from tests.support.modelserver import Call, Fail, ModelServer, Received, Say


def test_a_turn_stores_its_messages_and_returns_the_answer(store: SessionDB, home: Path) -> None:
    lane = Lane(store)

    async def use() -> None:
        with ModelServer(Say("Hello."), models=["test-model"]) as server:
            async with brain_at(server, store, home) as brain:
                protocol: Brain = brain
                running: RunningTurn = protocol.start(lane.request("hi", "there"))
                result = await running.result()
        assert (result.status, result.text, result.session_id, result.error) == ("done", "Hello.", "s1", None)
        assert (result.tokens, result.prompt_tokens, result.tools) == (25, 20, ())
        assert (running.text, running.progress) == ("Hello.", 1)
        assert lane.session_id == "s1"

    asyncio.run(use())
    assert lane.rows() == [("user", "hi"), ("user", "there"), ("assistant", "Hello.")]


def test_the_context_becomes_part_of_the_system_prompt(store: SessionDB, home: Path) -> None:
    lane = Lane(store)

    async def use() -> list[Received]:
        with ModelServer(Say("Hello.")) as server:
            async with brain_at(server, store, home) as brain:
                await answer(brain, lane.request("hi", context="## The chat\nIt is a test.", notes=["be kind"]))
        return server.requests

    (asked,) = asyncio.run(use())
    assert "## The chat\nIt is a test." in asked.messages[0]["content"]
    assert "be kind" in asked.last_text
    assert "be kind" not in str(lane.rows())


def test_a_second_turn_uses_the_kept_conversation(store: SessionDB, home: Path) -> None:
    lane = Lane(store)

    async def use() -> list[Received]:
        with ModelServer() as server:
            async with brain_at(server, store, home) as brain:
                for text in ("one", "two"):
                    assert (await answer(brain, lane.request(text))).status == "done"
                figures = brain.figures()
                assert (figures.cache.hits, figures.cache.misses, figures.cache.entries) == (1, 1, 1)
                await until(lambda: brain.figures().running == 0, "the threads are free")
                brain.forget(lane.key)
                assert brain.figures().cache.entries == 0
                await answer(brain, lane.request("three"))
        return server.requests

    asked = asyncio.run(use())
    assert [each["content"] for each in asked[2].messages[1:]] == [
        *("one", "You said: one", "two", "You said: two", "three"),
    ]


def test_an_answer_that_is_stored_is_not_computed_again(store: SessionDB, home: Path) -> None:
    lane = Lane(store)

    async def use() -> int:
        with ModelServer() as server:
            async with brain_at(server, store, home) as brain:
                first = await answer(brain, lane.request("hi"))
            async with brain_at(server, store, home) as brain:
                second = await answer(brain, lane.request("hi"))
                assert (second.status, second.text, second.tokens) == ("done", first.text, 0)
        return len(server.requests)

    assert asyncio.run(use()) == 1
    assert lane.rows() == [("user", "hi"), ("assistant", "You said: hi")]


def test_a_turn_without_messages_continues_because_of_a_note(store: SessionDB, home: Path) -> None:
    lane = Lane(store)

    async def use() -> None:
        with ModelServer() as server:
            async with brain_at(server, store, home) as brain:
                await answer(brain, lane.request("hi"))
                result = await answer(brain, lane.request(notes=["The gateway restarted. Continue."]))
                assert (result.status, "The gateway restarted." in result.text) == ("done", True)

    asyncio.run(use())
    assert [role for role, _ in lane.rows()] == ["user", "assistant", "assistant"]


def test_tools_are_progress_and_the_text_is_that_of_the_last_answer(store: SessionDB, home: Path) -> None:
    lane = Lane(store)
    calls = [Call("add", {"one": 1, "other": 2}, id="c1"), Call("add", {"one": 3, "other": 4}, id="c2")]

    async def use() -> None:
        with ModelServer(Say("Let me see.", calls=calls), Say("Ten.")) as server:
            async with brain_at(server, store, home) as brain:
                running = brain.start(lane.request("add"))
                before = running.active_at
                result = await running.result()
                assert (result.text, running.text, result.tools) == ("Ten.", "Ten.", ("add", "add"))
                assert (running.progress, running.active_at > before) == (3, True)

    asyncio.run(use())


def test_cancel_stops_the_turn_and_keeps_its_text(store: SessionDB, home: Path) -> None:
    lane = Lane(store)

    async def use() -> None:
        with ModelServer(Say(pieces=("One. ", "Two. ", "Three."), between_s=30)) as server:
            async with brain_at(server, store, home) as brain:
                running = brain.start(lane.request("count"))
                await until(lambda: running.text == "One. ", "the first piece arrives")
                assert running.activity == "writing the answer"
                running.cancel()
                result = await running.result()
                assert (result.status, result.text) == ("interrupted", "One. ")

    asyncio.run(use())
    assert lane.rows() == [("user", "count"), ("assistant", "One. ")]


def test_steering_is_answered_in_the_running_turn(store: SessionDB, home: Path) -> None:
    lane, started, may_end = Lane(store), threading.Event(), threading.Event()

    def slowly(request: Received) -> Say:
        started.set()
        may_end.wait(20)
        return Say("First.")

    async def use() -> None:
        with ModelServer(slowly, Say("Second.")) as server:
            async with brain_at(server, store, home) as brain:
                running = brain.start(lane.request("hi"))
                await until(started.is_set, "the model is asked")
                assert running.steer(TurnMessage("u2", "also this"))
                assert not running.steer(TurnMessage("u3", "   "))
                may_end.set()
                result = await running.result()
                assert (result.status, result.untaken) == ("done", ())
                assert result.text.endswith("Second.")
                assert not running.steer(TurnMessage("u4", "too late"))

    asyncio.run(use())
    assert [text for role, text in lane.rows() if role == "user"] == ["hi", "also this"]


def test_an_untaken_steering_message_is_named(store: SessionDB, home: Path) -> None:
    lane, started, may_end = Lane(store), threading.Event(), threading.Event()

    def fail(request: Received) -> Fail:
        started.set()
        may_end.wait(20)
        return Fail(400, {"error": {"message": "no"}})

    async def use() -> None:
        with ModelServer(fail) as server:
            async with brain_at(server, store, home) as brain:
                running = brain.start(lane.request("hi"))
                await until(started.is_set, "the model is asked")
                assert running.steer(TurnMessage("u2", "also this"))
                may_end.set()
                result = await running.result()
                assert (result.status, result.untaken) == ("failed", ("u2",))
                assert isinstance(result.error, HermesError)

    asyncio.run(use())


def test_retry_answers_the_last_message_again(store: SessionDB, home: Path) -> None:
    lane = Lane(store)

    async def use() -> None:
        with ModelServer(Say("First."), Say("Second.")) as server:
            async with brain_at(server, store, home) as brain:
                await answer(brain, lane.request("hi"))
                running = brain.start(lane.request(is_retry=True))
                assert not running.steer(TurnMessage("u", "no steering here"))
                assert (await running.result()).text == "Second."

    asyncio.run(use())
    assert lane.rows() == [("user", "hi"), ("assistant", "Second.")]


def test_an_unexpected_failure_hides_its_details(
    store: SessionDB, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Registry):
        def schemas(self, toolsets: object) -> list[object]:  # type: ignore[override]
            raise RuntimeError("the secret path /srv/x")

    lane = Lane(store)

    async def use() -> None:
        with ModelServer() as server:
            async with brain_at(server, store, home, tools=Broken([add])) as brain:
                result = await answer(brain, lane.request("hi"))
                assert result.status == "failed"
                assert type(result.error) is HermesError
                assert "secret" not in str(result.error)
                assert brain.figures().cache.entries == 0
                await until(lambda: brain.figures().running == 0, "the thread is free")

    asyncio.run(use())
    assert "the secret path /srv/x" in caplog.text
    assert "Traceback" in caplog.text


def test_an_unknown_session_fails_the_turn(store: SessionDB, home: Path) -> None:
    lane = Lane(store)

    async def use() -> None:
        async with brain_at(None, store, home) as brain:
            result = await answer(brain, lane.request("hi", session_id="nothing"))
            assert (result.status, getattr(result.error, "code", "")) == ("failed", "unknown_session")

    asyncio.run(use())


def test_a_session_of_another_user_is_unknown(store: SessionDB, home: Path) -> None:
    lane, other = Lane(store), Lane(store, user="8", session_id="s2")

    async def use() -> None:
        async with brain_at(None, store, home) as brain:
            result = await answer(brain, lane.request("hi", session_id=other.session_id))
            assert (result.status, getattr(result.error, "code", "")) == ("failed", "unknown_session")

    asyncio.run(use())
    assert other.rows() == []


def test_after_another_node_took_the_lane_nothing_is_stored(store: SessionDB, home: Path) -> None:
    lane, started, may_end = Lane(store), threading.Event(), threading.Event()

    def slowly(request: Received) -> Say:
        started.set()
        may_end.wait(20)
        return Say("Too late.")

    async def use() -> None:
        with ModelServer(slowly) as server:
            async with brain_at(server, store, home) as brain:
                running = brain.start(lane.request("hi"))
                await until(started.is_set, "the model is asked")
                await blocking(lambda: store.turns.release(lane.lease))
                await blocking(lambda: store.turns.acquire(lane.key, "n2"))
                may_end.set()
                result = await running.result()
                assert (result.status, type(result.error)) == ("failed", StaleLease)
                refused = await answer(brain, lane.request("more"))
                assert (refused.status, type(refused.error)) == ("failed", StaleLease)

    asyncio.run(use())
    assert lane.rows() == [("user", "hi")]


def test_a_turn_that_does_not_end_is_given_up_and_its_late_writes_are_refused(store: SessionDB, home: Path) -> None:
    lane, started, may_end = Lane(store), threading.Event(), threading.Event()

    @tool(toolset="test")
    def hang(context: ToolContext) -> str:
        """Hang, whatever is cancelled."""
        started.set()
        may_end.wait(60)
        return "late"

    async def use() -> None:
        with ModelServer(Say(calls=[Call("hang")])) as server:
            async with brain_at(server, store, home, tools=Registry([hang]), threads=1) as brain:
                running = brain.start(lane.request("hi"))
                await until(started.is_set, "the tool runs")
                assert running.activity == "running hang"
                brain.forget(lane.key)  # the turn was not cancelled, so it goes on
                assert brain.figures().abandoned == 0
                running.cancel()
                brain.forget(lane.key)
                result = await running.result()
                assert (result.status, result.tools) == ("interrupted", ("hang",))
                assert (brain.figures().abandoned, brain.figures().abandoned_total) == (1, 1)
                after = await answer(brain, lane.request("next"))  # with the same lease, and the only thread
                assert after.status == "done"
                rows = await blocking(lane.rows)
                may_end.set()
                await until(lambda: brain.figures().abandoned == 0, "the thread ends")
                assert await blocking(lane.rows) == rows
                assert brain.figures().abandoned_total == 1

    asyncio.run(use())
    assert "late" not in str(lane.rows())


def test_turns_above_the_number_of_threads_wait(store: SessionDB, home: Path) -> None:
    first, second, third = (Lane(store, user=str(user), session_id=f"s{user}") for user in (1, 2, 3))
    may_end = threading.Event()

    def slowly(request: Received) -> Say:
        may_end.wait(20)
        return Say("Done.")

    async def use() -> None:
        with ModelServer(slowly) as server:
            async with brain_at(server, store, home, threads=1) as brain:
                running = [brain.start(lane.request("hi")) for lane in (first, second, third)]
                await until(lambda: len(server.requests) == 1, "the first turn runs")
                assert (brain.figures().running, brain.figures().waiting) == (1, 2)
                assert running[1].activity == "waiting for a free thread"
                running[1].cancel()
                assert (await running[1].result()).status == "interrupted"
                may_end.set()
                assert [(await each.result()).status for each in (running[0], running[2])] == ["done", "done"]

    asyncio.run(use())
    assert second.rows() == []


def test_a_lane_can_use_another_model(store: SessionDB, home: Path) -> None:
    lane = Lane(store)

    async def use() -> list[str]:
        with ModelServer(models=["test-model", "other-model"]) as server:
            async with brain_at(server, store, home) as brain:
                assert brain.model_of(lane.key) == "test-model"
                await answer(brain, lane.request("one"))
                assert await blocking(lambda: brain.check_model("other-model")) == "other-model"
                brain.set_model(lane.key, "other-model")
                assert brain.model_of(lane.key) == "other-model"
                await answer(brain, lane.request("two"))
                brain.set_model(lane.key, None)
                await answer(brain, lane.request("three"))
        return [each.body["model"] for each in server.requests]

    assert asyncio.run(use()) == ["test-model", "other-model", "test-model"]


def test_work_besides_turns_uses_the_model_of_the_lane_also_after_a_restart(store: SessionDB, home: Path) -> None:
    lane = Lane(store)
    store.lanes.update(lane.key, touch=False, extra={"model": "other-model"})

    async def use() -> str:
        with ModelServer(models=["test-model", "other-model"]) as server:
            async with brain_at(server, store, home) as brain:
                return await brain.work(lane.key, "s1", lane.owner, lane.lease, lambda each: each.model.name)

    assert asyncio.run(use()) == "other-model"


def test_commands_work_on_the_conversation_of_the_lane(store: SessionDB, home: Path) -> None:
    lane = Lane(store)

    async def use() -> None:
        with ModelServer() as server:
            async with brain_at(server, store, home) as brain:
                await answer(brain, lane.request("one"))
                who = (lane.key, lane.session_id, lane.owner, lane.lease)
                undone = await brain.work(*who, lambda conversation: conversation.undo())
                assert (undone.turns, undone.text) == (1, "one")
                with pytest.raises(HermesError):
                    await brain.work(*who, lambda conversation: conversation.undo(0))
                assert brain.figures().cache.hits >= 1
                await blocking(lambda: store.turns.release(lane.lease))
                await blocking(lambda: store.turns.acquire(lane.key, "n2"))
                with pytest.raises(StaleLease):
                    await brain.work(*who, lambda conversation: conversation.set_title("no"))

    asyncio.run(use())


def test_a_title_can_be_set_while_a_turn_runs(store: SessionDB, home: Path) -> None:
    lane, started, may_end = Lane(store), threading.Event(), threading.Event()

    def slowly(request: Received) -> Say:
        started.set()
        may_end.wait(20)
        return Say("Done.")

    async def use() -> None:
        with ModelServer(slowly) as server:
            async with brain_at(server, store, home) as brain:
                running = brain.start(lane.request("hi"))
                await until(started.is_set, "the model is asked")
                who = (lane.key, lane.session_id, lane.owner, lane.lease)
                assert await brain.work(*who, lambda conversation: conversation.set_title("Talk")) == "Talk"
                may_end.set()
                assert (await running.result()).status == "done"
                assert brain.figures().cache.entries == 1

    asyncio.run(use())
    assert store.get_session_title("s1") == "Talk"


def test_a_closed_brain_stops_its_turns_and_starts_none(store: SessionDB, home: Path) -> None:
    lane, started = Lane(store), threading.Event()

    def slowly(request: Received) -> Say:
        started.set()
        return Say("never", before_s=60)

    async def use() -> None:
        with ModelServer(slowly) as server:
            brain = await blocking(lambda: AgentBrain(store, config_for(server), home, {}, tools=TOOLS))
            running = brain.start(lane.request("hi"))
            await until(started.is_set, "the model is asked")
            assert await brain.close(20)
            assert (await running.result()).status == "interrupted"
            assert (await answer(brain, lane.request("more"))).status == "interrupted"
            with pytest.raises(Conflict):
                await brain.work(lane.key, lane.session_id, lane.owner, lane.lease, lambda _: None)

    asyncio.run(use())
    assert lane.rows()[0] == ("user", "hi")


def test_compression_in_a_turn_keeps_the_conversation(store: SessionDB, home: Path) -> None:
    lane = Lane(store)

    async def use() -> None:
        async with brain_at(None, store, home) as brain:
            for number in range(6):
                await answer(brain, lane.request(f"message {number}"))
            who = (lane.key, lane.session_id, lane.owner, lane.lease)
            done = await brain.work(*who, lambda conversation: conversation.compress(keep=1))
            assert done.is_changed
            moved = await blocking(lambda: store.lanes.get(lane.key))
            assert moved is not None
            assert moved["session_id"] == done.session_id
            hits = brain.figures().cache.hits
            result = await answer(brain, lane.request("after", session_id=done.session_id))
            assert (result.status, result.session_id) == ("done", done.session_id)
            assert brain.figures().cache.hits == hits + 1

    asyncio.run(use())
