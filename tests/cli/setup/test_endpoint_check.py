"""`hermes doctor` and the endpoint of the model."""

from __future__ import annotations

import json
import socket

import pytest

from hermes.cli.setup import endpoint_check
from hermes.config import Config, ModelConfig
from hermes.state.maintenance.findings import Status
from tests.cli.conftest import Hermes
from tests.support.modelserver import ModelServer


def check(base_url: str, model: str = "test-model", key: str | None = None) -> tuple[Status, str]:
    settings = ModelConfig(provider="custom", base_url=base_url, default=model, api_key=key)
    result = endpoint_check.check_endpoint(Config(model=settings), {})
    return result.status, result.summary


def test_offline_model_needs_no_network() -> None:
    result = endpoint_check.check_endpoint(Config(), {})
    assert (result.status, result.summary) == (Status.OK, "the offline model, because no other is configured")


def test_endpoint_that_offers_the_model_is_fine_and_gets_no_message() -> None:
    with ModelServer() as server:
        assert check(server.base_url)[0] is Status.OK
        assert (len(server.visits), server.requests) == (1, [])


def test_missing_model_is_a_warning_with_similar_names() -> None:
    with ModelServer(models=("test-model", "other")) as server:
        settings = ModelConfig(provider="custom", base_url=server.base_url, default="test-mode")
        result = endpoint_check.check_endpoint(Config(model=settings), {})
    assert result.status is Status.WARNING
    assert "such as test-model" in result.remedy


def test_endpoint_without_a_list_is_only_noted() -> None:
    with ModelServer() as server:
        status, summary = check(f"{server.base_url}?version=1")
    assert (status, "does not list its models (status 404)" in summary) == (Status.NOTE, True)


def test_closed_port_is_an_error() -> None:
    with ModelServer() as server:
        pass
    status, summary = check(server.base_url)
    assert (status, f"127.0.0.1:{server.port} does not respond" in summary) == (Status.ERROR, True)


def test_silent_endpoint_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_check, "LIMIT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        status, summary = check(f"http://127.0.0.1:{server.getsockname()[1]}/v1")
    assert (status, "no response within 0.2 s" in summary) == (Status.ERROR, True)


def test_doctor_asks_the_endpoint_unless_it_must_not(hermes: Hermes) -> None:
    with ModelServer() as server:
        hermes.home.mkdir(mode=0o700)
        (hermes.home / "config.yaml").write_text(server.config)
        found = {each["name"]: each for each in json.loads(hermes("doctor", "--json").stdout)["items"]}
        assert found["model"]["status"] == "ok"
        assert len(server.visits) == 1
        found = {each["name"]: each for each in json.loads(hermes("doctor", "--json", "--no-network").stdout)["items"]}
        assert "model" not in found
        assert len(server.visits) == 1
