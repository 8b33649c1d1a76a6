"""Conversations: start, resume, undo, retry, branch, and parallel use."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.agent import Agent
from hermes.agent.conversation import Conversation, UndoResult
from hermes.agent.models.model import Cancellation, ToolCall
from hermes.agent.models.offline.model import OfflineModel
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.config import Config
from hermes.errors import Conflict, InvalidValue, NotFound, StoreClosed, TitleTaken, UnknownSession
from hermes.state.owner import EVERYBODY, owner_of
from hermes.state.provider import SessionDBProvider
from tests.agent.talking import RecordingListener, agent_at, agent_with, assert_asked_soundly, assert_sound, stored
from tests.support.conversations import Row, at_once, contents, session_of
from tests.support.modelserver import Call, Fail, ModelServer, Say


@pytest.fixture
def agent(store: SessionDBProvider, home: Path) -> Agent:
    """An agent with the offline model."""
    return agent_with(OfflineModel(), store, home)


def conversation_of(agent: Agent, *texts: str) -> Conversation:
    """Start a conversation with these messages of the user."""
    conversation = Conversation.start(agent, asker=EVERYBODY)
    for text in texts:
        assert conversation.say(f"!say {text}").text == text
    return conversation


class TestStart:
    def test_new_conversation_stores_nothing_before_the_first_message(self, agent: Agent) -> None:
        conversation = Conversation.start(agent, title="Plan", asker=EVERYBODY)
        assert (conversation.title, conversation.history, conversation.usage()) == ("Plan", [], {})
        conversation.end("cli_close")
        assert agent.store.session_count() == 0

    def test_session_stores_user_and_directory(self, agent: Agent) -> None:
        conversation = Conversation.start(
            agent, "telegram", user_id="4711", cwd="/work", asker=owner_of("telegram", "4711")
        )
        conversation.say("!say hi")
        row = session_of(agent.store, conversation.session_id)
        assert [row[name] for name in ("source", "user_id", "owner", "cwd", "model")] == [
            "telegram", "4711", "telegram:4711", "/work", "offline",
        ]  # fmt: skip
        assert conversation.session.owner == owner_of("telegram", "4711")

    def test_title_is_stored_with_the_first_message(self, agent: Agent) -> None:
        conversation = Conversation.start(agent, title="  My   plan ", asker=EVERYBODY)
        conversation.say("!say hi")
        assert conversation.title == agent.store.get_session_title(conversation.session_id) == "My plan"

    def test_taken_title_is_refused(self, agent: Agent) -> None:
        conversation_of(agent, "x").set_title("Plan")
        with pytest.raises(TitleTaken):
            Conversation.start(agent, title="Plan", asker=EVERYBODY)

    def test_title_taken_in_the_meantime_is_reported(self, agent: Agent) -> None:
        late, ear = Conversation.start(agent, title="Plan", asker=EVERYBODY), RecordingListener()
        conversation_of(agent, "x").set_title("Plan")
        assert late.say("!say hi", ear).status == "done"
        assert "'Plan' is already in use" in ear.notices[0]
        assert agent.settle(20)
        assert late.title != "Plan"

    def test_title_can_be_changed_before_and_after_the_first_message(self, agent: Agent) -> None:
        conversation = Conversation.start(agent, title="One", asker=EVERYBODY)
        assert conversation.set_title("Two") == "Two"
        conversation.say("!say hi")
        assert conversation.set_title("Three") == conversation.title == "Three"
        assert conversation.set_title("") is conversation.title is None


class TestResume:
    def test_resumed_conversation_continues_where_it_was_left(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server:
            first = Conversation.start(agent_at(server, store, home), cwd="/work", asker=EVERYBODY)
            first.say("one")
            first.end("cli_close")
            again = Conversation.resume(agent_at(server, store, home), first.session_id, asker=EVERYBODY)
            assert (again.session.cwd, again.title, len(again.history)) == ("/work", None, 2)
            assert session_of(store, again.session_id)["ended_at"] is None
            again.say("two")
            assert [each["content"] for each in server.requests[1].messages[1:]] == ["one", "You said: one", "two"]
        assert len(stored(again)) == 4

    def test_resuming_a_missing_session_is_an_error(self, agent: Agent) -> None:
        with pytest.raises(UnknownSession):
            Conversation.resume(agent, "missing", asker=EVERYBODY)

    def test_resuming_a_session_of_another_owner_is_an_error(self, agent: Agent) -> None:
        mine = Conversation.start(agent, "telegram", user_id="1", asker=owner_of("telegram", "1"))
        mine.say("!say hi")
        with pytest.raises(UnknownSession):
            Conversation.resume(agent, mine.session_id, asker=owner_of("telegram", "2"))
        assert Conversation.resume(agent, mine.session_id, asker=owner_of("telegram", "1")).session.owner == owner_of(
            "telegram", "1"
        )

    def test_session_of_a_chat_user_has_no_tools_of_the_terminal(self, store: SessionDBProvider, home: Path) -> None:
        config = replace(Config(), approvals=replace(Config().approvals, mode="allow"))
        agent = agent_with(OfflineModel(), store, home, config, tools=TOOLBOX)
        owner = owner_of("telegram", "1")
        store.create_session("claims", "cli", owner=owner.stored)
        session = Conversation.resume(agent, "claims", asker=owner, cwd=str(home / "workspaces" / "x")).session
        assert session.toolsets == {"memory", "recall"}
        call = ToolCall("1", "terminal", '{"command": "touch made"}')
        assert agent.tools.run(call, session.tools.context(Cancellation())).is_error
        own = Conversation.start(agent, asker=EVERYBODY).session
        assert "terminal" in own.toolsets

    def test_resume_opens_the_newest_session_of_the_chain(self, agent: Agent) -> None:
        first = conversation_of(agent, *(letter * 2_000 for letter in "abcdef"))
        root = first.session_id
        assert first.compress().is_changed
        again = Conversation.resume(agent, root, asker=EVERYBODY)
        assert again.session_id == first.session_id != root
        assert session_of(agent.store, root)["end_reason"] == "compression"

    def test_resume_reports_the_stored_model(self, store: SessionDBProvider, home: Path, agent: Agent) -> None:
        first = conversation_of(agent, "x")
        with ModelServer() as server:
            again = Conversation.resume(agent_at(server, store, home), first.session_id, asker=EVERYBODY)
            assert (again.session.model_name, again.model.name) == ("offline", "test-model")
            again.say("hi")
            assert again.session.model_name == session_of(store, again.session_id)["model"] == "test-model"

    def test_session_without_a_prompt_gets_a_permanent_one(self, store: SessionDBProvider, home: Path) -> None:
        store.create_session("old", "cli")
        store.append_message("old", "user", "hi")
        with ModelServer() as server:
            Conversation.resume(agent_at(server, store, home), "old", asker=EVERYBODY).say("on")
            prompt = server.requests[0].messages[0]["content"]
        assert session_of(store, "old")["system_prompt"] == prompt

    @pytest.mark.parametrize("number", range(5))
    def test_resume_after_a_crash_at_any_point_continues(
        self, store: SessionDBProvider, home: Path, number: int
    ) -> None:
        calls = [Call("add", {"one": 1, "other": 2}, id="a"), Call("add", {"one": 3, "other": 4}, id="b")]
        rows: list[Row] = [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.written}}
                    for call in calls
                ],
            },
            {"role": "tool", "content": "3", "tool_call_id": "a"},
            {"role": "tool", "content": "7", "tool_call_id": "b"},
            {"role": "assistant", "content": "3 and 7"},
        ]
        store.create_session("s", "cli")
        store.append_messages("s", rows[: number + 1])
        with ModelServer() as server:
            assert Conversation.resume(agent_at(server, store, home), "s", asker=EVERYBODY).say("and?").status == "done"
            assert_asked_soundly(server)
            lost = [each for each in server.requests[0].messages if "may have run" in str(each["content"])]
        assert len(lost) == {1: 2, 2: 1}.get(number, 0)


class TestUndo:
    def test_undo_removes_the_last_turn(self, agent: Agent) -> None:
        conversation = conversation_of(agent, "one", "two")
        assert conversation.undo() == UndoResult(1, 2, "!say two")
        assert stored(conversation) == [("user", "!say one"), ("assistant", "one", "stop")]

    def test_undo_of_several_turns_stops_at_the_first(self, agent: Agent) -> None:
        conversation = conversation_of(agent, "one", "two", "three")
        assert conversation.undo(2) == UndoResult(2, 4, "!say two")
        assert conversation.undo(5) == UndoResult(1, 2, "!say one")
        assert conversation.undo() == UndoResult(0)

    def test_undone_turn_is_hidden_after_resume(self, agent: Agent) -> None:
        conversation = conversation_of(agent, "one", "two")
        conversation.undo()
        assert contents(Conversation.resume(agent, conversation.session_id, asker=EVERYBODY).history) == [
            "!say one",
            "one",
        ]

    def test_undo_of_an_unanswered_turn_works(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Fail(400)) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("hi")
        assert conversation.undo() == UndoResult(1, 1, "hi")

    def test_undo_of_less_than_one_turn_is_refused(self, agent: Agent) -> None:
        with pytest.raises(InvalidValue):
            conversation_of(agent, "one").undo(0)


class TestRetry:
    def test_retry_regenerates_and_undoes_the_old_answer(self, store: SessionDBProvider, home: Path) -> None:
        calls = [Call("add", {"one": 1, "other": 2})]
        with ModelServer(Say(calls=calls), Say("First."), Say("Second.")) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("hi")
            assert conversation.retry().text == "Second."
            assert server.requests[2].messages == server.requests[0].messages
        assert stored(conversation) == [("user", "hi"), ("assistant", "Second.", "stop")]
        hidden = store.get_messages(conversation.session_id, include_inactive=True)
        assert contents(row for row in hidden if not row["active"]) == [None, "3", "First."]

    def test_failed_retry_keeps_the_old_answer(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("First."), Say("Second."), Fail(401)) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("hi")
            conversation.retry()
            assert conversation.retry().status == "failed"
        assert stored(conversation) == [("user", "hi"), ("assistant", "Second.", "stop")]

    def test_cut_retry_replaces_the_old_answer(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("First."), Say("One two", cut_after=1)) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("hi")
            conversation.retry()
        assert stored(conversation) == [("user", "hi"), ("assistant", "One ", "cut")]

    def test_retry_without_messages_is_refused(self, agent: Agent) -> None:
        outcome = Conversation.start(agent, asker=EVERYBODY).retry()
        assert outcome.status == "failed"
        assert isinstance(outcome.error, NotFound)


class TestStoreInTrouble:
    def test_store_failure_is_an_outcome_and_not_an_exception(self, agent: Agent, store: SessionDBProvider) -> None:
        conversation = conversation_of(agent, "one")
        store.close()
        for outcome in (
            conversation.say("two"),
            conversation.retry(),
            Conversation.start(agent, asker=EVERYBODY).say("three"),
        ):
            assert outcome.status == "failed"
            assert isinstance(outcome.error, StoreClosed)

    def test_outcome_of_a_store_failure_keeps_the_answer(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("One two")) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            outcome = conversation.say(
                "hi", RecordingListener(on_text=lambda _: store.delete_session(conversation.session_id))
            )
        assert (outcome.status, outcome.text) == ("failed", "One two")
        assert isinstance(outcome.error, UnknownSession)
        assert store.session_count() == 0

    def test_session_deleted_in_the_meantime_is_reported(self, agent: Agent, store: SessionDBProvider) -> None:
        conversation = conversation_of(agent, "one")
        store.delete_session(conversation.session_id)
        assert isinstance(conversation.say("two").error, UnknownSession)


class TestBranch:
    def test_branch_continues_independently(self, agent: Agent) -> None:
        first = conversation_of(agent, "one")
        other = first.branch("Another way")
        other.say("!say two")
        assert (other.title, len(other.history), len(first.history)) == ("Another way", 4, 2)
        assert session_of(agent.store, other.session_id)["parent_session_id"] == first.session_id
        assert session_of(agent.store, first.session_id)["end_reason"] == "branched"

    def test_branch_sends_the_same_bytes(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server:
            first = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            first.say("one")
            first.branch().say("two")
            one, two = (request.messages for request in server.requests)
        assert two[: len(one)] == one

    def test_branch_without_messages_is_refused(self, agent: Agent) -> None:
        with pytest.raises(NotFound):
            Conversation.start(agent, asker=EVERYBODY).branch()


class TestRepeatedMessage:
    """The same message, sent again by a platform or after a crash."""

    def test_repeated_message_is_stored_and_answered_once(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("Once.")) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("hi", uid="telegram:1")
            again = Conversation.resume(agent_at(server, store, home), conversation.session_id, asker=EVERYBODY)
            assert (again.say("hi", uid="telegram:1").text, len(server.requests)) == ("Once.", 1)
        assert stored(conversation) == [("user", "hi"), ("assistant", "Once.", "stop")]

    def test_repeated_unanswered_message_is_answered(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Fail(400), Say("Now.")) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("hi", uid="telegram:1")
            assert conversation.say("hi", uid="telegram:1").text == "Now."
        assert stored(conversation) == [("user", "hi"), ("assistant", "Now.", "stop")]

    def test_repeated_undone_message_is_not_answered(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("hi", uid="telegram:1")
            conversation.undo()
            assert conversation.say("hi", uid="telegram:1").text == ""
            assert len(server.requests) == 1


class TestSeveralAtOnce:
    def test_one_conversation_runs_one_turn_at_a_time(self, store: SessionDBProvider, home: Path) -> None:
        asked, answer = threading.Event(), threading.Event()

        def hold(_: object) -> Say:
            asked.set()
            assert answer.wait(20)
            return Say("done")

        with ModelServer(hold) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            thread = threading.Thread(target=conversation.say, args=("one",))
            thread.start()
            assert asked.wait(20)
            for attempt in (lambda: conversation.say("two"), conversation.undo, conversation.retry):
                with pytest.raises(Conflict, match="middle of a turn"):
                    attempt()
            answer.set()
            thread.join(20)
        assert len(stored(conversation)) == 2

    def test_many_conversations_of_one_agent_do_not_mix(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server:
            agent = agent_at(server, store, home)

            def talk(number: int) -> list[str]:
                conversation = Conversation.start(
                    agent, "telegram", user_id=str(number), asker=owner_of("telegram", str(number))
                )
                return [conversation.say(f"{number} says {turn}").text for turn in range(3)]

            answers = at_once(8, talk)
        assert answers == [[f"You said: {number} says {turn}" for turn in range(3)] for number in range(8)]

    def test_two_programs_in_one_session_leave_a_valid_history(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(otherwise=lambda asked: _add_or_say(asked.messages)) as server:
            first = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            first.say("begin")
            others = [
                Conversation.resume(agent_at(server, store, home), first.session_id, asker=EVERYBODY) for _ in range(4)
            ]
            at_once(4, lambda number: [others[number].say(f"{number} says {turn}") for turn in range(3)])
            first.say("end")
            assert_asked_soundly(server)
            asked = "\n".join(str(each["content"]) for each in server.requests[-1].messages)
        assert all(f"{number} says {turn}" in asked for number in range(4) for turn in range(3))
        assert_sound(store, first.session_id)


def _add_or_say(messages: list[dict[str, object]]) -> Say:
    if messages[-1]["role"] == "tool":
        return Say("that makes 3")
    return Say(calls=[Call("add", {"one": 1, "other": 2})])
