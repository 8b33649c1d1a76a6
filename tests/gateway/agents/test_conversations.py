"""The models that users of chats choose: the same object for the same name, and not more of them than needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hermes.gateway.agents.cache import AgentCache
from hermes.gateway.agents.conversations import MOST_MODELS, MOST_NAMES, LaneConversations


class NamedModels:
    """Opens a model for every name."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, name: str) -> Any:
        self.opened.append(name)
        return SimpleNamespace(name=name)


def conversations(models: Any) -> LaneConversations:
    agent: Any = SimpleNamespace(model=SimpleNamespace(name="usual"))
    return LaneConversations(agent, models, AgentCache())


def test_a_model_is_opened_once() -> None:
    models = NamedModels()
    lanes = conversations(models)
    assert lanes.open_model("a") is lanes.open_model("a")
    assert lanes.open_model("usual") is lanes.open_model(None)
    assert models.opened == ["a"]


def test_users_cannot_keep_any_number_of_models_open() -> None:
    models = NamedModels()
    lanes = conversations(models)
    first = lanes.open_model("m0")
    for number in range(1, MOST_MODELS):
        lanes.open_model(f"m{number}")
    assert lanes.open_model("m0") is first
    lanes.open_model("one more")
    assert len(lanes._opened) == MOST_MODELS
    assert lanes.open_model("m0") is first
    lanes.open_model("m1")
    assert models.opened.count("m1") == 2


def test_the_choices_of_lanes_take_a_limited_amount_of_memory() -> None:
    lanes = conversations(NamedModels())
    for number in range(MOST_NAMES + 1):
        lanes.set_model(f"lane {number}", "a")
    assert (lanes.model_name("lane 0"), lanes.model_name("lane 1")) == ("usual", "a")
