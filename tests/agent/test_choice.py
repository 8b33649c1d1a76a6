"""The choice of the model and its description for the user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hermes.agent.models.choice import PROVIDERS, ModelChoice, choose_auxiliary_model, choose_model
from hermes.config import EndpointConfig, ModelConfig, load_config, load_variables
from hermes.errors import ConfigError, NoModel

SRC = Path(__file__).parents[2] / "src"
OPENAI = {"OPENAI_API_KEY": "sk-a"}
ALL = {"ANTHROPIC_API_KEY": "sk-ant-c", "OPENROUTER_API_KEY": "sk-or-b", "OPENAI_API_KEY": "sk-a"}


def choose(variables: dict[str, str] | None = None, name: str | None = None, **settings: str) -> ModelChoice:
    return choose_model(ModelConfig(**settings), variables or {}, name)  # type: ignore[arg-type]


def auxiliary(variables: dict[str, str], settings: ModelConfig) -> ModelChoice:
    return choose_auxiliary_model(settings, variables, choose_model(settings, variables))


class TestEnvironment:
    def test_no_configuration_gives_the_offline_model(self) -> None:
        choice = choose()
        assert choice.is_offline
        assert choice.describe() == "the offline model, because no other is configured"

    @pytest.mark.parametrize(
        ("missing", "provider", "described"),
        [
            ((), "openai", "gpt-5-mini at api.openai.com, key from OPENAI_API_KEY"),
            (("OPENAI_API_KEY",), "openrouter", "openai/gpt-5-mini at openrouter.ai, key from OPENROUTER_API_KEY"),
            (
                ("OPENAI_API_KEY", "OPENROUTER_API_KEY"),
                "anthropic",
                "claude-sonnet-4-5 at api.anthropic.com, key from ANTHROPIC_API_KEY",
            ),
        ],
    )
    @pytest.mark.parametrize("how", [None, "", " \n"])
    def test_keys_are_tried_in_order(
        self, missing: tuple[str, ...], provider: str, described: str, how: str | None
    ) -> None:
        variables = {name: key for name, key in ALL.items() if name not in missing}
        if how is not None:
            variables |= dict.fromkeys(missing, how)
        choice = choose(variables)
        assert (choice.provider, choice.describe()) == (provider, described)
        assert choice.url("/chat/completions") == f"{PROVIDERS[provider].base_url}/chat/completions"
        assert choice.headers() == {"Authorization": f"Bearer {ALL[choice.key_source or '']}"}

    def test_configured_model_is_used_with_the_key_of_the_environment(self) -> None:
        assert choose(OPENAI, default="gpt-4.1").describe() == "gpt-4.1 at api.openai.com, key from OPENAI_API_KEY"

    def test_model_name_without_a_provider_is_an_error(self) -> None:
        with pytest.raises(NoModel, match=r"no provider is configured for the model gpt-4\.1") as caught:
            choose(default="gpt-4.1")
        assert "OPENAI_API_KEY" in caught.value.hint

    def test_env_file_is_read_and_the_process_environment_takes_precedence(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-file\nOPENROUTER_API_KEY=sk-or-file\n")
        assert choose(load_variables(tmp_path, environ={})).api_key == "sk-file"
        assert choose(load_variables(tmp_path, environ={"OPENAI_API_KEY": "sk-own"})).api_key == "sk-own"
        assert choose(load_variables(tmp_path, environ={"OPENAI_API_KEY": ""})).provider == "openrouter"


class TestConfiguration:
    def test_configured_address_takes_precedence_over_the_environment(self) -> None:
        choice = choose(OPENAI, base_url="http://10.0.0.7:8000/v1/", default="qwen3")
        assert choice == ModelChoice("custom", "qwen3", "http://10.0.0.7:8000/v1")
        assert choice.describe() == "qwen3 at 10.0.0.7:8000, no key"

    @pytest.mark.parametrize(
        "base_url", ["https://models.example/v1", "http://api.openai.com/v1", "https://api.openai.com.example/v1"]
    )
    def test_key_of_a_provider_is_never_sent_to_another_address(self, base_url: str) -> None:
        choice = choose(ALL, base_url=base_url, default="m")
        assert (choice.provider, choice.api_key, choice.headers()) == ("custom", None, {})
        proxied = choose(ALL, provider="openai", base_url=base_url, default="m")
        assert (proxied.api_key, proxied.headers()) == (None, {})

    def test_address_of_a_provider_uses_its_key(self) -> None:
        choice = choose(ALL, base_url="https://api.anthropic.com/v1/", default="claude-haiku-4-5")
        assert (choice.provider, choice.key_source) == ("anthropic", "ANTHROPIC_API_KEY")

    def test_configured_provider_takes_precedence_over_the_key_order(self) -> None:
        assert choose(ALL, provider="anthropic").key_source == "ANTHROPIC_API_KEY"

    def test_missing_key_is_an_error_that_names_the_variable(self) -> None:
        with pytest.raises(NoModel, match=r"no key for api\.anthropic\.com") as caught:
            choose(OPENAI, provider="anthropic")
        assert caught.value.hint == "set ANTHROPIC_API_KEY, or model.api_key in config.yaml"

    @pytest.mark.parametrize(
        ("key", "provider"),
        [("sk-ant-x", "anthropic"), ("sk-or-v1-x", "openrouter"), ("sk-proj-x", "openai"), ("whatever", "openai")],
    )
    def test_key_alone_selects_its_provider(self, key: str, provider: str) -> None:
        choice = choose(api_key=key)
        assert (choice.provider, choice.key_source) == (provider, "model.api_key")

    def test_configured_key_takes_precedence_over_the_environment(self) -> None:
        assert choose(OPENAI, provider="openai", api_key="sk-mine").api_key == "sk-mine"

    def test_offline_model_can_be_requested(self) -> None:
        assert choose(OPENAI, provider="offline").describe() == "the offline model, as configured"
        assert choose(OPENAI, default="offline").is_offline
        assert choose(OPENAI, "offline").describe() == "the offline model, as requested"

    def test_given_name_replaces_the_default(self) -> None:
        assert choose(OPENAI, "gpt-5", default="gpt-4.1").name == "gpt-5"

    def test_configured_context_applies_only_to_the_configured_model(self) -> None:
        settings = ModelConfig(base_url="http://10.0.0.7/v1", default="a", context_tokens=4096)
        assert choose_model(settings, {}).context_tokens == 4096
        assert choose_model(settings, {}, "a").context_tokens == 4096
        assert choose_model(settings, {}, "b").context_tokens is None

    def test_custom_endpoint_needs_a_name_and_an_address(self) -> None:
        with pytest.raises(ConfigError, match=r"no model is configured for 10\.0\.0\.7"):
            choose(base_url="http://10.0.0.7/v1")
        with pytest.raises(ConfigError, match=r"provider is custom, but model\.base_url is not set"):
            choose(provider="custom", default="m")

    @pytest.mark.parametrize(
        "base_url", ["localhost:8000/v1", "ftp://x/v1", "https://", "http://x:0/v1", "http://[::1/v1"]
    )
    def test_invalid_address_is_an_error_that_does_not_quote_it(self, base_url: str) -> None:
        with pytest.raises(ConfigError, match=r"model\.base_url in config\.yaml is not the address") as caught:
            choose(base_url=base_url, default="m")
        assert base_url not in caught.value.message

    @pytest.mark.parametrize(
        ("base_url", "url"),
        [
            ("https://x.example/v1", "https://x.example/v1/chat/completions"),
            ("https://x.example/v1/", "https://x.example/v1/chat/completions"),
            (" https://x.example/v1/chat/completions ", "https://x.example/v1/chat/completions"),
            ("https://x.example/v1?api-version=1", "https://x.example/v1/chat/completions?api-version=1"),
            ("https://ada:pw@x.example:8443", "https://x.example:8443/chat/completions"),
        ],
    )
    def test_request_paths_are_appended_to_the_address(self, base_url: str, url: str) -> None:
        assert choose(base_url=base_url, default="m").url("/chat/completions") == url


class TestKeys:
    def test_credentials_in_an_address_are_used_and_not_displayed(self) -> None:
        choice = choose(base_url="https://ada:s%40fe@x.example/v1", default="m")
        assert choice.headers() == {"Authorization": "Basic YWRhOnNAZmU="}
        assert choice.display_url == "https://x.example/v1"
        assert "fe" not in choice.describe()

    def test_key_takes_precedence_over_credentials_in_the_address(self) -> None:
        choice = choose(base_url="https://ada:pw@x.example/v1", default="m", api_key="k")
        assert choice.headers() == {"Authorization": "Bearer k"}

    def test_repr_contains_no_secret(self) -> None:
        assert "sk-a" not in repr(choose(OPENAI))
        assert "pw" not in repr(choose(base_url="https://ada:pw@x.example/v1", default="m"))

    def test_blanks_around_a_key_are_removed(self) -> None:
        assert choose({"OPENAI_API_KEY": " sk-a\n"}).api_key == "sk-a"

    @pytest.mark.parametrize("key", ["sk-a\nb", "sk-\u201ca\u201d", "sk-\x00"])
    def test_invalid_key_is_an_error_that_does_not_quote_it(self, key: str) -> None:
        with pytest.raises(ConfigError, match="the key from OPENAI_API_KEY has invalid characters") as caught:
            choose({"OPENAI_API_KEY": key})
        assert key not in str(caught.value)

    @pytest.mark.parametrize("setting", ["api_key", "base_url", "default"])
    @pytest.mark.parametrize("section", ["model", "model.auxiliary"])
    def test_unset_variable_reference_is_an_error(self, setting: str, section: str, tmp_path: Path) -> None:
        line = f"{setting}: ${{NO_SUCH}}"
        text = f"model:\n  {line}\n" if section == "model" else f"model:\n  auxiliary:\n    {line}\n"
        (tmp_path / "config.yaml").write_text(text)
        settings = load_config(tmp_path, environ={}).model
        with pytest.raises(ConfigError) as caught:
            auxiliary(OPENAI, settings)
        assert caught.value.message == f"{section}.{setting} in config.yaml refers to NO_SUCH, which is not set"
        assert caught.value.hint == "set NO_SUCH in the environment or in .env"


class TestLocal:
    @pytest.mark.parametrize(("provider", "port"), [("ollama", 11434), ("lmstudio", 1234), ("llamacpp", 8080)])
    def test_local_server_has_its_usual_port(self, provider: str, port: int) -> None:
        choice = choose(OPENAI, provider=provider, default="m")
        assert choice.url("/models") == f"http://127.0.0.1:{port}/v1/models"
        assert choice.describe() == f"m at 127.0.0.1:{port} ({provider}), no key"

    def test_local_model_and_server_are_optional(self) -> None:
        assert choose(provider="ollama").describe() == "the first available model at 127.0.0.1:11434 (ollama), no key"
        assert choose(provider="local").describe() == (
            "the first available model at the first local server that responds, no key"
        )

    def test_local_port_can_be_configured(self) -> None:
        assert choose(provider="ollama", base_url="http://10.0.0.7:9/v1").host == "10.0.0.7:9"

    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
    def test_local_address_selects_the_provider(self, host: str) -> None:
        assert choose(base_url=f"http://{host}:11434/v1").provider == "ollama"


class TestAuxiliary:
    def test_auxiliary_model_is_a_fast_one_of_the_same_provider(self) -> None:
        choice = auxiliary(OPENAI, ModelConfig(default="gpt-5"))
        assert choice.describe() == "gpt-5-nano at api.openai.com, key from OPENAI_API_KEY"

    def test_auxiliary_model_can_be_configured(self) -> None:
        assert auxiliary(OPENAI, ModelConfig(auxiliary=EndpointConfig(default="gpt-4.1-nano"))).name == "gpt-4.1-nano"

    def test_auxiliary_model_of_other_endpoints_is_the_main_model(self) -> None:
        settings = ModelConfig(base_url="http://10.0.0.7/v1", default="qwen3", context_tokens=4096)
        assert auxiliary({}, settings) == choose_model(settings, {})

    def test_auxiliary_model_can_have_its_own_endpoint(self) -> None:
        settings = ModelConfig(auxiliary=EndpointConfig(provider="ollama", default="llama3.2"))
        choice = auxiliary(OPENAI, settings)
        assert (choice.provider, choice.api_key, choice.section) == ("ollama", None, "model.auxiliary")

    def test_auxiliary_model_uses_its_own_key(self) -> None:
        settings = ModelConfig(auxiliary=EndpointConfig(base_url="https://x.example/v1", default="m", api_key="k"))
        choice = auxiliary(OPENAI, settings)
        assert (choice.headers(), choice.key_source) == ({"Authorization": "Bearer k"}, "model.auxiliary.api_key")

    def test_auxiliary_model_of_offline_is_offline(self) -> None:
        assert auxiliary({}, ModelConfig()).is_offline
        assert auxiliary(OPENAI, ModelConfig(auxiliary=EndpointConfig(provider="offline"))).is_offline


def test_offline_choice_loads_no_network_modules() -> None:
    code = (
        "import sys; from hermes.agent.models.choice import choose_model;"
        "from hermes.agent.models.opening import open_model;"
        "from hermes.config import ModelConfig; from hermes.agent.models.model import Cancellation;"
        "model = open_model(choose_model(ModelConfig(), {}), ModelConfig());"
        "list(model.stream([{'role': 'user', 'content': 'hi'}], [], Cancellation()));"
        "print({'httpx2', 'ssl', 'socket', 'asyncio', 'email', 'http'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(SRC)}, capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
