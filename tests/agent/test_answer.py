"""Several messages of the user are answered in one turn, each is stored once, and a cut turn is continued."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.conversation import Conversation
from hermes.agent.history.notes import format_note, without_notes
from hermes.agent.history.tool_results import LOST
from hermes.agent.models.offline.model import OfflineModel
from hermes.agent.turns.answering import CONTINUED, OVERTAKEN
from hermes.agent.turns.incoming import Incoming
from hermes.agent.turns.turn_record import TurnRecord
from hermes.errors import InvalidValue, ModelRefused
from hermes.state.owner import EVERYBODY, owner_of
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.agent.talking import agent_at, agent_with, assert_asked_soundly, stored
from tests.support.modelserver import Call, Fail, ModelServer, Say

SUM = Call("add", {"one": 1, "other": 2})
ONE, TWO = Incoming("one", "inbox-1"), Incoming("two", "inbox-2")


def talk(server: ModelServer, store: SessionDBProvider, home: Path) -> Conversation:
    return Conversation.start(agent_at(server, store, home), asker=EVERYBODY)


def asked(server: ModelServer, number: int = -1) -> list[Any]:
    """What the model was asked, without the system prompt."""
    return [each["content"] for each in server.requests[number].messages[1:]]


def add_rows(store: SessionDBProvider, conversation: Conversation, rows: Sequence[dict[str, Any]]) -> None:
    store.append_messages(conversation.session_id, rows)


class TestMessages:
    def test_messages_are_rows_of_their_own_and_one_question(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("Both.")) as server:
            conversation = talk(server, store, home)
            outcome = conversation.answer([ONE, TWO])
            assert asked(server) == ["one\n\ntwo"]
            assert_asked_soundly(server)
        assert (outcome.status, outcome.text, outcome.is_known) == ("done", "Both.", False)
        assert stored(conversation) == [("user", "one"), ("user", "two"), ("assistant", "Both.", "stop")]
        assert [row["uid"] for row in store.get_messages(conversation.session_id)][:2] == ["inbox-1", "inbox-2"]

    def test_session_that_exists_without_messages_is_used(self, store: SessionDBProvider, home: Path) -> None:
        store.create_session("lane", "telegram", user_id="1")
        with ModelServer(Say("Hello.")) as server:
            agent = agent_at(server, store, home)
            conversation = Conversation.resume(agent, "lane", asker=owner_of("telegram", "1"))
            assert conversation.answer([ONE], context="## Current Session Context\n\nA chat.").text == "Hello."
            prompt = server.requests[0].messages[0]["content"]
        row = store.get_session("lane")
        assert row is not None
        assert "\n\n## Current Session Context\n\nA chat." in prompt
        assert (row["system_prompt"], row["model"], row["message_count"]) == (prompt, "test-model", 2)

    def test_context_of_a_started_session_never_changes(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server:
            conversation = talk(server, store, home)
            conversation.answer([ONE], context="## First")
            conversation.answer([TWO], context="## Second")
            resumed = Conversation.resume(conversation.agent, conversation.session_id, asker=EVERYBODY, context="## X")
            resumed.answer([Incoming("three", "inbox-3")])
            prompts = {request.messages[0]["content"] for request in server.requests}
        assert len(prompts) == 1
        assert "## First" in prompts.pop()

    def test_chat_that_is_compressed_without_its_context_gets_it_with_the_next_turn(
        self, store: SessionDBProvider, home: Path
    ) -> None:
        agent, me = agent_with(OfflineModel(), store, home), owner_of("telegram", "1")
        conversation = Conversation.start(agent, "telegram", asker=me, user_id="1", context="## Chat")
        for number in range(5):
            conversation.answer([Incoming(f"!say {number}" + " word" * 99, f"u{number}")])
        resumed = Conversation.resume(agent, conversation.session_id, asker=me)
        assert resumed.compress().is_changed
        row = store.get_session(resumed.session_id)
        assert row is not None
        assert not row["system_prompt"]
        resumed.answer([ONE], context="## Chat")
        row = store.get_session(resumed.session_id)
        assert row is not None
        assert "## Chat" in str(row["system_prompt"])

    def test_compressed_conversation_keeps_the_context(self, store: SessionDBProvider, home: Path) -> None:
        conversation = Conversation.start(agent_with(OfflineModel(), store, home), asker=EVERYBODY)
        for number in range(5):
            conversation.answer([Incoming(f"!say {number}" + " word" * 99, f"u{number}")], context="## Chat")
        assert conversation.compress().is_changed
        assert "## Chat" in conversation.session.prompt

    def test_turn_without_a_message_or_a_note_is_refused(self, store: SessionDBProvider, home: Path) -> None:
        conversation = Conversation.start(agent_with(OfflineModel(), store, home), asker=EVERYBODY)
        with pytest.raises(InvalidValue, match="a message or a note"):
            conversation.answer([], notes=[" "])
        assert store.session_count() == 0

    @pytest.mark.parametrize("text", ["", " \n"])
    def test_message_without_text_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidValue, match="message is empty"):
            Incoming(text, "u")

    def test_rows_that_another_program_added_are_read_at_the_next_turn(
        self, store: SessionDBProvider, home: Path
    ) -> None:
        with ModelServer() as server:
            conversation = talk(server, store, home)
            conversation.answer([ONE])
            add_rows(store, conversation, [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}])
            conversation.answer([TWO])
            assert asked(server) == ["one", "You said: one", "x", "y", "two"]

    def test_first_exchange_of_many_messages_gets_a_title(self, store: SessionDBProvider, home: Path) -> None:
        conversation = Conversation.start(agent_with(OfflineModel(), store, home), asker=EVERYBODY)
        texts = ["nginx uploads", "are too small", "since yesterday"]
        conversation.answer([Incoming(text, f"u{number}") for number, text in enumerate(texts)])
        assert conversation.agent.settle(20)
        assert conversation.title is not None


class TestKnown:
    def test_answer_that_is_stored_is_the_outcome(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("Both.")) as server:
            conversation = talk(server, store, home)
            conversation.answer([ONE, TWO])
            before = stored(conversation)
            again = Conversation.resume(conversation.agent, conversation.session_id, asker=EVERYBODY)
            outcome = again.answer([ONE, TWO])
            assert len(server.requests) == 1
        assert (outcome.status, outcome.text, outcome.is_known) == ("done", "Both.", True)
        assert stored(conversation) == before

    def test_new_message_next_to_a_stored_one_is_answered(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Fail(400), Say("Both.")) as server:
            conversation = talk(server, store, home)
            failed = conversation.answer([ONE])
            outcome = conversation.answer([ONE, TWO])
            assert asked(server) == ["one\n\ntwo"]
        assert isinstance(failed.error, ModelRefused)
        assert (outcome.text, outcome.is_known) == ("Both.", False)
        assert stored(conversation) == [("user", "one"), ("user", "two"), ("assistant", "Both.", "stop")]

    def test_undone_messages_are_not_answered_again(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server:
            conversation = talk(server, store, home)
            conversation.answer([ONE])
            conversation.undo()
            outcome = conversation.answer([ONE])
            assert len(server.requests) == 1
        assert (outcome.text, outcome.is_known) == ("", True)
        assert stored(conversation) == []

    def test_answer_that_another_program_stores_meanwhile_is_not_the_outcome(
        self, store: SessionDBProvider, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add = TurnRecord.add

        def add_and_be_overtaken(record: TurnRecord, role: str, content: Any, **fields: Any) -> int | None:
            message_id = add(record, role, content, **fields)
            if role == "user":
                add_rows(store, conversation, [{"role": "assistant", "content": "another", "finish_reason": "stop"}])
            return message_id

        with ModelServer(Say("first"), Say("second")) as server:
            conversation = talk(server, store, home)
            conversation.answer([ONE])
            monkeypatch.setattr(TurnRecord, "add", add_and_be_overtaken)
            outcome = conversation.answer([TWO])
        assert (outcome.text, outcome.is_known) == ("second", False)
        assert "another" in [row[1] for row in stored(conversation)]


class TestContinued:
    """A turn that a killed process left unfinished."""

    def continued(self, store: SessionDBProvider, home: Path, *rows: dict[str, Any]) -> list[dict[str, Any]]:
        """Continue the turn after these rows, and return what the model was asked."""
        with ModelServer(Say("Whole.")) as server:
            conversation = talk(server, store, home)
            store.create_session(conversation.session_id, "cli")
            conversation.session.is_stored = True
            add_rows(store, conversation, [{"role": "user", "content": ONE.text, "uid": ONE.uid}, *rows])
            before = stored(conversation)
            outcome = conversation.answer([ONE])
            assert (outcome.text, outcome.is_known) == ("Whole.", False)
            assert stored(conversation) == [*before, ("assistant", "Whole.", "stop")]
            assert conversation.answer([ONE]).is_known
            assert len(server.requests) == 1
            assert_asked_soundly(server)
            return server.requests[0].messages[1:]

    @pytest.mark.parametrize("end", ["partial", "interrupted", "cut"])
    def test_partial_answer_stays_and_the_model_is_asked_for_the_whole(
        self, end: str, store: SessionDBProvider, home: Path
    ) -> None:
        messages = self.continued(store, home, {"role": "assistant", "content": "Wh", "finish_reason": end})
        assert [each["content"] for each in messages] == ["one", "Wh", format_note(CONTINUED)]

    def test_tool_call_without_a_result_is_reported_and_not_repeated(
        self, store: SessionDBProvider, home: Path
    ) -> None:
        function = {"name": "add", "arguments": SUM.written}
        call = {"id": "c1", "type": "function", "function": function}
        messages = self.continued(store, home, {"role": "assistant", "tool_calls": [call]})
        assert [each["role"] for each in messages] == ["user", "assistant", "tool", "user"]
        assert (messages[2]["content"], messages[3]["content"]) == (LOST, format_note(CONTINUED))

    def test_result_of_a_tool_is_used(self, store: SessionDBProvider, home: Path) -> None:
        call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": SUM.written}}
        messages = self.continued(
            store,
            home,
            {"role": "assistant", "tool_calls": [call], "finish_reason": "tool_calls"},
            {"role": "tool", "content": "3", "tool_call_id": "c1", "tool_name": "add"},
        )
        assert [each["content"] for each in messages[2:]] == ["3", format_note(CONTINUED)]

    def test_message_that_has_only_been_stored_needs_no_note(self, store: SessionDBProvider, home: Path) -> None:
        assert [each["content"] for each in self.continued(store, home)] == ["one"]

    def test_answer_to_a_later_message_is_not_the_answer_to_a_broken_off_turn(
        self, store: SessionDBProvider, home: Path
    ) -> None:
        with ModelServer(Say("To one.")) as server:
            conversation = talk(server, store, home)
            store.create_session(conversation.session_id, "cli")
            conversation.session.is_stored = True
            add_rows(
                store,
                conversation,
                [
                    {"role": "user", "content": ONE.text, "uid": ONE.uid},
                    {"role": "assistant", "content": "T", "finish_reason": "interrupted"},
                    {"role": "user", "content": TWO.text, "uid": TWO.uid},
                    {"role": "assistant", "content": "To two.", "finish_reason": "stop"},
                ],
            )
            outcome = conversation.answer([ONE])
            assert (outcome.text, outcome.is_known) == ("To one.", False)
            assert asked(server)[-1] == format_note(OVERTAKEN.format(text="one"))
            assert conversation.answer([TWO]).text == "To two."

    def test_message_that_came_during_the_stop_is_answered_too(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("Both.")) as server:
            conversation = talk(server, store, home)
            store.create_session(conversation.session_id, "cli")
            conversation.session.is_stored = True
            add_rows(
                store,
                conversation,
                [
                    {"role": "user", "content": "one", "uid": "inbox-1"},
                    {"role": "assistant", "finish_reason": "interrupted"},
                ],
            )
            conversation.answer([ONE, TWO])
            assert CONTINUED in asked(server)[-1]
            assert asked(server)[-1].startswith("two")


class TestNotes:
    def test_note_is_part_of_the_last_question_and_not_stored(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say(calls=[SUM]), Say("3"), Say("ok")) as server:
            conversation = talk(server, store, home)
            conversation.answer([ONE], notes=["The session is new [really]", " "])
            conversation.answer([TWO])
            question = "one\n\n[System note: The session is new (really)]"
            assert [asked(server, number)[0] for number in range(3)] == [question, question, "one"]
            assert_asked_soundly(server)
        assert "System note" not in str(stored(conversation))
        assert store.search_messages("really") == []

    def test_conversation_continues_because_of_a_note(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("Hello."), Say("I continue.")) as server:
            conversation = talk(server, store, home)
            conversation.answer([ONE])
            assert conversation.answer([], notes=["The program was restarted."]).text == "I continue."
            assert asked(server) == ["one", "Hello.", "[System note: The program was restarted.]"]
        assert [row[:2] for row in stored(conversation)] == [
            ("user", "one"), ("assistant", "Hello."), ("assistant", "I continue."),
        ]  # fmt: skip

    def test_note_keeps_its_place_when_the_turn_compresses(self, store: SessionDBProvider, home: Path) -> None:
        words = "word " * 400
        long = {"error": {"message": "maximum context length exceeded", "code": "context_length_exceeded"}}
        with ModelServer() as server:
            conversation = talk(server, store, home)
            for number in range(5):
                conversation.answer([Incoming(f"{number} {words}", f"u{number}")])
            server.then(Say(calls=[SUM]), Fail(400, long), Say("a summary"), Say("3"))
            outcome = conversation.answer([ONE], notes=["Be short."])
            last = server.requests[-1].messages
        assert (outcome.status, outcome.text) == ("done", "3")
        assert [each["role"] for each in last[-3:]] == ["user", "assistant", "tool"]
        assert str(last[-3]["content"]).endswith("one\n\n[System note: Be short.]")

    def test_offline_model_ignores_notes(self, store: SessionDBProvider, home: Path) -> None:
        conversation = Conversation.start(agent_with(OfflineModel(), store, home), asker=EVERYBODY)
        outcome = conversation.answer([Incoming("!say hi", "u")], notes=["One.", "Two."])
        assert outcome.text == "hi"

    @pytest.mark.parametrize("text", ["", "a", "a [x]", "[System note: a", "a]"])
    def test_only_notes_are_removed(self, text: str) -> None:
        assert without_notes(f"{text}\n\n{format_note('b')}\n\n{format_note('c]')}") == text


def test_weight_counts_the_prompt(store: SessionDB, home: Path) -> None:
    conversation = Conversation.start(agent_with(OfflineModel(), store, home), asker=EVERYBODY)
    before = conversation.weight()
    conversation.answer([Incoming("!say hi", "u")], context="x" * 100_000)
    assert 0 < before < 10_000
    assert conversation.weight() > before + 100_000
