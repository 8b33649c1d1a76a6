"""A turn under a lease: when another node has the lane, it stops at once and stores nothing more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.agent.conversation import Conversation
from hermes.agent.models.model import Cancellation, ToolCall
from hermes.agent.turns.incoming import Incoming
from hermes.agent.turns.partial_answer import PartialAnswerSaver
from hermes.errors import InvalidValue, StaleLease
from hermes.state.lanes.types import Lease
from hermes.state.owner import EVERYBODY, owner_of
from hermes_state import SessionDB
from tests.agent.asking import endpoint
from tests.agent.talking import RecordingListener, agent_at, agent_with, stored
from tests.support.modelserver import Call, Fail, ModelServer, Received, Say

KEY = "agent:main:telegram:dm:1"
SUM = Call("add", {"one": 1, "other": 2})
GO = Incoming("go", "u0")
ME = owner_of("telegram", "1")


def lease_of(store: SessionDB) -> Lease:
    """The lease of a node on a lane with a message."""
    store.inbox.accept(KEY, {"text": "go"}, platform="telegram")
    claim = store.turns.acquire(KEY, "a/1")
    assert claim is not None
    return claim.lease


def take_over(store: SessionDB, lease: Lease) -> None:
    """Another node takes the lane."""
    store.turns.release(lease)
    assert store.turns.acquire(KEY, "b/2") is not None


def talk(server: ModelServer, store: SessionDB, home: Path) -> Conversation:
    return Conversation.start(agent_at(server, store, home), "telegram", asker=ME, user_id="1")


def taking_over(store: SessionDB, lease: Lease, answer: Say | Fail) -> Callable[[Received], Say | Fail]:
    def step(_: Received) -> Say | Fail:
        take_over(store, lease)
        return answer

    return step


class TestTurn:
    def test_turn_with_the_lease_is_stored(self, store: SessionDB, home: Path) -> None:
        lease = lease_of(store)
        with ModelServer(Say(calls=[SUM]), Say("3")) as server:
            conversation = talk(server, store, home)
            conversation.use_store(conversation.plain_store.fenced(lease))
            assert conversation.answer([GO]).text == "3"
        assert [row[0] for row in stored(conversation)] == ["user", "assistant", "tool", "assistant"]

    def test_lease_that_was_lost_before_the_turn_stores_nothing(self, store: SessionDB, home: Path) -> None:
        lease = lease_of(store)
        with ModelServer() as server:
            conversation = talk(server, store, home)
            conversation.use_store(conversation.plain_store.fenced(lease))
            take_over(store, lease)
            outcome = conversation.answer([GO])
            assert server.requests == []
        assert isinstance(outcome.error, StaleLease)
        assert (outcome.status, store.session_count()) == ("failed", 0)

    @pytest.mark.parametrize("answer", [Say("Hello."), Say(calls=[SUM]), Say("Hel lo", cut_after=1), Fail(400)])
    def test_lease_that_is_lost_during_the_call_ends_the_turn(
        self, answer: Say | Fail, store: SessionDB, home: Path
    ) -> None:
        lease, ear = lease_of(store), RecordingListener()
        with ModelServer(taking_over(store, lease, answer)) as server:
            conversation = talk(server, store, home)
            conversation.use_store(conversation.plain_store.fenced(lease))
            outcome = conversation.answer([GO], ear)
            assert len(server.requests) == 1
        assert outcome.status == "failed"
        assert isinstance(outcome.error, StaleLease) or isinstance(answer, Fail)
        assert (stored(conversation), ear.started) == ([("user", "go")], [])

    def test_no_tool_runs_after_the_lease_is_lost_between_two(self, store: SessionDB, home: Path) -> None:
        lease = lease_of(store)
        two = [SUM, Call("add", {"one": 3, "other": 4}, id="call_2")]

        class Thief(RecordingListener):
            def tool_started(self, call: ToolCall) -> None:
                super().tool_started(call)
                take_over(store, lease)

        thief = Thief()
        with ModelServer(Say(calls=two)) as server:
            conversation = talk(server, store, home)
            conversation.use_store(conversation.plain_store.fenced(lease))
            outcome = conversation.answer([GO], thief)
        assert isinstance(outcome.error, StaleLease)
        assert thief.started == ["add"]
        assert [row[0] for row in stored(conversation)] == ["user", "assistant"]

    def test_streaming_stops_when_the_partial_answer_is_refused(
        self, store: SessionDB, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "hermes.agent.turns.answer_stream.PartialAnswerSaver", lambda keep: PartialAnswerSaver(keep, every_s=0.01)
        )
        lease = lease_of(store)
        endless = taking_over(store, lease, Say("word " * 10_000, between_s=0.02))
        with ModelServer(endless) as server:
            conversation = talk(server, store, home)
            conversation.use_store(conversation.plain_store.fenced(lease))
            outcome = conversation.answer([GO])
            assert server.requests[0].hung_up.wait(20)
        assert isinstance(outcome.error, StaleLease)
        assert outcome.text.startswith("word ")
        assert stored(conversation) == [("user", "go")]

    def test_compression_is_refused_and_ends_the_turn(self, store: SessionDB, home: Path) -> None:
        long = {"error": {"message": "maximum context length exceeded", "code": "context_length_exceeded"}}
        with ModelServer() as server:
            conversation = talk(server, store, home)
            for number in range(5):
                conversation.say(f"{number} " + "word " * 200)
            lease = lease_of(store)
            conversation.use_store(conversation.plain_store.fenced(lease))
            server.then(taking_over(store, lease, Fail(400, long)))
            asked = len(server.requests)
            outcome = conversation.answer([GO])
            assert len(server.requests) == asked + 1
        assert isinstance(outcome.error, StaleLease)
        assert store.session_count() == 1

    def test_retry_after_the_lease_is_lost_changes_nothing(self, store: SessionDB, home: Path) -> None:
        with ModelServer() as server:
            conversation = talk(server, store, home)
            conversation.answer([GO])
            before, lease = stored(conversation), lease_of(store)
            conversation.use_store(conversation.plain_store.fenced(lease))
            take_over(store, lease)
            assert isinstance(conversation.retry().error, StaleLease)
        assert stored(conversation) == before


class TestStore:
    def test_title_needs_no_lease(self, store: SessionDB, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        lease = lease_of(store)
        with ModelServer(Say("They are limited."), Say("Uploads in nginx")) as server:
            agent = agent_with(endpoint(server), store, home)
            submit = agent.background.submit

            def lose_lease_and_submit(work: Callable[[], object]) -> bool:
                take_over(store, lease)
                return submit(work)

            monkeypatch.setattr(agent.background, "submit", lose_lease_and_submit)
            conversation = Conversation.start(agent, "telegram", asker=ME, user_id="1")
            conversation.use_store(conversation.plain_store.fenced(lease))
            conversation.answer([Incoming("nginx uploads are too small", "u0")])
            assert agent.settle(20)
        assert conversation.title == "Uploads in nginx"

    def test_tools_get_the_view_of_the_turn(self, store: SessionDB, home: Path) -> None:
        lease = lease_of(store)
        with ModelServer() as server:
            conversation = talk(server, store, home)
            conversation.answer([GO])
            conversation.use_store(conversation.plain_store.fenced(lease))
            take_over(store, lease)
            with pytest.raises(StaleLease):
                conversation.session.tools.context(Cancellation()).store.set_session_title(conversation.session_id, "x")
            conversation.use_store(None)
            assert conversation.session.tools.context(Cancellation()).store is conversation.plain_store

    def test_view_of_another_owner_is_refused(self, store: SessionDB, home: Path) -> None:
        with ModelServer() as server:
            conversation = talk(server, store, home)
            with pytest.raises(InvalidValue):
                conversation.use_store(store.for_owner(owner_of("telegram", "2")))
            conversation.use_store(store.for_owner(EVERYBODY))
        assert conversation.store.asker == ME

    def test_branch_keeps_the_lease(self, store: SessionDB, home: Path) -> None:
        lease = lease_of(store)
        with ModelServer() as server:
            conversation = talk(server, store, home)
            conversation.answer([GO])
            conversation.use_store(conversation.plain_store.fenced(lease))
            branch = conversation.branch()
            take_over(store, lease)
            assert isinstance(branch.answer([Incoming("more", "u1")]).error, StaleLease)
            branch.use_store(None)
            assert branch.answer([Incoming("more", "u1")]).status == "done"
