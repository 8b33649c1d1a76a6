"""A long streaming answer is stored while it arrives, and completed in the same row."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import pytest

from hermes.agent.conversation import Conversation
from hermes.agent.models.model import Cancellation
from hermes.agent.turns.partial_answer import PartialAnswerSaver
from hermes.state.owner import EVERYBODY
from hermes.state.owner_view import OwnerView
from hermes.state.rows import AnyRow
from hermes_state import SessionDB
from tests.agent.asking import endpoint
from tests.agent.talking import agent_with
from tests.fault.processes import Task
from tests.support.modelserver import Call, ModelServer, Say
from tests.support.waiting import LIMIT_S, wait_until


def rows(store: SessionDB, conversation: Conversation) -> list[AnyRow]:
    return list(store.get_messages(conversation.session_id))


@pytest.fixture
def save_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store answers at once instead of after a second."""
    monkeypatch.setattr(
        "hermes.agent.turns.answer_stream.PartialAnswerSaver", lambda keep: PartialAnswerSaver(keep, every_s=0.01)
    )


@pytest.mark.usefixtures("save_at_once")
class TestStreaming:
    def test_answer_is_stored_while_the_model_pauses_and_completed_in_its_row(
        self, home: Path, store: SessionDB
    ) -> None:
        answer = Say(pieces=["half an ", "answer"], reasoning="let me see", between_s=0.5)
        with ModelServer(answer) as server:
            conversation = Conversation.start(agent_with(endpoint(server), store, home), asker=EVERYBODY)
            talking = Task(lambda: conversation.say("tell me"))
            wait_until(
                lambda: [row["finish_reason"] for row in rows(store, conversation)] == [None, "partial"], "a row"
            )
            partial = rows(store, conversation)[1]
            talking.result()
        final = rows(store, conversation)[1]
        assert len(rows(store, conversation)) == 2
        assert (partial["reasoning"], final["reasoning"]) == ("let me see", "let me see")
        assert (final["id"], final["uid"]) == (partial["id"], partial["uid"])
        assert (final["content"], final["finish_reason"]) == ("half an answer", "stop")

    def test_answer_that_calls_tools_is_completed_before_its_results(self, home: Path, store: SessionDB) -> None:
        answer = Say(pieces=["Let ", "me ", "add. "], calls=[Call("add", {"one": 1, "other": 2})], between_s=0.1)
        with ModelServer(answer, Say("It is 3.")) as server:
            conversation = Conversation.start(agent_with(endpoint(server), store, home), asker=EVERYBODY)
            conversation.say("1 + 2?")
        assert [row["role"] for row in rows(store, conversation)] == ["user", "assistant", "tool", "assistant"]
        assert "partial" not in [row["finish_reason"] for row in rows(store, conversation)]

    @pytest.mark.parametrize(("cut_after", "finish_reason"), [(3, "cut"), (None, "interrupted")])
    def test_cut_answer_is_marked_in_its_row(
        self, cut_after: int | None, finish_reason: str, home: Path, store: SessionDB
    ) -> None:
        cancellation = Cancellation()
        answer = Say("one two three four five six", between_s=0.2, cut_after=cut_after)
        with ModelServer(answer) as server:
            conversation = Conversation.start(agent_with(endpoint(server), store, home), asker=EVERYBODY)
            talking = Task(lambda: conversation.say("count", cancellation=cancellation))
            wait_until(lambda: rows(store, conversation)[1:] != [], "a partial answer")
            if cut_after is None:
                cancellation.cancel()
            talking.result()
        stored = rows(store, conversation)
        assert [row["finish_reason"] for row in stored] == [None, finish_reason]
        assert str(stored[1]["content"]).startswith("one ")


def test_short_answer_is_written_once(home: Path, store: SessionDB, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    append = OwnerView.append_messages

    def count(view: OwnerView, session_id: str, messages: Any) -> list[int]:
        written.append(messages)
        return append(view, session_id, messages)

    monkeypatch.setattr(OwnerView, "append_messages", count)
    with ModelServer(Say("a short answer")) as server:
        conversation = Conversation.start(agent_with(endpoint(server), store, home), asker=EVERYBODY)
        conversation.say("hi")
    assert len(written) == 1


class TestSaver:
    def test_saver_runs_from_the_first_piece_until_the_end(self) -> None:
        called = Event()
        with PartialAnswerSaver(called.set, every_s=0.01) as keeper:
            assert not called.wait(0.05)
            keeper.begin()
            assert called.wait(LIMIT_S)
        called.clear()
        assert not called.wait(0.05)

    def test_failure_ends_only_the_saver(self) -> None:
        calls = []

        def fail() -> None:
            calls.append(1)
            raise OSError("disk full")

        with PartialAnswerSaver(fail, every_s=0.001) as keeper:
            keeper.begin()
            wait_until(lambda: bool(calls), "a call")
        assert calls == [1]
