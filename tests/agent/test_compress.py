"""Compression: a conversation continues in a shorter session, once, and nothing is lost."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.agent import Agent
from hermes.agent.compression.compress import BUSY, LONGER, LOST, STOPPED, TOO_LITTLE, Compression, CompressionRequest
from hermes.agent.compression.summary import MARK
from hermes.agent.conversation import Conversation
from hermes.agent.listener import Listener
from hermes.agent.models.model import Cancellation
from hermes.agent.models.offline.model import OfflineModel
from hermes.agent.safety.approval import ApprovalRequest, Decision
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.config import Config
from hermes.errors import ContextTooLong
from hermes.state.owner import EVERYBODY, TERMINAL
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.agent.asking import choice_of, endpoint
from tests.agent.talking import (
    CONFIG,
    RecordingListener,
    agent_at,
    agent_with,
    assert_asked_soundly,
    assert_sound,
    stop_when,
    stored,
)
from tests.support.clock import FakeClock
from tests.support.conversations import contents, session_of
from tests.support.modelserver import Call, Fail, ModelServer, Received, Say
from tests.support.plainsql import rows
from tests.support.waiting import wait_until

TOO_LONG = Fail(400, {"error": {"code": "context_length_exceeded", "message": "too long"}})
MORE = " and more" * 250
"""Long enough that a summary is shorter than the messages it replaces."""


def fill_conversation(agent: Agent, exchanges: int = 6, more: str = MORE, **fields: Any) -> Conversation:
    """Start a conversation with some exchanges, written without a model."""
    conversation = Conversation.start(agent, **fields, asker=EVERYBODY)
    conversation.use(OfflineModel())
    for number in range(exchanges):
        conversation.say(f"!say answer {number}{more}")
    conversation.use(agent.model)
    return conversation


@pytest.fixture
def offline(store: SessionDBProvider, home: Path) -> Agent:
    return agent_with(OfflineModel(), store, home, replace(CONFIG, agent=replace(CONFIG.agent, auto_title=False)))


class TestByHand:
    def test_compression_that_would_lengthen_is_skipped(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("They said several things at length. " * 2000)) as server:
            conversation = fill_conversation(agent_at(server, store, home))
            root = conversation.session_id
            done = conversation.compress()
        assert (done.is_changed, done.reason) == (False, LONGER)
        assert conversation.session_id == root
        assert session_of(store, root)["end_reason"] is None

    def test_compression_keeps_first_and_last_exchanges_and_a_summary(
        self, store: SessionDBProvider, home: Path
    ) -> None:
        with ModelServer(Say("They said several things.")) as server:
            conversation = fill_conversation(agent_at(server, store, home))
            root = conversation.session_id
            done = conversation.compress()
            asked = server.requests[0].last_text
        assert done.is_changed
        assert (done.session_id, done.messages_before, done.messages_after) == (conversation.session_id, 12, 7)
        texts = [str(row["content"]) for row in conversation.history]
        assert texts[:2] == ["!say answer 0" + MORE, "answer 0" + MORE]
        assert texts[2].startswith(MARK)
        assert texts[2].endswith("They said several things.")
        assert root in texts[2]
        assert texts[3:] == ["!say answer 4" + MORE, "answer 4" + MORE, "!say answer 5" + MORE, "answer 5" + MORE]
        assert "answer 1" in asked
        assert "answer 3" in asked
        assert "answer 4" not in asked
        assert_sound(store, conversation.session_id)

    def test_compression_keeps_the_requested_number_of_exchanges(self, offline: Agent) -> None:
        conversation = fill_conversation(offline)
        conversation.compress(keep=4)
        assert [row["content"] for row in conversation.history if row["role"] == "user"] == [
            f"!say answer {number}{MORE}" for number in (0, 2, 3, 4, 5)
        ]

    def test_focus_is_passed_to_the_summary_prompt(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("ok")) as server:
            fill_conversation(agent_at(server, store, home)).compress("the parser")
            assert "Pay most attention to this: the parser" in server.requests[0].last_text

    def test_child_gets_the_next_number_and_its_own_prompt(self, offline: Agent) -> None:
        conversation = fill_conversation(offline, title="Plan", cwd="/work")
        root = session_of(offline.store, conversation.session_id)
        offline.memory.add(TERMINAL, "likes tea")
        done = conversation.compress()
        row = session_of(offline.store, conversation.session_id)
        assert (done.title, conversation.title) == ("Plan #2", "Plan #2")
        assert [row[name] for name in ("source", "cwd", "model", "child_kind")] == [
            "cli",
            "/work",
            "offline",
            "compression",
        ]
        assert conversation.session.prompt == row["system_prompt"] == root["system_prompt"]

    def test_child_prompt_has_newer_memory(self, store: SessionDBProvider, home: Path) -> None:
        agent = agent_with(OfflineModel(), store, home, tools=TOOLBOX)
        conversation = fill_conversation(agent)
        agent.memory.add(TERMINAL, "likes tea")
        assert "likes tea" not in conversation.session.prompt
        conversation.compress()
        assert "likes tea" in conversation.session.prompt

    def test_compression_can_be_repeated(self, offline: Agent) -> None:
        conversation = fill_conversation(offline)
        for number in range(3):
            assert conversation.compress().is_changed
            conversation.say(f"!say more {number}")
        texts = contents(conversation.history)
        assert texts[:2] == ["!say answer 0" + MORE, "answer 0" + MORE]
        assert sum(str(text).startswith(MARK) for text in texts) == 1
        assert len(offline.store.list_sessions_rich()) == 1
        assert_sound(offline.store, conversation.session_id)

    def test_too_little_to_compress_is_reported(self, offline: Agent) -> None:
        conversation = fill_conversation(offline, exchanges=3)
        before = conversation.session_id
        done = conversation.compress()
        assert (done.is_changed, done.reason, done.session_id) == (False, TOO_LITTLE, before)
        assert Conversation.start(offline, asker=EVERYBODY).compress().reason == TOO_LITTLE
        assert offline.store.session_count() == 1

    def test_failed_summary_falls_back_to_an_extract(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Fail(401)) as server:
            conversation, ear = fill_conversation(agent_at(server, store, home)), RecordingListener()
            assert conversation.compress(listener=ear).is_changed
        assert "could not write a summary" in ear.notices[0]
        assert "Asked for:" in str(conversation.history[2]["content"])

    def test_summary_is_made_by_the_auxiliary_model_and_booked(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server, ModelServer(Say("Short.")) as fast:
            config = replace(CONFIG, agent=replace(CONFIG.agent, auto_title=False))
            conversation = fill_conversation(agent_at(server, store, home, config, auxiliary=endpoint(fast)))
            root, before = conversation.session_id, len(store.list_usage_events(conversation.session_id))
            conversation.compress()
            assert (len(server.requests), len(fast.requests)) == (0, 1)
        assert len(store.list_usage_events(root)) == before + 1

    def test_compression_can_be_cancelled(self, store: SessionDBProvider, home: Path) -> None:
        asked = threading.Event()

        def hang(_: Received) -> Say:
            asked.set()
            return Say("late", before_s=20)

        with ModelServer(hang) as server:
            conversation = fill_conversation(agent_at(server, store, home))
            before = conversation.session_id
            done = conversation.compress(cancellation=stop_when(asked))
        assert (done.reason, conversation.session_id) == (STOPPED, before)
        assert store.get_compression_lock_holder(before) is None

    def test_compression_moves_permissions_and_processes(self, store: SessionDBProvider, home: Path) -> None:
        asked: list[ApprovalRequest] = []

        def approve(request: ApprovalRequest) -> Decision:
            asked.append(request)
            return Decision.SESSION

        agent = agent_with(OfflineModel(), store, home, tools=TOOLBOX)
        conversation = fill_conversation(agent, cwd=str(home), approve=approve)
        touch = '!tool terminal {"command": "touch %s"}'
        conversation.say(touch % "a")
        conversation.say('!tool terminal {"command": "sleep 60", "background": true}')
        before = len(asked)
        assert conversation.compress().is_changed
        conversation.say(touch % "a")
        assert len(asked) == before
        assert agent.processes.has_active(conversation.session_id)
        agent.processes.end(conversation.session_id)


class TestLock:
    def test_compression_lock_of_another_process_is_respected(self, offline: Agent) -> None:
        conversation = fill_conversation(offline)
        offline.store.try_acquire_compression_lock(conversation.session_id, "another process")
        done = conversation.compress()
        assert (done.is_changed, done.reason) == (False, BUSY)
        assert offline.store.get_compression_lock_holder(conversation.session_id) == "another process"

    def test_lock_is_renewed_during_the_summary(self, home: Path) -> None:
        path, clock = home / "state.db", FakeClock()

        def take_long(_: Received) -> Say:
            for _round in range(3):
                clock.advance(0.2)
                wait_until(
                    lambda: rows(path, "SELECT expires_at FROM compression_locks") == [(clock.now + 0.3,)], "a renewal"
                )
            return Say("Short.")

        with SessionDB(path, clock=clock) as store, ModelServer(take_long) as server:
            agent = agent_at(server, store, home)
            session_id = fill_conversation(agent).session_id
            compression = Compression(agent, agent.store, agent.model, lock_ttl_s=0.3)
            assert compression.run(
                session_id, CompressionRequest(), lambda _: "p", Listener(), Cancellation()
            ).is_changed

    def test_lost_lock_changes_nothing(self, home: Path) -> None:
        def steal(_: Received) -> Say:
            holder = store.get_compression_lock_holder(session_id)
            assert holder is not None
            store.release_compression_lock(session_id, holder)
            store.try_acquire_compression_lock(session_id, "another process")
            return Say("late", before_s=20)

        with SessionDB(home / "state.db", clock=FakeClock()) as store, ModelServer(steal) as server:
            agent = agent_at(server, store, home)
            session_id = fill_conversation(agent).session_id
            compression = Compression(agent, agent.store, agent.model, lock_ttl_s=0.3)
            done = compression.run(session_id, CompressionRequest(), lambda _: "p", Listener(), Cancellation())
            assert (done.is_changed, done.reason) == (False, LOST)
            assert session_of(store, session_id)["ended_at"] is None
            assert store.get_compression_lock_holder(session_id) == "another process"


class TestAutomatic:
    def agent(self, server: ModelServer, store: SessionDBProvider, home: Path, config: Config = CONFIG) -> Agent:
        agent = agent_at(server, store, home, config)
        agent.model = endpoint(server, choice=choice_of(server, context_tokens=1_000))
        return agent

    def fill(self, store: SessionDBProvider, session_id: str, words: int) -> None:
        for number in range(6):
            store.append_message(session_id, "user", f"question {number}")
            store.append_message(session_id, "assistant", "word " * words)

    def test_long_conversation_is_compressed_automatically(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("Short."), Say("ok")) as server:
            conversation = fill_conversation(self.agent(server, store, home), exchanges=1)
            root, ear = conversation.session_id, RecordingListener()
            self.fill(store, root, 80)
            outcome = conversation.say("on", ear)
            assert_asked_soundly(server)
            asked = server.requests[1].messages
        assert (outcome.status, outcome.text) == ("done", "ok")
        assert outcome.session_id == conversation.session_id == store.get_compression_tip(root) != root
        assert "it continues in session" in ear.notices[0]
        assert asked[-1]["content"].endswith("on")
        assert stored(conversation)[-2:] == [("user", "on"), ("assistant", "ok", "stop")]

    def test_short_conversation_is_not_compressed(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("ok")) as server:
            conversation = fill_conversation(self.agent(server, store, home), exchanges=1, more="")
            self.fill(store, conversation.session_id, 10)
            conversation.say("on")
            assert len(server.requests) == 1

    def test_automatic_compression_can_be_disabled(self, store: SessionDBProvider, home: Path) -> None:
        config = replace(CONFIG, compression=replace(CONFIG.compression, enabled=False))
        with ModelServer(Say("ok")) as server:
            conversation = fill_conversation(self.agent(server, store, home, config), exchanges=1)
            self.fill(store, conversation.session_id, 80)
            assert conversation.say("on").text == "ok"

    def test_automatic_compression_without_a_summary_is_postponed(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Fail(401), Say("ok")) as server:
            conversation, ear = fill_conversation(self.agent(server, store, home), exchanges=1), RecordingListener()
            before = conversation.session_id
            self.fill(store, before, 80)
            outcome = conversation.say("on", ear)
        assert (outcome.text, outcome.session_id) == ("ok", before)
        assert "was not compressed" in ear.notices[0]

    def test_context_overflow_compresses_once(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(TOO_LONG, Say("Short."), Say("ok")) as server:
            conversation = fill_conversation(agent_at(server, store, home))
            root = conversation.session_id
            outcome = conversation.say("on")
            assert_asked_soundly(server)
        assert (outcome.text, outcome.session_id) == ("ok", store.get_compression_tip(root))
        assert contents(conversation.history)[-2:] == ["on", "ok"]

    def test_repeated_context_overflow_ends_with_an_error(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(TOO_LONG, Say("Short."), TOO_LONG) as server:
            outcome = fill_conversation(agent_at(server, store, home)).say("on")
            assert len(server.requests) == 3
        assert isinstance(outcome.error, ContextTooLong)

    def test_long_first_messages_are_compressed_too(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(TOO_LONG, Say("Short."), Say("ok")) as server:
            conversation = fill_conversation(agent_at(server, store, home), exchanges=1)
            assert conversation.say("on").text == "ok"
        assert [each[0] for each in stored(conversation)] == ["system", "user", "assistant"]

    def test_overflow_with_too_little_to_compress_is_reported(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(TOO_LONG) as server:
            ear = RecordingListener()
            outcome = Conversation.start(agent_at(server, store, home), asker=EVERYBODY).say("on", ear)
        assert isinstance(outcome.error, ContextTooLong)
        assert TOO_LITTLE in ear.notices[0]

    def test_compression_within_a_turn_keeps_the_turn_together(self, store: SessionDBProvider, home: Path) -> None:
        call = Say(calls=[Call("add", {"one": 1, "other": 2})])
        with ModelServer(call, TOO_LONG, Say("Short."), Say("3")) as server:
            conversation = fill_conversation(agent_at(server, store, home))
            outcome = conversation.say("add")
            assert_asked_soundly(server)
        assert (outcome.text, outcome.tool_calls) == ("3", 1)
        assert [each[0] for each in stored(conversation)][-4:] == ["user", "assistant", "tool", "assistant"]


class TestElsewhere:
    """Another program compresses the session of this conversation."""

    def test_conversation_continues_in_the_session_compressed_elsewhere(self, offline: Agent) -> None:
        here = fill_conversation(offline)
        there = Conversation.resume(offline, here.session_id, asker=EVERYBODY)
        assert there.compress().is_changed
        ear = RecordingListener()
        outcome = here.say("!say on", ear)
        assert outcome.session_id == here.session_id == there.session_id
        assert "another process compressed" in ear.notices[0]

    def test_answer_during_a_foreign_compression_is_not_lost(self, store: SessionDBProvider, home: Path) -> None:
        def compress(_: Received) -> Say:
            assert Conversation.resume(elsewhere, root, asker=EVERYBODY).compress().is_changed
            return Say("the answer")

        with ModelServer(compress) as server:
            elsewhere = agent_with(OfflineModel(), store, home)
            here = fill_conversation(agent_at(server, store, home))
            root = here.session_id
            outcome = here.say("on")
        assert outcome.session_id == here.session_id == store.get_compression_tip(root) != root
        assert contents(here.history)[-2:] == ["on", "the answer"]
