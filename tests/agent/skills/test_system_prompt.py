"""The list of skills in the system prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.conversation import Conversation
from hermes.agent.models.offline.model import OfflineModel
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.config import Config
from hermes.state.owner import EVERYBODY, owner_of
from hermes.state.provider import SessionDBProvider
from tests.agent.skills.writing import skill_text, write_skill
from tests.agent.talking import agent_with


@pytest.fixture(autouse=True)
def two_skills(home: Path) -> None:
    write_skill(home, "deploy")
    write_skill(home, "replace", skill_text("replace", "fallback_for_toolsets: terminal"))


def test_prompt_lists_the_visible_skills(store: SessionDBProvider, home: Path) -> None:
    agent = agent_with(OfflineModel(), store, home, Config(), tools=TOOLBOX)
    prompt = Conversation.start(agent, asker=EVERYBODY).session.prompt
    assert "read it with skill_view before you begin:\n- deploy: How to deploy\n\n" in prompt
    assert "replace" not in prompt


def test_conditions_are_those_of_the_conversation(store: SessionDBProvider, home: Path) -> None:
    agent = agent_with(OfflineModel(), store, home, Config(tools={"cli": ("skills",)}), tools=TOOLBOX)
    assert "- replace: How to replace" in Conversation.start(agent, asker=EVERYBODY).session.prompt


def test_prompt_of_a_session_never_changes(store: SessionDBProvider, home: Path) -> None:
    agent = agent_with(OfflineModel(), store, home, Config(), tools=TOOLBOX)
    conversation = Conversation.start(agent, asker=EVERYBODY)
    conversation.say("hello")
    before = conversation.session.prompt
    write_skill(home, "another")
    again = agent_with(OfflineModel(), store, home, Config(), tools=TOOLBOX)
    assert Conversation.resume(again, conversation.session_id, asker=EVERYBODY).session.prompt == before
    assert "another" in Conversation.start(again, asker=EVERYBODY).session.prompt


def test_two_sessions_have_the_same_list(store: SessionDBProvider, home: Path) -> None:
    prompts = {
        Conversation.start(
            agent_with(OfflineModel(), store, home, Config(), tools=TOOLBOX), asker=EVERYBODY
        ).session.prompt
        for _ in range(3)
    }
    assert len(prompts) == 1


def test_chat_has_no_skills_unless_they_are_turned_on(store: SessionDBProvider, home: Path) -> None:
    owner = owner_of("telegram", "7")
    agent = agent_with(OfflineModel(), store, home, Config(), tools=TOOLBOX)
    assert "skill" not in Conversation.start(agent, "telegram", asker=owner, user_id="7").session.prompt.lower()
    agent = agent_with(OfflineModel(), store, home, Config(tools={"telegram": ("skills",)}), tools=TOOLBOX)
    assert "- deploy: " in Conversation.start(agent, "telegram", asker=owner, user_id="7").session.prompt


def test_end_of_a_session_ends_the_use_of_its_skills(store: SessionDBProvider, home: Path) -> None:
    write_skill(home, "shop", skill_text("shop", "required_environment_variables: SHOP_TOKEN"))
    agent = agent_with(OfflineModel(), store, home, Config(), tools=TOOLBOX)
    conversation = Conversation.start(agent, asker=EVERYBODY)
    conversation.say('!tool skill_view {"name": "shop"}')
    assert agent.skill_use.names(conversation.session_id) == ["SHOP_TOKEN"]
    conversation.end("user_exit")
    assert agent.skill_use.names(conversation.session_id) == []
