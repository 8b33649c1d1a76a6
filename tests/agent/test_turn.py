"""A turn: question, tools and answer, everything stored as it happens."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.conversation import Conversation
from hermes.agent.history.tool_results import NOT_RUN
from hermes.agent.models.model import Cancellation
from hermes.agent.turns.turn import LAST_STEP
from hermes.errors import AnswerCut, ModelKeyRefused, ModelRefused
from hermes.state.owner import EVERYBODY, TERMINAL
from hermes.state.owner_view import OwnerView
from hermes.state.provider import SessionDBProvider
from tests.agent.talking import CONFIG, RecordingListener, agent_at, assert_asked_soundly, stop_when, stored
from tests.support.modelserver import Call, Fail, ModelServer, Received, Say

SUM = Call("add", {"one": 1, "other": 2})
ADDED = [("user", "add"), ("assistant", "I add.", "tool_calls"), ("tool", "3")]


def talk(server: ModelServer, store: SessionDBProvider, home: Path, max_steps: int = 50) -> Conversation:
    config = replace(CONFIG, agent=replace(CONFIG.agent, max_steps=max_steps))
    return Conversation.start(agent_at(server, store, home, config), asker=EVERYBODY)


class TestAnswer:
    def test_answer_is_heard_in_pieces_and_stored_whole(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("Hello to you.", reasoning="hm")) as server:
            conversation, ear = talk(server, store, home), RecordingListener()
            outcome = conversation.say("hi", ear)
        assert (outcome.status, outcome.text, outcome.error) == ("done", "Hello to you.", None)
        assert (ear.pieces, ear.thoughts) == (["Hello ", "to ", "you."], ["hm"])
        assert stored(conversation) == [("user", "hi"), ("assistant", "Hello to you.", "stop")]
        assert store.get_messages(outcome.session_id)[1]["reasoning"] == "hm"

    def test_answer_that_is_not_streamed_reaches_the_listener(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("Hello to you.", stream=False)) as server:
            ear = RecordingListener()
            talk(server, store, home).say("hi", ear)
        assert "".join(ear.pieces) == "Hello to you."

    def test_question_is_stored_before_the_model_is_asked(self, store: SessionDBProvider, home: Path) -> None:
        seen: list[int] = []

        def look(_: Received) -> Say:
            seen.append(store.message_count())
            return Say("ok")

        with ModelServer(look) as server:
            talk(server, store, home).say("hi")
        assert seen == [1]

    def test_model_gets_the_whole_conversation(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server:
            conversation = talk(server, store, home)
            conversation.say("one")
            conversation.say("two")
            asked = server.requests[1].messages
        assert [each["content"] for each in asked[1:]] == ["one", "You said: one", "two"]

    def test_empty_question_is_refused(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server, pytest.raises(ValueError, match="message is empty"):
            talk(server, store, home).say(" \n")
        assert store.session_count() == 0

    def test_empty_answer_is_reported(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("")) as server:
            conversation, ear = talk(server, store, home), RecordingListener()
            assert conversation.say("hi", ear).status == "done"
        assert ear.notices == ["the model returned an empty answer"]
        assert stored(conversation) == [("user", "hi"), ("assistant", None, "stop")]

    def test_too_long_answer_is_reported(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("And so", finish_reason="length")) as server:
            ear = RecordingListener()
            talk(server, store, home).say("hi", ear)
        assert "reached its output limit" in ear.notices[0]


class TestTools:
    def test_tools_run_until_the_model_is_done(self, store: SessionDBProvider, home: Path) -> None:
        more = Call("add", {"one": 3, "other": 4}, id="call_2")
        with ModelServer(Say("First.", calls=[SUM, more]), Say(calls=[SUM]), Say("3 and 7.")) as server:
            conversation, ear = talk(server, store, home), RecordingListener()
            outcome = conversation.say("add", ear)
            assert_asked_soundly(server)
        assert (outcome.text, outcome.tool_calls) == ("3 and 7.", 3)
        assert ear.finished == [("add", "3"), ("add", "7"), ("add", "3")]
        assert stored(conversation) == [
            ("user", "add"),
            ("assistant", "First.", "tool_calls"),
            ("tool", "3"),
            ("tool", "7"),
            ("assistant", None, "tool_calls"),
            ("tool", "3"),
            ("assistant", "3 and 7.", "stop"),
        ]

    def test_tool_results_are_sent_to_the_model(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say(calls=[SUM]), Say("3")) as server:
            talk(server, store, home).say("add")
            assert server.requests[1].messages[-1] == {"role": "tool", "tool_call_id": "call_1", "content": "3"}

    @pytest.mark.parametrize(
        ("call", "sent"),
        [
            (Call("fail"), "it went wrong"),
            (Call("nothing"), "there is no tool"),
            (Call("add", '{"one": '), "JSON"),
            (Call("a.b c", {}), "there is no tool"),
        ],
    )
    def test_failed_tools_are_reported_to_the_model(
        self, store: SessionDBProvider, home: Path, call: Call, sent: str
    ) -> None:
        with ModelServer(Say(calls=[call]), Say("sorry")) as server:
            assert talk(server, store, home).say("go").text == "sorry"
            assert sent in server.requests[1].last_text
            assert_asked_soundly(server)

    def test_result_is_stored_before_the_next_request(self, store: SessionDBProvider, home: Path) -> None:
        seen: list[int] = []

        def look(_: Received) -> Say:
            seen.append(store.message_count())
            return Say("3")

        with ModelServer(Say(calls=[SUM]), look) as server:
            talk(server, store, home).say("add")
        assert seen == [3]

    def test_number_of_tool_rounds_is_limited(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say(calls=[SUM]), Say(calls=[SUM]), Say("That far.", calls=[SUM])) as server:
            conversation, ear = talk(server, store, home, max_steps=2), RecordingListener()
            outcome = conversation.say("add", ear)
            last = server.requests[2]
            assert_asked_soundly(server)
        assert (outcome.status, outcome.text, outcome.tool_calls) == ("done", "That far.", 2)
        assert last.tool_names == []
        assert LAST_STEP in last.last_text
        assert "2 steps" in ear.notices[0]
        assert stored(conversation)[-1] == ("assistant", "That far.", "tool_calls")


class TestPrompt:
    def test_prompt_is_the_same_in_every_byte(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say(calls=[SUM]), Say("3"), Say("ok"), Say("ok")) as server:
            agent = agent_at(server, store, home)
            conversation = Conversation.start(agent, cwd="/", asker=EVERYBODY)
            conversation.say("add")
            agent.memory.add(TERMINAL, "likes tea")
            conversation.say("again")
            Conversation.resume(agent_at(server, store, home), conversation.session_id, asker=EVERYBODY).say(
                "and again"
            )
            prompts = {json.dumps(request.messages[0]) for request in server.requests}
        (row,) = store.list_sessions_rich()
        assert prompts == {json.dumps({"role": "system", "content": row["system_prompt"]})}

    def test_prompt_and_history_can_be_cached(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("One \n", calls=[SUM]), Say("3\n"), Fail(400), Say("ok"), Say("end")) as server:
            conversation = talk(server, store, home)
            for text in ("add ", "fails", "fails", "goes on"):
                conversation.say(text)
            asked = [request.messages for request in server.requests]
        for earlier, later in pairwise(asked):
            assert later[: len(earlier)] == earlier


class TestFailure:
    def test_failure_before_any_word_keeps_only_the_question(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Fail(401)) as server:
            conversation = talk(server, store, home)
            outcome = conversation.say("hi")
        assert outcome.status == "failed"
        assert isinstance(outcome.error, ModelKeyRefused)
        assert stored(conversation) == [("user", "hi")]

    @pytest.mark.parametrize("again", ["say", "retry"])
    def test_failed_turn_can_be_retried_without_repeating_the_question(
        self, store: SessionDBProvider, home: Path, again: str
    ) -> None:
        with ModelServer(Fail(400), Say("Now.")) as server:
            conversation = talk(server, store, home)
            assert isinstance(conversation.say("hi").error, ModelRefused)
            outcome = conversation.say("hi") if again == "say" else conversation.retry()
            asked = server.requests[1].messages
        assert outcome.text == "Now."
        assert asked[1:] == [{"role": "user", "content": "hi"}]

    def test_temporary_failure_is_retried(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Fail(429), Fail(503), Say("Now.")) as server:
            ear = RecordingListener()
            assert talk(server, store, home).say("hi", ear).text == "Now."
        assert len(ear.waits) == 2

    def test_failure_after_the_first_words_keeps_them(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("One two three", cut_after=2), Say("four")) as server:
            conversation = talk(server, store, home)
            outcome = conversation.say("count")
            assert (outcome.status, outcome.text) == ("failed", "One two ")
            assert isinstance(outcome.error, AnswerCut)
            assert stored(conversation) == [("user", "count"), ("assistant", "One two ", "cut")]
            conversation.say("go on")
            assert_asked_soundly(server)
            assert [each["content"] for each in server.requests[1].messages[1:]] == ["count", "One two", "go on"]

    def test_failure_between_tools_keeps_their_results(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say(calls=[SUM]), Fail(400), Say("3")) as server:
            conversation = talk(server, store, home)
            outcome = conversation.say("add")
            assert (outcome.status, outcome.tool_calls) == ("failed", 1)
            assert stored(conversation)[-1] == ("tool", "3")
            assert conversation.retry().text == "3"
            assert_asked_soundly(server)


class TestInterruption:
    def test_interruption_keeps_the_text_so_far(self, store: SessionDBProvider, home: Path) -> None:
        has_text = threading.Event()
        with ModelServer(Say("One two three", between_s=20), Say("ok")) as server:
            conversation = talk(server, store, home)
            outcome = conversation.say(
                "count", RecordingListener(on_text=lambda _: has_text.set()), stop_when(has_text)
            )
            assert (outcome.status, outcome.text, outcome.error) == ("interrupted", "One ", None)
            assert stored(conversation) == [("user", "count"), ("assistant", "One ", "interrupted")]
            conversation.say("go on")
            assert_asked_soundly(server)

    def test_interruption_before_any_word_is_stored(self, store: SessionDBProvider, home: Path) -> None:
        asked = threading.Event()

        def hang(_: Received) -> Say:
            asked.set()
            return Say("late", before_s=20)

        with ModelServer(hang) as server:
            conversation = talk(server, store, home)
            assert conversation.say("hi", cancellation=stop_when(asked)).status == "interrupted"
        assert stored(conversation) == [("user", "hi"), ("assistant", None, "interrupted")]

    def test_interruption_before_the_request_keeps_the_question(self, store: SessionDBProvider, home: Path) -> None:
        cancellation = Cancellation()
        cancellation.cancel()
        with ModelServer() as server:
            conversation = talk(server, store, home)
            assert conversation.say("hi", cancellation=cancellation).status == "interrupted"
            assert server.requests == []
        assert stored(conversation)[0] == ("user", "hi")

    def test_ctrl_c_keeps_the_text_so_far(self, store: SessionDBProvider, home: Path) -> None:
        def press(_: str) -> None:
            raise KeyboardInterrupt

        with ModelServer(Say("One two")) as server:
            conversation = talk(server, store, home)
            outcome = conversation.say("count", RecordingListener(on_text=press))
            assert (outcome.status, outcome.text) == ("interrupted", "One ")
        assert stored(conversation)[1:] == [("assistant", "One ", "interrupted")]

    @pytest.mark.parametrize(
        ("number", "tale"),
        [
            (1, [("user", "add")]),
            (2, [("user", "add"), ("assistant", "I add.", "tool_calls")]),
            (3, [*ADDED, ("assistant", None, "interrupted")]),
            (4, [*ADDED, ("assistant", "That is 3.", "stop")]),
        ],
    )
    def test_ctrl_c_during_a_write_stores_it_once(
        self,
        store: SessionDBProvider,
        home: Path,
        monkeypatch: pytest.MonkeyPatch,
        number: int,
        tale: list[tuple[str, ...]],
    ) -> None:
        append, calls = OwnerView.append_messages, iter(range(1, 100))

        def press_at_the_nth(view: OwnerView, session_id: str, messages: Iterable[Mapping[str, Any]]) -> list[int]:
            if next(calls) == number:
                raise KeyboardInterrupt
            return append(view, session_id, messages)

        with ModelServer(Say("hi"), Say("I add.", calls=[SUM]), Say("That is 3.")) as server:
            conversation = talk(server, store, home)
            conversation.say("hello")
            monkeypatch.setattr(OwnerView, "append_messages", press_at_the_nth)
            assert conversation.say("add").status == "interrupted"
        assert stored(conversation)[2:] == tale

    def test_interrupted_tool_keeps_its_result_and_no_other_runs(self, store: SessionDBProvider, home: Path) -> None:
        calls = [Call("wait", id="a"), Call("add", {"one": 1, "other": 2}, id="b")]
        with ModelServer(Say(calls=calls), Say("ok")) as server:
            conversation, ear = talk(server, store, home), RecordingListener()
            assert conversation.say("go", ear).status == "interrupted"
            assert ear.finished == [("wait", "stopped in the middle")]
            conversation.say("why?")
            sent = server.requests[1].messages[3:]
            assert_asked_soundly(server)
        assert [each["content"] for each in sent] == ["stopped in the middle", NOT_RUN, "why?"]

    def test_ctrl_c_in_a_tool_is_reported_to_the_model(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say(calls=[Call("interrupt", id="a"), Call("add", id="b")]), Say("ok")) as server:
            conversation = talk(server, store, home)
            assert conversation.say("go").status == "interrupted"
            conversation.say("why?")
            sent = [each["content"] for each in server.requests[1].messages[3:]]
        assert "interrupted while it ran" in sent[0]
        assert sent[1:] == [NOT_RUN, "why?"]

    def test_failing_listener_keeps_the_text_and_is_raised(self, store: SessionDBProvider, home: Path) -> None:
        def fail(_: str) -> None:
            raise BrokenPipeError("the terminal is gone")

        with ModelServer(Say("One two")) as server:
            conversation = talk(server, store, home)
            with pytest.raises(BrokenPipeError):
                conversation.say("count", RecordingListener(on_text=fail))
        assert stored(conversation)[1:] == [("assistant", "One ", "interrupted")]
