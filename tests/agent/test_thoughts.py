"""Reasoning inside an answer is separated from it, however the pieces are split."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.conversation import Conversation
from hermes.agent.listener import Listener
from hermes.agent.models.http.thoughts import LONGEST_TAG, Piece, ThoughtFilter
from hermes.agent.models.model import TextWasReasoning
from hermes.state.owner import EVERYBODY
from hermes_state import SessionDB
from tests.agent.asking import ask, endpoint
from tests.agent.talking import agent_with
from tests.support.modelserver import ModelServer, Raw, Say

ANSWERS = [
    ("plain", "plain", ""),
    ("<think>why</think>\n\nyes", "yes", "why"),
    ("<THINK>why</Think>yes", "yes", "why"),
    ("<thinking>why</thinking>yes", "yes", "why"),
    ("before <think>why</think>after", "before after", "why"),
    ("<think>a</think>b<think>c</think>d", "bd", "ac"),
    ("<think>no end", "", "no end"),
    ("orphan</think>x", "x", "orphan"),
    ("</think>x", "x", ""),
    ("a < b, <b>bold</b>, <thinker> and <thin", "a < b, <b>bold</b>, <thinker> and <thin", ""),
    ("the tag `<think>` is spoken of", "the tag `<think>` is spoken of", ""),
    ("<think></think>", "", ""),
]


def split(pieces: list[str]) -> tuple[str, str]:
    """Return the text and the reasoning of an answer given in pieces."""
    thoughts = ThoughtFilter()
    text = thought = ""
    for piece in [each for part in pieces for each in thoughts.take(part)] + thoughts.finish():
        if piece.kind == "reconsidered":
            text, thought = "", thought + text
        elif piece.kind == "thought":
            thought += piece.text
        else:
            text += piece.text
    return text, thought


@pytest.mark.parametrize(("answer", "text", "thought"), ANSWERS)
class TestSplitting:
    def test_answer_is_separated_from_its_reasoning(self, answer: str, text: str, thought: str) -> None:
        assert split([answer]) == (text, thought)

    def test_tag_may_be_split_anywhere(self, answer: str, text: str, thought: str) -> None:
        assert split(list(answer)) == (text, thought)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "/think>", "<thi", "nk>", "a", " ", "`"]), max_size=12))
def test_chunking_makes_no_difference(parts: list[str]) -> None:
    assert split(parts) == split(["".join(parts)])


def test_held_back_text_is_at_most_one_tag_long() -> None:
    thoughts = ThoughtFilter()
    seen = [piece for _ in range(10_000) for piece in thoughts.take("<")]
    assert sum(len(piece.text) for piece in seen) >= 10_000 - LONGEST_TAG
    assert thoughts.finish() == [Piece("text", "<")]


class _Screen(Listener):
    def __init__(self) -> None:
        self.shown: list[str] = []
        self.notices: list[str] = []

    def text(self, piece: str) -> None:
        self.shown.append(piece)

    def notice(self, text: str) -> None:
        self.notices.append(text)


class TestStreaming:
    @pytest.mark.parametrize("stream", [True, False])
    def test_reasoning_is_neither_displayed_nor_stored_in_the_answer(
        self, stream: bool, home: Path, store: SessionDB
    ) -> None:
        with ModelServer(Say("<think>let me see</think>\n\nThe answer is 4.", stream=stream)) as server:
            conversation = Conversation.start(agent_with(endpoint(server), store, home), asker=EVERYBODY)
            screen = _Screen()
            outcome = conversation.say("2 + 2?", screen)
        stored = store.get_messages(conversation.session_id)[-1]
        assert outcome.text == "".join(screen.shown) == stored["content"] == "The answer is 4."
        assert stored["reasoning"] == "let me see"

    def test_text_before_a_closing_tag_becomes_reasoning_with_a_notice(self, home: Path, store: SessionDB) -> None:
        with ModelServer(Say("hmm, two and two</think>It is 4.")) as server:
            conversation = Conversation.start(agent_with(endpoint(server), store, home), asker=EVERYBODY)
            screen = _Screen()
            outcome = conversation.say("2 + 2?", screen)
        stored = store.get_messages(conversation.session_id)[-1]
        assert (outcome.text, stored["content"], stored["reasoning"]) == ("It is 4.", "It is 4.", "hmm, two and two")
        assert "</think>" not in "".join(screen.shown)
        assert any("reasoning" in notice for notice in screen.notices)

    def test_partial_tag_at_the_end_of_a_cut_answer_is_kept(self) -> None:
        cut = [b'data: {"choices": [{"delta": {"content": "a <thi"}}]}\n\n']
        with ModelServer(Raw(cut, is_cut=True)) as server:
            received = ask(endpoint(server))
        assert "".join(received.pieces) == "a <thi"
        assert TextWasReasoning() not in received.events
