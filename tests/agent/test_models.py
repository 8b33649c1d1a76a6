"""Opening configured models: offline, remote and local."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.models import choice
from hermes.agent.models.choice import ModelChoice, choose_model
from hermes.agent.models.http.endpoint import Endpoint
from hermes.agent.models.model import Model
from hermes.agent.models.offline.model import OfflineModel
from hermes.agent.models.opening import open_model
from hermes.config import ModelConfig, load_config
from hermes.errors import ModelUnavailable, NoModel
from tests.agent.asking import ask
from tests.support.modelserver import Fail, ModelServer

ROOT = Path(__file__).parents[2]


def open_configured(settings: ModelConfig) -> Model:
    return open_model(choose_model(settings, {}), settings)


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModelServer]]:
    """Servers by provider; a provider without a server does not respond."""
    servers = {name: ModelServer(models=[f"{name}-a", f"{name}-b"]) for name in choice.LOCAL}
    known = {name: replace(choice.PROVIDERS[name], base_url=server.base_url) for name, server in servers.items()}
    monkeypatch.setattr(choice, "PROVIDERS", choice.PROVIDERS | known)
    monkeypatch.setattr("hermes.agent.models.local_servers.PROVIDERS", choice.PROVIDERS | known)
    yield servers
    for server in servers.values():
        server.close()


class TestConfigured:
    def test_no_configuration_opens_the_offline_model(self) -> None:
        model = open_configured(ModelConfig())
        assert isinstance(model, OfflineModel)
        assert (model.name, model.provider, model.base_url, model.context_tokens) == ("offline", "offline", None, None)

    def test_configured_model_answers(self, tmp_path: Path) -> None:
        with ModelServer() as server:
            (tmp_path / "config.yaml").write_text(server.config)
            model = open_configured(load_config(tmp_path, environ={}).model)
            assert (model.name, model.provider, model.base_url) == ("test-model", "custom", server.base_url)
            assert ask(model, "hello").reply.text == "You said: hello"

    def test_settings_are_passed_to_the_model(self, tmp_path: Path) -> None:
        with ModelServer(otherwise=Fail(503, retry_after=0)) as server:
            settings = ModelConfig(base_url=server.base_url, default="m", attempts=2, context_tokens=4096)
            model = open_configured(settings)
            assert isinstance(ask(model).error, ModelUnavailable)
        assert len(server.requests) == 2
        assert model.context_tokens == 4096

    def test_context_window_of_a_known_model_is_known(self) -> None:
        assert (
            Endpoint(ModelChoice("openai", "gpt-4o-2024-11-20", "https://api.openai.com/v1")).context_tokens == 128_000
        )
        assert Endpoint(ModelChoice("custom", "m", "https://x.example/v1")).context_tokens is None


class TestLocal:
    def test_first_local_server_that_responds_is_used(self, ports: dict[str, ModelServer]) -> None:
        with ports["lmstudio"], ports["llamacpp"]:
            model = open_configured(ModelConfig(provider="local"))
            assert (model.name, model.provider) == ("lmstudio-a", "lmstudio")
            assert ask(model).reply.model == "lmstudio-a"

    def test_named_model_is_requested_from_the_first_server(self, ports: dict[str, ModelServer]) -> None:
        with ports["llamacpp"]:
            model = open_configured(ModelConfig(provider="local", default="mine"))
        assert (model.name, model.provider) == ("mine", "llamacpp")

    def test_local_server_without_models_is_skipped(self, ports: dict[str, ModelServer]) -> None:
        ports["ollama"].models = []
        with ports["ollama"], ports["lmstudio"]:
            assert open_configured(ModelConfig(provider="local")).provider == "lmstudio"

    def test_only_servers_without_models_is_an_error(self, ports: dict[str, ModelServer]) -> None:
        ports["ollama"].models = []
        with ports["ollama"], pytest.raises(NoModel, match="ollama is running, but has no model"):
            open_configured(ModelConfig(provider="local"))

    def test_no_local_server_is_an_error_that_lists_the_addresses(self, ports: dict[str, ModelServer]) -> None:
        with pytest.raises(NoModel) as caught:
            open_configured(ModelConfig(provider="local"))
        for name, server in ports.items():
            assert f"{name} at 127.0.0.1:{server.port}" in caught.value.message

    def test_named_provider_is_searched_at_its_own_port_only(self, ports: dict[str, ModelServer]) -> None:
        with ports["lmstudio"], pytest.raises(NoModel, match=r"\(ollama at 127\.0\.0\.1:\d+\)"):
            open_configured(ModelConfig(provider="ollama"))

    def test_named_model_sends_no_request_before_the_first_question(self, ports: dict[str, ModelServer]) -> None:
        with ports["ollama"] as server:
            open_configured(ModelConfig(provider="ollama", default="llama3.2"))
        assert server.visits == []

    def test_local_ports_are_not_searched_by_default(self, ports: dict[str, ModelServer]) -> None:
        with ports["ollama"] as server:
            assert isinstance(open_configured(ModelConfig()), OfflineModel)
        assert server.visits == []


def test_model_server_of_the_tests_runs_as_a_process(tmp_path: Path) -> None:
    script, log = tmp_path / "script.json", tmp_path / "requests.jsonl"
    steps = [
        {"fail": 503, "retry_after": 0},
        {"call": "search", "arguments": {"q": 1}, "text": "Wait."},
        {"say": "Hi."},
    ]
    script.write_text(json.dumps(steps))
    command = [sys.executable, "-m", "tests.support.modelserver", "--script", str(script), "--log", str(log)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        model = open_configured(ModelConfig(base_url=base_url, default="m"))
        called = ask(model).reply
        assert (called.text, called.tool_calls[0].arguments) == ("Wait.", '{"q": 1}')
        assert ask(model, "and now?").reply.text == "Hi."
        process.communicate(timeout=20)
    assert process.returncode == 0
    requests = [json.loads(line) for line in log.read_text().splitlines()]
    assert [each["body"]["messages"][0]["content"] for each in requests] == ["hi", "hi", "and now?"]
