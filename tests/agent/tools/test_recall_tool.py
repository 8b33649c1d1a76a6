"""The session_search tool: only sessions of the owner, which the program sets and not the model."""

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
def fill_store(store: SessionDBProvider) -> SessionDBProvider:
    """Store one session each of two users and of the terminal, and the current one."""
    for session_id, source, user_id in [("ada", "telegram", "1"), ("bob", "telegram", "2"), ("mine", "cli", None)]:
        start(store, session_id, source=source, user_id=user_id)
        say(store, session_id, f"the nginx of {session_id}")
    start(store, SESSION)
    say(store, SESSION, "what about nginx?")
    return store


@pytest.mark.usefixtures("fill_store")
class TestScope:
    def test_terminal_finds_all_but_the_current_session(self, bench: Workbench) -> None:
        assert set(found(bench, query="nginx")) == {"ada", "bob", "mine"}
        assert set(found(bench, limit=10)) == {"ada", "bob", "mine"}

    def test_owner_finds_only_own_sessions(self, bench: Workbench) -> None:
        bench.change(owner=owner_of("telegram", "1"), source="telegram", session_id="new")
        assert found(bench, query="nginx") == ["ada"]
        assert found(bench) == ["ada"]

    def test_owner_cannot_read_sessions_of_others(self, bench: Workbench) -> None:
        bench.change(owner=owner_of("telegram", "1"), source="telegram", session_id="new")
        result = bench.run("session_search", '{"session_id": "bob"}')
        assert result.is_error
        assert "there is no session 'bob'" in result.text

    @pytest.mark.parametrize("extra", ["owner", "db", "current_session_id", "summarize", "timeout_s"])
    def test_model_cannot_pass_internal_arguments(self, bench: Workbench, extra: str) -> None:
        assert f'there is no parameter "{extra}"' in bench.refused("session_search", query="nginx", **{extra: None})

    def test_owner_cannot_search_other_profiles(self, bench: Workbench) -> None:
        bench.change(owner=owner_of("telegram", "1"), source="telegram")
        result = bench.run("session_search", '{"query": "nginx", "profile": "default"}')
        assert result.is_error
        assert "other profiles cannot be searched" in result.text


class TestAnswers:
    @pytest.mark.parametrize("arguments", [{"query": "nginx", "limit": 10}, {"session_id": "long0"}])
    def test_long_result_is_shortened_and_stays_json(
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

    def test_summary_is_made_if_a_summarizer_is_given(self, bench: Workbench, fill_store: SessionDBProvider) -> None:
        bench.change(summarize=lambda transcript, topic, metadata: f"about {topic}")
        answer = search(bench, query="nginx", limit=1)
        assert [each["summary"] for each in answer["results"]] == ["about nginx"]


def test_guidance_is_in_the_prompt_only_with_the_tool() -> None:
    assert "session_search before you ask the user to repeat it" in TOOLBOX.guidance({"recall"})
    assert TOOLBOX.guidance({"files", "terminal"}) == ""
