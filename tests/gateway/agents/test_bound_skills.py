"""Skills that belong to a chat: the sessions of the chat get them when they start."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from hermes.agent.tools.toolbox import TOOLBOX
from hermes_state import SessionDB
from tests.agent.skills.writing import skill_text, write_skill
from tests.gateway.agents.lane import Lane, answer, brain_at, config_for
from tests.support.modelserver import ModelServer, Received


def prompts_of(requests: list[Received]) -> list[str]:
    return [str(each.messages[0]["content"]) for each in requests]


def talk(store: SessionDB, home: Path, lane: Lane, *texts: str, skills: tuple[str, ...]) -> list[str]:
    """Send messages one after the other, and return the system prompt of each turn."""

    async def use() -> list[Received]:
        with ModelServer() as server:
            async with brain_at(server, store, home, config=config_for(server, tools={}), tools=TOOLBOX) as brain:
                for text in texts:
                    request = lane.request(text, context="## The chat", skills=skills)
                    assert (await answer(brain, request)).status == "done"
        return server.requests

    return prompts_of(asyncio.run(use()))


def test_session_that_starts_gets_the_skill_once_and_keeps_it(store: SessionDB, home: Path) -> None:
    write_skill(home, "support", skill_text("support", body="Be patient."))
    first, second = talk(store, home, Lane(store), "hi", "again", skills=("support",))
    assert "## The chat\n\n## Skill: support" in first
    assert first.count("Be patient.") == 1
    assert "name: support" not in first
    assert second == first


def test_session_keeps_its_prompt_when_the_skill_changes(store: SessionDB, home: Path) -> None:
    write_skill(home, "support", skill_text("support", body="Be patient."))
    lane = Lane(store)
    (first,) = talk(store, home, lane, "hi", skills=("support",))
    write_skill(home, "support", skill_text("support", body="Be quick."))
    (second,) = talk(store, home, lane, "again", skills=("support",))
    assert second == first


def test_another_session_gets_the_changed_skill(store: SessionDB, home: Path) -> None:
    write_skill(home, "support", skill_text("support", body="Be quick."))
    (prompt,) = talk(store, home, Lane(store, user="8", session_id="s2"), "hi", skills=("support",))
    assert "Be quick." in prompt


def test_missing_variable_is_a_hint_and_never_a_question(store: SessionDB, home: Path) -> None:
    write_skill(home, "support", skill_text("support", "required_environment_variables: DESK_TOKEN"))
    (prompt,) = talk(store, home, Lane(store), "hi", skills=("support",))
    assert "- DESK_TOKEN" in prompt
    assert "Never ask for a value in the conversation" in prompt


@pytest.mark.parametrize("name", ["nothing", "../x", "needy", "broken"])
def test_skill_that_cannot_be_used_is_left_out(
    store: SessionDB, home: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    write_skill(home, "support", skill_text("support", body="Be patient."))
    write_skill(home, "needy", skill_text("needy", "requires_tools: terminal"))
    write_skill(home, "broken", "no frontmatter")
    with caplog.at_level(logging.WARNING):
        (prompt,) = talk(store, home, Lane(store), "hi", skills=(name, "support", "support"))
    assert prompt.count("## Skill: ") == 1
    assert "is not used" in caplog.text


def test_long_skill_is_limited(store: SessionDB, home: Path) -> None:
    write_skill(home, "support", skill_text("support", body="word " * 20_000))
    (prompt,) = talk(store, home, Lane(store), "hi", skills=("support",))
    assert len(prompt) < 25_000
