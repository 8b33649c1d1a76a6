"""Which skills belong to a chat or a topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hermes.config import Config, load_config
from hermes.gateway import Platform, SessionSource
from hermes.gateway.engine.messages import Message
from hermes.gateway.engine.turns.lane_session import bound_skills
from hermes.gateway.event import MessageEvent
from tests.gateway.engine.conftest import RunScenario
from tests.gateway.engine.engine_node import ALICE, BOB, EngineNode
from tests.support.clock import DAY_S

SETTINGS: Mapping[str, Sequence[str]] = {
    "telegram:-9": ("support",),
    "telegram:-9:42": ("billing", "support"),
    "discord:5": ("games",),
}


def message(source: SessionSource, *skills: str) -> Message:
    return Message(1, "u1", "normal", "hi", source, "m1", 0.0, skills=skills)


@pytest.mark.parametrize(
    ("source", "own", "expected"),
    [
        (SessionSource(Platform.TELEGRAM, "-9"), (), ("support",)),
        (SessionSource(Platform.TELEGRAM, "-9", thread_id="42"), (), ("support", "billing")),
        (SessionSource(Platform.TELEGRAM, "-9", thread_id="7"), (), ("support",)),
        (SessionSource(Platform.TELEGRAM, "1"), (), ()),
        (SessionSource(Platform.SLACK, "-9"), (), ()),
        (SessionSource(Platform.DISCORD, "99", parent_chat_id="5"), (), ("games",)),
        (SessionSource(Platform.TELEGRAM, "-9"), ("topic", "support"), ("support", "topic")),
        (SessionSource(Platform.TELEGRAM, "1"), ("topic",), ("topic",)),
    ],
)
def test_skills_of_a_message(source: SessionSource, own: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert bound_skills(SETTINGS, [message(source, *own)]) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(None, ()), ("a", ("a",)), (["a", "b"], ("a", "b")), ("", ()), ([" ", "b"], ("b",))]
)
def test_skills_of_an_event(value: str | list[str] | None, expected: tuple[str, ...]) -> None:
    assert MessageEvent("hi", auto_skill=value).skills == expected


def test_settings_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text('channel_skills: {"telegram:-100123:42": [support, billing]}')
    assert load_config(tmp_path).channel_skills == {"telegram:-100123:42": ("support", "billing")}


def test_turn_gets_the_skills_of_its_chat(run: RunScenario) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one", ALICE)
        turn = await node.brain.next_turn()
        assert turn.request.skills == ("support",)
        turn.answer()
        await node.say("two", BOB, skills=("topic",))
        turn = await node.brain.next_turn()
        assert turn.request.skills == ("topic",)
        turn.answer()
        await node.idle()

    run(scenario, config=Config(channel_skills={"telegram:1": ("support",)}))


@pytest.mark.parametrize("by_command", [True, False], ids=["by a command", "after days"])
def test_session_after_a_reset_gets_them_again(run: RunScenario, by_command: bool) -> None:
    async def scenario(node: EngineNode) -> None:
        await node.say("one", ALICE)
        first = await node.brain.next_turn()
        first.answer()
        await node.idle()
        if by_command:
            await node.say("/new", ALICE)
            await node.idle()
        else:
            node.clock.advance(3 * DAY_S)
        await node.say("two", ALICE)
        second = await node.brain.next_turn()
        assert second.request.session_id != first.request.session_id
        assert second.request.skills == ("support",)
        second.answer()
        await node.idle()

    run(scenario, config=Config(channel_skills={"telegram:1": ("support",)}))
