"""A conversation: begun, left, come back to, taken back, branched, and talked in by several at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hermes.agent.agent import Agent
from hermes.agent.conversation import Conversation, UndoResult
from hermes.agent.models.offline.model import OfflineModel
from hermes.errors import Conflict, InvalidValue, NotFound, StoreClosed, TitleTaken, UnknownSession
from hermes.state.owner import EVERYBODY, owner_of
from hermes.state.provider import SessionDBProvider
from tests.agent.talking import Ear, agent_at, agent_with, assert_asked_soundly, assert_sound, stored
from tests.support.conversations import Row, at_once, contents, session_of
from tests.support.modelserver import Call, Fail, ModelServer, Say


@pytest.fixture
def agent(store: SessionDBProvider, home: Path) -> Agent:
    """One that says what it is told to say."""
    return agent_with(OfflineModel(), store, home)


def said(agent: Agent, *texts: str) -> Conversation:
    """A conversation in which the model was told to say these."""
    conversation = Conversation.start(agent, asker=EVERYBODY)
    for text in texts:
        assert conversation.say(f"!say {text}").text == text
    return conversation


class TestStart:
    def test_leaves_nothing_behind_until_something_is_said(self, agent: Agent) -> None:
        conversation = Conversation.start(agent, title="Plan", asker=EVERYBODY)
        assert (conversation.title, conversation.history, conversation.usage()) == ("Plan", [], {})
        conversation.end("cli_close")
        assert agent.store.session_count() == 0

    def test_keeps_who_and_where(self, agent: Agent) -> None:
        conversation = Conversation.start(
            agent, "telegram", user_id="4711", cwd="/work", asker=owner_of("telegram", "4711")
        )
        conversation.say("!say hi")
        row = session_of(agent.store, conversation.session_id)
        assert [row[name] for name in ("source", "user_id", "owner", "cwd", "model")] == [
            "telegram", "4711", "telegram:4711", "/work", "offline",
        ]  # fmt: skip
        assert conversation.owner == owner_of("telegram", "4711")

    def test_gives_the_title_with_the_first_message(self, agent: Agent) -> None:
        conversation = Conversation.start(agent, title="  My   plan ", asker=EVERYBODY)
        conversation.say("!say hi")
        assert conversation.title == agent.store.get_session_title(conversation.session_id) == "My plan"

    def test_refuses_a_title_that_is_taken(self, agent: Agent) -> None:
        said(agent, "x").set_title("Plan")
        with pytest.raises(TitleTaken):
            Conversation.start(agent, title="Plan", asker=EVERYBODY)

    def test_tells_of_a_title_that_was_taken_meanwhile(self, agent: Agent) -> None:
        late, ear = Conversation.start(agent, title="Plan", asker=EVERYBODY), Ear()
        said(agent, "x").set_title("Plan")
        assert late.say("!say hi", ear).status == "done"
        assert "'Plan' is already in use" in ear.notices[0]
        assert agent.settle(20)
        assert late.title != "Plan"

    def test_title_can_be_changed_before_and_after(self, agent: Agent) -> None:
        conversation = Conversation.start(agent, title="One", asker=EVERYBODY)
        assert conversation.set_title("Two") == "Two"
        conversation.say("!say hi")
        assert conversation.set_title("Three") == conversation.title == "Three"
        assert conversation.set_title("") is conversation.title is None


class TestResume:
    def test_goes_on_where_it_was_left(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server:
            first = Conversation.start(agent_at(server, store, home), cwd="/work", asker=EVERYBODY)
            first.say("one")
            first.end("cli_close")
            again = Conversation.resume(agent_at(server, store, home), first.session_id, asker=EVERYBODY)
            assert (again.cwd, again.title, len(again.history)) == ("/work", None, 2)
            assert session_of(store, again.session_id)["ended_at"] is None
            again.say("two")
            assert [each["content"] for each in server.requests[1].messages[1:]] == ["one", "You said: one", "two"]
        assert len(stored(again)) == 4

    def test_of_nothing_is_unknown(self, agent: Agent) -> None:
        with pytest.raises(UnknownSession):
            Conversation.resume(agent, "nobody", asker=EVERYBODY)

    def test_of_somebody_elses_is_unknown(self, agent: Agent) -> None:
        mine = Conversation.start(agent, "telegram", user_id="1", asker=owner_of("telegram", "1"))
        mine.say("!say hi")
        with pytest.raises(UnknownSession):
            Conversation.resume(agent, mine.session_id, asker=owner_of("telegram", "2"))
        assert Conversation.resume(agent, mine.session_id, asker=owner_of("telegram", "1")).owner == owner_of(
            "telegram", "1"
        )

    def test_goes_on_in_the_newest_session_of_the_chain(self, agent: Agent) -> None:
        first = said(agent, *(letter * 2_000 for letter in "abcdef"))
        root = first.session_id
        assert first.compress().is_changed
        again = Conversation.resume(agent, root, asker=EVERYBODY)
        assert again.session_id == first.session_id != root
        assert session_of(agent.store, root)["end_reason"] == "compression"

    def test_tells_which_model_it_was(self, store: SessionDBProvider, home: Path, agent: Agent) -> None:
        first = said(agent, "x")
        with ModelServer() as server:
            again = Conversation.resume(agent_at(server, store, home), first.session_id, asker=EVERYBODY)
            assert (again.model_name, again.model.name) == ("offline", "test-model")
            again.say("hi")
            assert again.model_name == session_of(store, again.session_id)["model"] == "test-model"

    def test_gives_a_session_without_a_prompt_one_that_stays(self, store: SessionDBProvider, home: Path) -> None:
        store.create_session("old", "cli")
        store.append_message("old", "user", "hi")
        with ModelServer() as server:
            Conversation.resume(agent_at(server, store, home), "old", asker=EVERYBODY).say("on")
            prompt = server.requests[0].messages[0]["content"]
        assert session_of(store, "old")["system_prompt"] == prompt

    @pytest.mark.parametrize("number", range(5))
    def test_after_a_crash_at_any_point_goes_on(self, store: SessionDBProvider, home: Path, number: int) -> None:
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
    def test_takes_the_last_turn_back(self, agent: Agent) -> None:
        conversation = said(agent, "one", "two")
        assert conversation.undo() == UndoResult(1, 2, "!say two")
        assert stored(conversation) == [("user", "!say one"), ("assistant", "one", "stop")]

    def test_takes_several_back_and_stops_at_the_first(self, agent: Agent) -> None:
        conversation = said(agent, "one", "two", "three")
        assert conversation.undo(2) == UndoResult(2, 4, "!say two")
        assert conversation.undo(5) == UndoResult(1, 2, "!say one")
        assert conversation.undo() == UndoResult(0)

    def test_is_not_seen_when_coming_back(self, agent: Agent) -> None:
        conversation = said(agent, "one", "two")
        conversation.undo()
        assert contents(Conversation.resume(agent, conversation.session_id, asker=EVERYBODY).history) == [
            "!say one",
            "one",
        ]

    def test_of_a_turn_without_an_answer_works(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Fail(400)) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("hi")
        assert conversation.undo() == UndoResult(1, 1, "hi")

    def test_of_less_than_one_turn_is_refused(self, agent: Agent) -> None:
        with pytest.raises(InvalidValue):
            said(agent, "one").undo(0)


class TestRetry:
    def test_answers_anew_and_sets_the_old_answer_aside(self, store: SessionDBProvider, home: Path) -> None:
        calls = [Call("add", {"one": 1, "other": 2})]
        with ModelServer(Say(calls=calls), Say("First."), Say("Second.")) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("hi")
            assert conversation.retry().text == "Second."
            assert server.requests[2].messages == server.requests[0].messages
        assert stored(conversation) == [("user", "hi"), ("assistant", "Second.", "stop")]
        hidden = store.get_messages(conversation.session_id, include_inactive=True)
        assert contents(row for row in hidden if not row["active"]) == [None, "3", "First."]

    def test_that_fails_leaves_the_old_answer(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("First."), Say("Second."), Fail(401)) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("hi")
            conversation.retry()
            assert conversation.retry().status == "failed"
        assert stored(conversation) == [("user", "hi"), ("assistant", "Second.", "stop")]

    def test_that_breaks_off_takes_its_place(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("First."), Say("One two", cut_after=1)) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("hi")
            conversation.retry()
        assert stored(conversation) == [("user", "hi"), ("assistant", "One ", "cut")]

    def test_of_nothing_is_told(self, agent: Agent) -> None:
        outcome = Conversation.start(agent, asker=EVERYBODY).retry()
        assert outcome.status == "failed"
        assert isinstance(outcome.error, NotFound)


class TestStoreInTrouble:
    def test_is_an_outcome_and_not_a_crash(self, agent: Agent, store: SessionDBProvider) -> None:
        conversation = said(agent, "one")
        store.close()
        for outcome in (
            conversation.say("two"),
            conversation.retry(),
            Conversation.start(agent, asker=EVERYBODY).say("three"),
        ):
            assert outcome.status == "failed"
            assert isinstance(outcome.error, StoreClosed)

    def test_keeps_what_was_said_in_the_outcome(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("One two")) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            outcome = conversation.say("hi", Ear(on_text=lambda _: store.delete_session(conversation.session_id)))
        assert (outcome.status, outcome.text) == ("failed", "One two")
        assert isinstance(outcome.error, UnknownSession)
        assert store.session_count() == 0

    def test_a_session_that_was_deleted_meanwhile_is_told(self, agent: Agent, store: SessionDBProvider) -> None:
        conversation = said(agent, "one")
        store.delete_session(conversation.session_id)
        assert isinstance(conversation.say("two").error, UnknownSession)


class TestBranch:
    def test_goes_on_by_itself(self, agent: Agent) -> None:
        first = said(agent, "one")
        other = first.branch("Another way")
        other.say("!say two")
        assert (other.title, len(other.history), len(first.history)) == ("Another way", 4, 2)
        assert session_of(agent.store, other.session_id)["parent_session_id"] == first.session_id
        assert session_of(agent.store, first.session_id)["end_reason"] == "branched"

    def test_is_asked_with_the_same_bytes(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server:
            first = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            first.say("one")
            first.branch().say("two")
            one, two = (request.messages for request in server.requests)
        assert two[: len(one)] == one

    def test_of_nothing_is_told(self, agent: Agent) -> None:
        with pytest.raises(NotFound):
            Conversation.start(agent, asker=EVERYBODY).branch()


class TestAgain:
    """The same message, sent once more by a platform or after a crash."""

    def test_is_stored_and_answered_once(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("Once.")) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("hi", uid="telegram:1")
            again = Conversation.resume(agent_at(server, store, home), conversation.session_id, asker=EVERYBODY)
            assert (again.say("hi", uid="telegram:1").text, len(server.requests)) == ("Once.", 1)
        assert stored(conversation) == [("user", "hi"), ("assistant", "Once.", "stop")]

    def test_is_answered_if_it_was_not(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Fail(400), Say("Now.")) as server:
            conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
            conversation.say("hi", uid="telegram:1")
            assert conversation.say("hi", uid="telegram:1").text == "Now."
        assert stored(conversation) == [("user", "hi"), ("assistant", "Now.", "stop")]

    def test_is_not_answered_if_it_was_undone(self, store: SessionDBProvider, home: Path) -> None:
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

    def test_two_programs_in_one_session_leave_a_sound_one(self, store: SessionDBProvider, home: Path) -> None:
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
