"""The offline model: its own answers, answers from past sessions, and scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.models.model import Cancellation, Message, Reply, TextDelta
from hermes.agent.models.offline.model import ABILITIES, INTRODUCTION, NO_SEARCH, OfflineModel
from hermes.agent.models.offline.script import FAILURES
from hermes.errors import AnswerCut, ContextTooLong, ModelUnavailable
from hermes.state.recall.tool import session_search
from hermes_state import SessionDB
from tests.agent.asking import SEARCH_TOOL, ModelEvents, ask, user_message
from tests.fault.processes import Task
from tests.support.waiting import LIMIT_S, wait_until

MODEL = OfflineModel()


class Conversation:
    """A user and the offline model, with a loop that runs its searches."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self.messages: list[Message] = [{"role": "system", "content": "You are Hermes."}]
        self.searches: list[dict[str, Any]] = []

    def say(self, text: str) -> str:
        """Send a message and return the final answer."""
        self.messages.append({"role": "user", "content": text})
        for _ in range(5):
            reply = ask(MODEL, self.messages, [SEARCH_TOOL]).reply
            self._note(reply)
            if not reply.tool_calls:
                return reply.text
            for call in reply.tool_calls:
                self.searches.append(json.loads(call.arguments))
                found = session_search(**self.searches[-1], db=self._db)
                self.messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
        raise AssertionError("the model does not come to an end")

    def _note(self, reply: Reply) -> None:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.tool_calls
        ]
        self.messages.append({"role": "assistant", "content": reply.text or None, "tool_calls": calls or None})


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Conversation]:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("20261115_192300_a1b2c3d4", "cli")
        db.append_message("20261115_192300_a1b2c3d4", "user", "The upload of large files fails with 413.")
        db.append_message("20261115_192300_a1b2c3d4", "assistant", "nginx refuses bodies above 1 MB.")
        db.set_session_title("20261115_192300_a1b2c3d4", "nginx in front of the app")
        db.create_session("20261112_101500_f9a8b7c6", "telegram")
        db.append_message("20261112_101500_f9a8b7c6", "user", "来月の京都旅行の計画")
        yield Conversation(db)


class TestTalk:
    def test_first_answer_introduces_the_offline_model(self, talk: Conversation) -> None:
        assert talk.say("Hello!") == f"{INTRODUCTION}\n\n{ABILITIES}"
        assert "OPENAI_API_KEY" in INTRODUCTION

    def test_introduction_is_given_once(self, talk: Conversation) -> None:
        talk.say("Hello!")
        assert talk.say("thank you") == ABILITIES

    @pytest.mark.parametrize("text", ["hi", "Hey there!", "ok", "", "?!", "What can you do?", "help"])
    def test_small_talk_is_not_searched(self, talk: Conversation, text: str) -> None:
        assert ABILITIES in talk.say(text)
        assert talk.searches == []

    def test_answer_without_the_search_tool_says_so(self) -> None:
        assert ask(MODEL, "what about nginx?").reply.text == f"{INTRODUCTION}\n\n{NO_SEARCH}"

    def test_same_input_gives_the_same_answer(self) -> None:
        assert ask(MODEL, "hi").events == ask(MODEL, "hi").events

    def test_pieces_add_up_to_the_whole_answer(self) -> None:
        received = ask(MODEL, "hi")
        assert len(received.pieces) > 10
        assert "".join(received.pieces) == received.reply.text

    def test_empty_conversation_is_answered(self) -> None:
        assert INTRODUCTION in ask(MODEL, []).reply.text

    def test_tokens_are_estimated(self) -> None:
        usage = ask(MODEL, "!think 1234\n!say 12345678").reply.usage
        assert usage is not None
        assert (usage.output_tokens, usage.reasoning_tokens) == (3, 1)
        assert usage.input_tokens > 0


class TestRecall:
    def test_question_is_searched_by_its_words(self, talk: Conversation) -> None:
        answer = talk.say("What did we say about nginx refusing bodies, remember?")
        assert talk.searches[0] == {"query": "nginx refusing bodies"}
        assert "nginx in front of the app" in answer
        assert "nginx refuses bodies above 1 MB." in answer
        assert "/resume 20261115_192300_a1b2c3d4" in answer
        assert "cli)" in answer

    def test_search_for_all_words_falls_back_to_any(self, talk: Conversation) -> None:
        answer = talk.say("uploads in kubernetes?")
        assert talk.searches == [{"query": "uploads kubernetes"}]
        assert "No past session has all of uploads kubernetes; these come close:" in answer
        assert "/resume 20261115_192300_a1b2c3d4" in answer

    def test_search_without_results_is_reported(self, talk: Conversation) -> None:
        assert "I found nothing about zeppelin in past sessions." in talk.say("the zeppelin")
        assert len(talk.searches) == 2

    def test_messages_of_this_session_are_quoted(self, talk: Conversation) -> None:
        talk.say("The zeppelin leaves at noon")
        talk.say("Something else altogether")
        assert talk.say("When does the zeppelin leave?").endswith("here you wrote:\n\n- The zeppelin leaves at noon")

    def test_text_without_spaces_is_found(self, talk: Conversation) -> None:
        assert "/resume 20261112_101500_f9a8b7c6" in talk.say("京都旅行")

    @pytest.mark.parametrize("text", ["What did we talk about recently?", "list my last sessions", "yesterday?"])
    def test_question_about_the_past_lists_recent_sessions(self, talk: Conversation, text: str) -> None:
        answer = talk.say(text)
        assert talk.searches == [{}]
        assert "These sessions were active last:" in answer
        assert answer.count("/resume ") == 2

    def test_empty_store_has_no_past_sessions(self, tmp_path: Path) -> None:
        with SessionDB(tmp_path / "empty.db") as db:
            assert Conversation(db).say("recent sessions").endswith("There are no past sessions.")

    def test_failed_search_is_reported(self) -> None:
        messages = _searched("nginx", '{"success": false, "error": "the store is damaged"}')
        answer = ask(MODEL, messages, [SEARCH_TOOL]).reply.text
        assert answer.endswith("I could not search past sessions: the store is damaged")

    @pytest.mark.parametrize("content", ["not json", "[]", "{}", '{"success": true, "results": [1]}', ""])
    def test_malformed_search_result_is_reported(self, content: str) -> None:
        assert ask(MODEL, _searched("nginx", content), [SEARCH_TOOL]).has_reply

    def test_tool_result_of_an_earlier_turn_is_ignored(self, talk: Conversation) -> None:
        talk.say("nginx")
        assert talk.say("thanks") == ABILITIES


class TestDirectives:
    def test_say_directive_sets_the_answer(self) -> None:
        reply = ask(MODEL, "!say Hello,  world.\n  second line").reply
        assert (reply.text, reply.finish_reason) == ("Hello,  world.\n  second line", "stop")

    def test_think_directive_sets_the_reasoning(self) -> None:
        received = ask(MODEL, "!think why\n!say because")
        assert (received.thoughts, received.reply.reasoning, received.reply.text) == (["why"], "why", "because")

    def test_tool_directive_calls_a_tool(self) -> None:
        reply = ask(MODEL, '!say Wait.\n!tool read_file {"path": "a b"}\n!tool other\n!tool bad {not json').reply
        assert [(call.name, call.arguments) for call in reply.tool_calls] == [
            ("read_file", '{"path": "a b"}'),
            ("other", "{}"),
            ("bad", "{not json"),
        ]
        assert len({call.id for call in reply.tool_calls}) == 3
        assert (reply.text, reply.finish_reason) == ("Wait.", "tool_calls")

    def test_results_of_scripted_tools_are_reported(self) -> None:
        messages = user_message("!tool a\n!tool b")
        calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in "ab"]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": name, "content": name * 3} for name in "ba"]
        assert ask(MODEL, messages).reply.text == "b returned: bbb\na returned: aaa"

    def test_long_directive_writes_many_words(self) -> None:
        assert ask(MODEL, "!long 3").reply.text == "word1 word2 word3"
        assert len(ask(MODEL, "!long 999999").pieces) == 100_000
        assert len(ask(MODEL, "!long forever").pieces) == 100

    @pytest.mark.parametrize("code", FAILURES)
    def test_fail_directive_raises_the_error(self, code: str) -> None:
        received = ask(MODEL, f"!fail {code}")
        assert type(received.error) is FAILURES[code]
        assert not received.events

    def test_fail_directive_works_with_and_without_text(self) -> None:
        assert isinstance(ask(MODEL, "!fail").error, ModelUnavailable)
        received = ask(MODEL, "!say Once upon\n!fail answer_cut")
        assert received.pieces == ["Once ", "upon"]
        assert isinstance(received.error, AnswerCut)

    def test_fail_directive_knows_every_model_error(self) -> None:
        assert FAILURES["context_too_long"] is ContextTooLong
        assert len(FAILURES) == 11

    @pytest.mark.parametrize("text", ["!important: nginx", "! nginx", "!sayhello", "nginx\n!say no", "nginx !say no"])
    def test_text_that_only_looks_like_a_directive_is_a_question(self, text: str) -> None:
        assert ask(MODEL, text, [SEARCH_TOOL]).reply.tool_calls


class TestStop:
    def test_cancel_stops_between_two_words(self) -> None:
        cancellation, received = Cancellation(), ModelEvents()
        for event in MODEL.stream(user_message("!long 1000"), [], cancellation):
            received.events.append(event)
            if len(received.events) == 3:
                cancellation.cancel()
        assert received.events == [TextDelta("word1 "), TextDelta("word2 "), TextDelta("word3 ")]

    def test_cancel_ends_a_pause(self) -> None:
        cancellation, received = Cancellation(), ModelEvents()

        def listen() -> None:
            for event in MODEL.stream(user_message("!long 10 60"), [], cancellation):
                received.events.append(event)

        talking = Task(listen)
        wait_until(lambda: bool(received.events and cancellation._callbacks), "nothing is said")
        cancellation.cancel()
        talking.join(LIMIT_S)
        assert (received.pieces, received.has_reply, talking.is_alive()) == (["word1 "], False, False)


def _searched(text: str, content: str) -> list[Message]:
    """A conversation with one search and this result."""
    call = {"id": "c1", "function": {"name": "session_search", "arguments": '{"query": "x"}'}}
    return [
        *user_message(text),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": content},
    ]
