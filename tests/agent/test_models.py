"""Models opened as they are configured: offline, somewhere, and on this machine."""

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


def opened(settings: ModelConfig) -> Model:
    return open_model(choose_model(settings, {}), settings)


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModelServer]]:
    """Servers by provider; those that are not entered answer nowhere."""
    servers = {name: ModelServer(models=[f"{name}-a", f"{name}-b"]) for name in choice.LOCAL}
    known = {name: replace(choice.PROVIDERS[name], base_url=server.base_url) for name, server in servers.items()}
    monkeypatch.setattr(choice, "PROVIDERS", choice.PROVIDERS | known)
    monkeypatch.setattr("hermes.agent.models.local_servers.PROVIDERS", choice.PROVIDERS | known)
    yield servers
    for server in servers.values():
        server.close()


class TestConfigured:
    def test_nothing_configured_is_the_offline_model(self) -> None:
        model = opened(ModelConfig())
        assert isinstance(model, OfflineModel)
        assert (model.name, model.provider, model.base_url, model.context_tokens) == ("offline", "offline", None, None)

    def test_a_config_file_leads_to_an_answer(self, tmp_path: Path) -> None:
        with ModelServer() as server:
            (tmp_path / "config.yaml").write_text(server.config)
            model = opened(load_config(tmp_path, environ={}).model)
            assert (model.name, model.provider, model.base_url) == ("test-model", "custom", server.base_url)
            assert ask(model, "hello").reply.text == "You said: hello"

    def test_the_settings_reach_the_model(self, tmp_path: Path) -> None:
        with ModelServer(otherwise=Fail(503, retry_after=0)) as server:
            settings = ModelConfig(base_url=server.base_url, default="m", attempts=2, context_tokens=4096)
            model = opened(settings)
            assert isinstance(ask(model).error, ModelUnavailable)
        assert len(server.requests) == 2
        assert model.context_tokens == 4096

    def test_how_much_a_known_model_reads_is_known(self) -> None:
        assert (
            Endpoint(ModelChoice("openai", "gpt-4o-2024-11-20", "https://api.openai.com/v1")).context_tokens == 128_000
        )
        assert Endpoint(ModelChoice("custom", "m", "https://x.example/v1")).context_tokens is None


class TestLocal:
    def test_the_first_that_answers_is_taken(self, ports: dict[str, ModelServer]) -> None:
        with ports["lmstudio"], ports["llamacpp"]:
            model = opened(ModelConfig(provider="local"))
            assert (model.name, model.provider) == ("lmstudio-a", "lmstudio")
            assert ask(model).reply.model == "lmstudio-a"

    def test_a_named_model_is_asked_for_where_there_is_a_server(self, ports: dict[str, ModelServer]) -> None:
        with ports["llamacpp"]:
            model = opened(ModelConfig(provider="local", default="mine"))
        assert (model.name, model.provider) == ("mine", "llamacpp")

    def test_a_server_without_models_is_passed_by(self, ports: dict[str, ModelServer]) -> None:
        ports["ollama"].models = []
        with ports["ollama"], ports["lmstudio"]:
            assert opened(ModelConfig(provider="local")).provider == "lmstudio"

    def test_only_servers_without_models_are_told_of(self, ports: dict[str, ModelServer]) -> None:
        ports["ollama"].models = []
        with ports["ollama"], pytest.raises(NoModel, match="ollama answers, but has no model"):
            opened(ModelConfig(provider="local"))

    def test_none_at_all_is_an_error_that_says_where_was_looked(self, ports: dict[str, ModelServer]) -> None:
        with pytest.raises(NoModel) as caught:
            opened(ModelConfig(provider="local"))
        for name, server in ports.items():
            assert f"{name} at 127.0.0.1:{server.port}" in caught.value.message

    def test_a_provider_is_looked_for_at_its_own_place_only(self, ports: dict[str, ModelServer]) -> None:
        with ports["lmstudio"], pytest.raises(NoModel, match=r"\(ollama at 127\.0\.0\.1:\d+\)"):
            opened(ModelConfig(provider="ollama"))

    def test_with_a_name_nobody_is_asked_before_the_first_question(self, ports: dict[str, ModelServer]) -> None:
        with ports["ollama"] as server:
            opened(ModelConfig(provider="ollama", default="llama3.2"))
        assert server.visits == []

    def test_without_being_asked_for_no_port_is_looked_at(self, ports: dict[str, ModelServer]) -> None:
        with ports["ollama"] as server:
            assert isinstance(opened(ModelConfig()), OfflineModel)
        assert server.visits == []


def test_the_server_of_the_tests_can_be_a_process(tmp_path: Path) -> None:
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
        model = opened(ModelConfig(base_url=base_url, default="m"))
        called = ask(model).reply
        assert (called.text, called.tool_calls[0].arguments) == ("Wait.", '{"q": 1}')
        assert ask(model, "and now?").reply.text == "Hi."
        process.communicate(timeout=20)
    assert process.returncode == 0
    requests = [json.loads(line) for line in log.read_text().splitlines()]
    assert [each["body"]["messages"][0]["content"] for each in requests] == ["hi", "hi", "and now?"]
