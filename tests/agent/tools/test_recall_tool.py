"""The agent's way to past sessions: only those of the owner that the program, not the model, names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.agent.tools.toolbox import TOOLBOX
from hermes.state.owner import owner_of
from hermes.state.provider import SessionDBProvider
from tests.agent.tools.workbench import SESSION, Workbench
from tests.support.conversations import say, start


def search(bench: Workbench, **arguments: Any) -> dict[str, Any]:
    answer = json.loads(bench.call("session_search", **arguments))
    assert isinstance(answer, dict)
    return answer


def found(bench: Workbench, **arguments: Any) -> list[str]:
    return [each["session_id"] for each in search(bench, **arguments)["results"]]


@pytest.fixture
def filled(store: SessionDBProvider) -> SessionDBProvider:
    """One session each of two people and of the terminal, and the current one."""
    for session_id, source, user_id in [("ada", "telegram", "1"), ("bob", "telegram", "2"), ("mine", "cli", None)]:
        start(store, session_id, source=source, user_id=user_id)
        say(store, session_id, f"the nginx of {session_id}")
    start(store, SESSION)
    say(store, SESSION, "what about nginx?")
    return store


@pytest.mark.usefixtures("filled")
class TestScope:
    def test_the_terminal_sees_all_but_the_current_session(self, bench: Workbench) -> None:
        assert set(found(bench, query="nginx")) == {"ada", "bob", "mine"}
        assert set(found(bench, limit=10)) == {"ada", "bob", "mine"}

    def test_an_owner_sees_their_own(self, bench: Workbench) -> None:
        bench.change(owner=owner_of("telegram", "1"), source="telegram", session_id="new")
        assert found(bench, query="nginx") == ["ada"]
        assert found(bench) == ["ada"]

    def test_an_owner_cannot_read_anothers(self, bench: Workbench) -> None:
        bench.change(owner=owner_of("telegram", "1"), source="telegram", session_id="new")
        result = bench.run("session_search", '{"session_id": "bob"}')
        assert result.is_error
        assert "there is no session 'bob'" in result.text

    @pytest.mark.parametrize("extra", ["owner", "db", "current_session_id", "summarize", "timeout_s"])
    def test_what_is_for_the_program_cannot_be_said_by_a_model(self, bench: Workbench, extra: str) -> None:
        assert f'there is no parameter "{extra}"' in bench.refused("session_search", query="nginx", **{extra: None})

    def test_other_profiles_are_not_for_owners(self, bench: Workbench) -> None:
        bench.change(owner=owner_of("telegram", "1"), source="telegram")
        result = bench.run("session_search", '{"query": "nginx", "profile": "default"}')
        assert result.is_error
        assert "other profiles cannot be looked into" in result.text


class TestAnswers:
    @pytest.mark.parametrize("arguments", [{"query": "nginx", "limit": 10}, {"session_id": "long0"}])
    def test_a_long_answer_is_shortened_and_stays_json(
        self, bench: Workbench, store: SessionDBProvider, arguments: dict[str, Any]
    ) -> None:
        messages = [{"role": "user", "content": "nginx " + "question " * 500}] * 20
        for number in range(10):
            store.append_messages(
                start(store, f"long{number}"), [*messages, {"role": "assistant", "content": "answer " * 700}]
            )
        text = bench.call("session_search", **arguments)
        assert len(text) <= 50_000
        shown = [
            message for each in json.loads(text).get("results", [json.loads(text)]) for message in each["messages"]
        ]
        assert len(shown) > 10
        assert all(message["truncated"] for message in shown)

    def test_a_summary_is_made_where_somebody_makes_one(self, bench: Workbench, filled: SessionDBProvider) -> None:
        bench.change(summarize=lambda transcript, topic, metadata: f"about {topic}")
        answer = search(bench, query="nginx", limit=1)
        assert [each["summary"] for each in answer["results"]] == ["about nginx"]


def test_a_prompt_says_when_to_look_only_if_the_tool_is_there() -> None:
    assert "session_search before you ask the user to say it again" in TOOLBOX.guidance({"recall"})
    assert TOOLBOX.guidance({"files", "terminal"}) == ""
