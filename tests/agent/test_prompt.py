"""The system prompt: its parts, and that it never changes within a session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.conversation import Conversation
from hermes.agent.models.offline.model import OfflineModel
from hermes.agent.system_prompt import AT_A_TERMINAL, IDENTITY, PromptInputs, build_system_prompt
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.config import Config
from hermes.state.owner import EVERYBODY, TERMINAL, owner_of
from hermes.state.provider import SessionDBProvider
from hermes.state.recall.tool import RECALL_GUIDANCE
from tests.agent.talking import agent_with
from tests.support.clock import DAY_S, FakeClock
from tests.support.conversations import session_of


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_prompt_has_all_parts_in_order() -> None:
    prompt = build_system_prompt(
        PromptInputs(
            "cli", 1_750_000_000.0, cwd="/work", session_id="s1", guidance="Search first.", memory="Likes tea."
        )
    )
    assert prompt.split("\n\n") == [
        IDENTITY,
        AT_A_TERMINAL,
        "Search first.",
        "This conversation began on Sunday, 2025-06-15. It takes place in the directory /work. Its session id is s1.",
        "Likes tea.",
    ]


@pytest.mark.parametrize(
    ("source", "expected"), [("cli", "terminal"), ("tui", "terminal"), ("telegram", "chat on Telegram"), ("cron", "")]
)
def test_prompt_names_the_surface(source: str, expected: str) -> None:
    prompt = build_system_prompt(PromptInputs(source, 0.0))
    assert expected in prompt
    assert ("terminal" in prompt, "chat" in prompt) == (expected == "terminal", "chat" in expected)


def test_prompt_has_no_time_of_day() -> None:
    noon = 1_750_000_000.0
    assert build_system_prompt(PromptInputs("cli", noon)) == build_system_prompt(PromptInputs("cli", noon + 3_600))
    assert build_system_prompt(PromptInputs("cli", noon)) != build_system_prompt(PromptInputs("cli", noon + DAY_S))


class TestOfASession:
    def test_session_prompt_has_guidance_memory_and_no_id(self, store: SessionDBProvider, home: Path) -> None:
        agent = agent_with(OfflineModel(), store, home, Config(), tools=TOOLBOX)
        agent.memory.add(TERMINAL, "likes tea")
        agent.memory.add(owner_of("telegram", "1"), "likes coffee")
        conversation = Conversation.start(agent, asker=EVERYBODY)
        assert RECALL_GUIDANCE in conversation.session.prompt
        assert "likes tea" in conversation.session.prompt
        assert "likes coffee" not in conversation.session.prompt
        assert conversation.session_id not in conversation.session.prompt

    def test_session_prompt_has_the_memory_of_its_owner(self, store: SessionDBProvider, home: Path) -> None:
        agent = agent_with(OfflineModel(), store, home, Config(), tools=TOOLBOX)
        agent.memory.add(TERMINAL, "likes tea")
        agent.memory.add(owner_of("telegram", "1"), "likes coffee")
        prompt = Conversation.start(agent, "telegram", user_id="1", asker=owner_of("telegram", "1")).session.prompt
        assert "likes coffee" in prompt
        assert "likes tea" not in prompt

    def test_session_prompt_has_the_id_if_configured(self, store: SessionDBProvider, home: Path) -> None:
        config = Config(agent=replace(Config().agent, pass_session_id=True))
        conversation = Conversation.start(agent_with(OfflineModel(), store, home, config), asker=EVERYBODY)
        assert conversation.session_id in conversation.session.prompt

    def test_session_prompt_omits_disabled_tools(self, store: SessionDBProvider, home: Path) -> None:
        config = Config(tools={"cli": ("files",)})
        agent = agent_with(OfflineModel(), store, home, config, tools=TOOLBOX)
        agent.memory.add(TERMINAL, "likes tea")
        prompt = Conversation.start(agent, asker=EVERYBODY).session.prompt
        assert "session_search" not in prompt
        assert "likes tea" not in prompt

    def test_session_prompt_never_changes(self, store: SessionDBProvider, home: Path) -> None:
        clock = FakeClock()
        agent = agent_with(OfflineModel(), store, home, Config(), tools=TOOLBOX, clock=clock)
        conversation = Conversation.start(agent, asker=EVERYBODY)
        conversation.say("!say hi")
        before = conversation.session.prompt
        agent.memory.add(TERMINAL, "likes tea")
        clock.advance(10 * DAY_S)
        conversation.use(OfflineModel())
        again = Conversation.resume(
            agent_with(OfflineModel(), store, home, Config(), clock=clock), conversation.session_id, asker=EVERYBODY
        )
        again.say("!say on")
        assert (
            again.session.prompt
            == conversation.session.prompt
            == before
            == session_of(store, again.session_id)["system_prompt"]
        )
