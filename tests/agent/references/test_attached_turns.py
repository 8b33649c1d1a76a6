"""Attached context in a conversation: stored apart from the user's text, read by the model, found by neither recap."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.compression.division import exchanges_of
from hermes.agent.conversation import Conversation
from hermes.agent.history.attachments import INTRODUCTION, attached_uid, is_attached, without_attached
from hermes.agent.history.projection import UNANSWERED, project
from hermes.agent.references.texts import Block, format_attached, format_block
from hermes.agent.turns.incoming import Incoming
from hermes.cli.chat.recap import build_recap
from hermes.config import DisplayConfig
from hermes.state.owner import EVERYBODY
from hermes.state.provider import SessionDBProvider
from tests.agent.talking import agent_at, assert_asked_soundly, stored
from tests.support.modelserver import Fail, ModelServer, Say

TYPED = "  look at\n\t@file:a.txt  \n"
CONTEXT = format_attached([format_block("@file:a.txt", Block("1 line", "zebra crossing\n"))])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def rows_of(conversation: Conversation) -> list[tuple[str, str]]:
    """Return the stored messages by role and content."""
    return [(role, content) for role, content, *_ in stored(conversation)]


def test_user_text_is_stored_as_typed_and_the_model_reads_both(home: Path, store: SessionDBProvider) -> None:
    with ModelServer(Say("I see."), Say("Still.")) as server:
        conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
        assert conversation.say(TYPED, attached=CONTEXT).text == "I see."
        conversation.say("and now?")
    assert rows_of(conversation)[:3] == [("user", TYPED), ("system", CONTEXT), ("assistant", "I see.")]
    for request in server.requests:
        assert request.messages[1] == {"role": "user", "content": f"{TYPED.strip()}\n\n{CONTEXT}"}
    assert_asked_soundly(server)


def test_recap_preview_and_title_show_only_the_text_of_the_user(home: Path, store: SessionDBProvider) -> None:
    with ModelServer(Say("I see.")) as server:
        conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
        conversation.say(TYPED, attached=CONTEXT)
    entries = build_recap(conversation.history, DisplayConfig()).entries
    assert [each.role for each in entries] == ["user", "assistant"]
    assert "zebra" not in str(entries)
    row = store.get_session(conversation.session_id)
    assert row is not None
    assert row["preview"] == "look at \t@file:a.txt"


def test_search_tells_attached_context_from_what_the_user_wrote(home: Path, store: SessionDBProvider) -> None:
    with ModelServer(Say("I see.")) as server:
        conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
        conversation.say(TYPED, attached=CONTEXT)
    assert [hit["role"] for hit in store.search_messages("zebra")] == ["system"]
    assert store.search_messages("zebra", role_filter=["user", "assistant"]) == []


def test_retry_keeps_the_context(home: Path, store: SessionDBProvider) -> None:
    with ModelServer(Say("One."), Say("Two.")) as server:
        conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
        conversation.say(TYPED, attached=CONTEXT)
        assert conversation.retry().text == "Two."
    assert rows_of(conversation) == [("user", TYPED), ("system", CONTEXT), ("assistant", "Two.")]
    assert server.requests[0].messages == server.requests[1].messages


def test_failed_retry_restores_the_old_answer(home: Path, store: SessionDBProvider) -> None:
    with ModelServer(Say("One."), Fail(400)) as server:
        conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
        conversation.say(TYPED, attached=CONTEXT)
        assert conversation.retry().status == "failed"
    assert rows_of(conversation) == [("user", TYPED), ("system", CONTEXT), ("assistant", "One.")]


def test_retry_of_an_unanswered_message_keeps_the_context(home: Path, store: SessionDBProvider) -> None:
    with ModelServer(Fail(400), Say("Two.")) as server:
        conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
        assert conversation.say(TYPED, attached=CONTEXT).status == "failed"
        assert conversation.retry().text == "Two."
    assert rows_of(conversation) == [("user", TYPED), ("system", CONTEXT), ("assistant", "Two.")]


def test_undo_removes_the_context_with_its_message(home: Path, store: SessionDBProvider) -> None:
    with ModelServer(Say("One."), Say("Two.")) as server:
        conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
        conversation.say("first")
        conversation.say(TYPED, attached=CONTEXT)
        undone = conversation.undo()
    assert (undone.turns, undone.messages, undone.text) == (1, 3, TYPED)
    assert rows_of(conversation) == [("user", "first"), ("assistant", "One.")]


def test_message_that_comes_again_is_stored_once_with_its_context(home: Path, store: SessionDBProvider) -> None:
    with ModelServer(Say("One.")) as server:
        conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
        for context in (CONTEXT, f"{CONTEXT} changed"):
            assert conversation.answer([Incoming(TYPED, "uid 1", context)]).text == "One."
    assert rows_of(conversation) == [("user", TYPED), ("system", CONTEXT), ("assistant", "One.")]


def test_several_messages_keep_their_own_contexts(home: Path, store: SessionDBProvider) -> None:
    with ModelServer(Say("One.")) as server:
        conversation = Conversation.start(agent_at(server, store, home), asker=EVERYBODY)
        conversation.answer([Incoming("a @diff", "1", CONTEXT), Incoming("b", "2"), Incoming("c @diff", "3", CONTEXT)])
    assert [role for role, _ in rows_of(conversation)] == ["user", "system", "user", "user", "system", "assistant"]


def test_compression_does_not_separate_a_message_from_its_context() -> None:
    rows = [
        {"role": "system", "content": "[Summary of the earlier part of this conversation] x", "id": 1},
        {"role": "user", "content": "a @diff", "id": 2},
        {"role": "system", "content": CONTEXT, "id": 3},
        {"role": "user", "content": "b", "id": 4},
        {"role": "assistant", "content": "c", "id": 5},
        {"role": "user", "content": "d", "id": 6},
    ]
    assert [[each["id"] for each in exchange] for exchange in exchanges_of(rows)] == [[1], [2, 3, 4, 5], [6]]


@pytest.mark.parametrize(
    ("rows", "asked"),
    [
        (
            [("user", "a"), ("system", CONTEXT), ("assistant", None), ("user", "b")],
            [("user", f"a\n\n{CONTEXT}"), ("assistant", UNANSWERED), ("user", "b")],
        ),
        (
            [("user", "a"), ("system", CONTEXT), ("user", "a"), ("system", CONTEXT)],
            [("user", f"a\n\n{CONTEXT}")],
        ),
        (
            [("user", "a"), ("system", CONTEXT), ("user", "a"), ("system", f"{CONTEXT} new")],
            [("user", f"a\n\n{CONTEXT}\n\n{CONTEXT} new")],
        ),
        (
            [("user", "a"), ("system", CONTEXT), ("assistant", "x"), ("user", "a"), ("system", CONTEXT)],
            [("user", f"a\n\n{CONTEXT}"), ("assistant", "x"), ("user", f"a\n\n{CONTEXT}")],
        ),
    ],
    ids=["stopped", "repeated", "repeated with another context", "answered"],
)
def test_context_stays_with_its_message(rows: list[tuple[str, str | None]], asked: list[tuple[str, str]]) -> None:
    history = [{"role": role, "content": content} for role, content in rows]
    assert [(each["role"], each["content"]) for each in project(history)] == asked


def test_context_is_recognized_by_its_role_and_its_first_words() -> None:
    assert is_attached({"role": "system", "content": CONTEXT})
    assert not is_attached({"role": "user", "content": CONTEXT})
    assert not is_attached({"role": "system", "content": "[Summary]"})
    assert not is_attached({"role": "system", "content": None})
    assert without_attached(f"hi\n\n{CONTEXT}") == "hi"
    assert without_attached("hi [Attached context") == "hi [Attached context"
    assert INTRODUCTION in CONTEXT


def test_uid_of_a_context_fits_every_store() -> None:
    assert attached_uid("a") == attached_uid("a") != attached_uid("b")
    assert len(attached_uid("x" * 10_000)) == len(attached_uid("")) == 41
