"""The short turn before a session ends, in which the model stores what it should remember."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.conversation import Conversation
from hermes.agent.memory.saving import MAX_STEPS, REQUEST
from hermes.agent.models.model import Cancellation
from hermes.agent.models.offline.model import OfflineModel
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.config import Config
from hermes.errors import StaleLease
from hermes.state.owner import owner_of
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.agent.talking import agent_at, assert_asked_soundly
from tests.support.modelserver import Call, Fail, ModelServer, Received, Say

ME = owner_of("telegram", "1")
CONFIG = Config()
ADD = Call("memory", {"action": "add", "text": "Lives in Lisbon"})


def talk(server: ModelServer, store: SessionDBProvider, home: Path, config: Config = CONFIG) -> Conversation:
    """A conversation in a chat with one exchange."""
    agent = agent_at(server, store, home, config, tools=TOOLBOX)
    conversation = Conversation.start(agent, "telegram", asker=ME, user_id="1")
    server.then(Say("Hello."))
    conversation.say("I moved to Lisbon")
    return conversation


def notes(conversation: Conversation) -> str:
    return conversation.agent.memory.read(ME)


def test_memories_are_stored_and_the_transcript_is_unchanged(store: SessionDBProvider, home: Path) -> None:
    with ModelServer() as server:
        conversation = talk(server, store, home)
        rows, session = store.get_messages(conversation.session_id, include_inactive=True), conversation.session_id
        server.then(Say(calls=[ADD]), Say("done"))
        assert conversation.save_memories(20)
        asked = server.requests[1]
        assert_asked_soundly(server)
        assert conversation.say("more").status == "done"
        assert "Lisbon" not in str(server.requests[-1].messages[3:])
    assert "Lives in Lisbon" in notes(conversation)
    assert (asked.tool_names, asked.last_text) == (["memory"], REQUEST)
    assert store.get_messages(session, include_inactive=True)[:2] == rows
    assert store.list_rewinds(session) == []


def test_usage_is_booked(store: SessionDBProvider, home: Path) -> None:
    with ModelServer() as server:
        conversation = talk(server, store, home)
        before = conversation.usage()["api_call_count"]
        server.then(Say("nothing"))
        assert not conversation.save_memories(20)
    assert conversation.usage()["api_call_count"] == before + 1


def test_other_tools_are_refused(store: SessionDBProvider, home: Path) -> None:
    with ModelServer() as server:
        conversation = talk(server, store, home)
        server.then(Say(calls=[Call("session_search", {})]), Say("done"))
        assert not conversation.save_memories(20)
        assert "there is no tool" in str(server.requests[2].messages[-1]["content"])


def test_number_of_calls_is_limited(store: SessionDBProvider, home: Path) -> None:
    with ModelServer(otherwise=Say(calls=[Call("memory", {"action": "read"})])) as server:
        conversation = talk(server, store, home)
        asked = len(server.requests)
        assert not conversation.save_memories(20)
        assert len(server.requests) == asked + MAX_STEPS


@pytest.mark.parametrize("answer", [Fail(400), Say("Hel lo", cut_after=1)])
def test_failure_of_the_model_stores_nothing(answer: Say | Fail, store: SessionDBProvider, home: Path) -> None:
    with ModelServer() as server:
        conversation = talk(server, store, home)
        rows = store.get_messages(conversation.session_id)
        server.then(answer)
        assert not conversation.save_memories(20)
    assert store.get_messages(conversation.session_id, include_inactive=True) == rows


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_slow_model_is_stopped(is_cancelled: bool, store: SessionDBProvider, home: Path) -> None:
    cancellation = Cancellation()

    def slow(_: Received) -> Say:
        if is_cancelled:
            cancellation.cancel()
        return Say("a b", between_s=30)

    with ModelServer() as server:
        conversation = talk(server, store, home)
        rows = store.get_messages(conversation.session_id)
        server.then(slow)
        assert not conversation.save_memories(600 if is_cancelled else 0.2, cancellation)
        assert server.requests[1].hung_up.wait(20)
    assert store.get_messages(conversation.session_id, include_inactive=True) == rows


def test_lost_lease_is_raised_before_anything_is_stored(store: SessionDB, home: Path) -> None:
    with ModelServer() as server:
        conversation = talk(server, store, home)
        store.inbox.accept("agent:main:telegram:dm:1", {}, platform="telegram")
        claim = store.turns.acquire("agent:main:telegram:dm:1", "a/1")
        assert claim is not None
        conversation.use_store(conversation.plain_store.fenced(claim.lease))
        store.turns.release(claim.lease)
        server.then(Say(calls=[ADD]))
        with pytest.raises(StaleLease):
            conversation.save_memories(20)
    assert notes(conversation) == ""


class TestSkipped:
    def test_offline_model_is_not_asked(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server:
            conversation = talk(server, store, home)
            conversation.use(OfflineModel())
            assert not conversation.save_memories(20)
            assert len(server.requests) == 1

    def test_session_without_messages_is_skipped(self, store: SessionDBProvider, home: Path) -> None:
        store.create_session("lane", "telegram", user_id="1")
        with ModelServer() as server:
            agent = agent_at(server, store, home, CONFIG, tools=TOOLBOX)
            assert not Conversation.resume(agent, "lane", asker=ME).save_memories(20)
            assert not Conversation.start(agent, "telegram", asker=ME).save_memories(20)
            assert server.requests == []

    def test_chat_without_the_memory_toolset_is_skipped(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server:
            conversation = talk(server, store, home, replace(CONFIG, tools={"telegram": ("recall",)}))
            assert not conversation.save_memories(20)
            assert len(server.requests) == 1
