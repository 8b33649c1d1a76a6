"""The model with which a resumed session continues."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hermes.agent.models.model import Model
from hermes.agent.models.offline.model import OfflineModel
from hermes.agent.models.selection import Models, RestoreResult
from hermes.config import Config, ModelConfig
from tests.agent.asking import choice_of, endpoint
from tests.support.modelserver import ModelServer

URL = "http://127.0.0.1:9/v1"
CONFIG = Config(model=ModelConfig(base_url=URL, default="test-model"))


def row(model: str | None = "other-model", provider: str | None = "custom", **fields: Any) -> dict[str, Any]:
    """A session that used a model."""
    return {"model": model, "billing_provider": provider, "imported_from": None, "model_config": None} | fields


@pytest.fixture
def current() -> Model:
    server = ModelServer()
    try:
        return endpoint(server, choice=replace(choice_of(server), base_url=URL))
    finally:
        server.close()


def test_model_of_the_session_is_opened(current: Model) -> None:
    restored = Models(CONFIG, {}).restore(row(), current)
    assert (restored.model.name, restored.result) == ("other-model", RestoreResult.RESTORED)
    assert restored.model.base_url == URL


@pytest.mark.parametrize(
    ("fields", "name", "result"),
    [
        ({"model": None}, None, RestoreResult.UNCHANGED),
        ({"model": "test-model"}, None, RestoreResult.UNCHANGED),
        ({}, "test-model", RestoreResult.NAMED),
        ({"imported_from": "a.jsonl"}, None, RestoreResult.IMPORTED),
        ({"model": "offline", "provider": "offline"}, None, RestoreResult.WAS_OFFLINE),
        ({"provider": "openai"}, None, RestoreResult.OTHER_PROVIDER),
    ],
)
def test_current_model_is_kept(fields: dict[str, Any], name: str | None, result: RestoreResult, current: Model) -> None:
    restored = Models(CONFIG, {}, name).restore(row(**fields), current)
    assert (restored.model, restored.result) == (current, result)


def test_offline_model_is_kept_without_a_configured_one() -> None:
    offline = OfflineModel()
    restored = Models(Config(), {}).restore(row(), offline)
    assert (restored.model, restored.result, restored.used) == (offline, RestoreResult.NOT_CONFIGURED, "other-model")


def test_model_that_cannot_be_opened_is_reported(current: Model) -> None:
    broken = Config(model=ModelConfig(base_url="not an address", default="test-model"))
    restored = Models(broken, {}).restore(row(), current)
    assert (restored.model, restored.result) == (current, RestoreResult.UNUSABLE)
    assert restored.error is not None
