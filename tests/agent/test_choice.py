"""Which model is used, and what a person is told about that."""

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


def chosen(variables: dict[str, str] | None = None, name: str | None = None, **settings: str) -> ModelChoice:
    return choose_model(ModelConfig(**settings), variables or {}, name)  # type: ignore[arg-type]


def auxiliary(variables: dict[str, str], settings: ModelConfig) -> ModelChoice:
    return choose_auxiliary_model(settings, variables, choose_model(settings, variables))


class TestEnvironment:
    def test_nothing_at_all_is_the_offline_model(self) -> None:
        choice = chosen()
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
    def test_the_keys_are_looked_at_in_order(
        self, missing: tuple[str, ...], provider: str, described: str, how: str | None
    ) -> None:
        variables = {name: key for name, key in ALL.items() if name not in missing}
        if how is not None:
            variables |= dict.fromkeys(missing, how)
        choice = chosen(variables)
        assert (choice.provider, choice.describe()) == (provider, described)
        assert choice.url("/chat/completions") == f"{PROVIDERS[provider].base_url}/chat/completions"
        assert choice.headers() == {"Authorization": f"Bearer {ALL[choice.key_source or '']}"}

    def test_a_name_in_the_configuration_goes_with_the_key_of_the_environment(self) -> None:
        assert chosen(OPENAI, default="gpt-4.1").describe() == "gpt-4.1 at api.openai.com, key from OPENAI_API_KEY"

    def test_a_name_alone_is_an_error_and_not_the_offline_model(self) -> None:
        with pytest.raises(NoModel, match=r"gpt-4\.1, but nothing says where it is") as caught:
            chosen(default="gpt-4.1")
        assert "OPENAI_API_KEY" in caught.value.hint

    def test_the_env_file_of_the_home_counts_and_the_process_goes_before_it(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-file\nOPENROUTER_API_KEY=sk-or-file\n")
        assert chosen(load_variables(tmp_path, environ={})).api_key == "sk-file"
        assert chosen(load_variables(tmp_path, environ={"OPENAI_API_KEY": "sk-own"})).api_key == "sk-own"
        assert chosen(load_variables(tmp_path, environ={"OPENAI_API_KEY": ""})).provider == "openrouter"


class TestConfiguration:
    def test_an_address_goes_before_the_environment(self) -> None:
        choice = chosen(OPENAI, base_url="http://10.0.0.7:8000/v1/", default="qwen3")
        assert choice == ModelChoice("custom", "qwen3", "http://10.0.0.7:8000/v1")
        assert choice.describe() == "qwen3 at 10.0.0.7:8000, no key"

    @pytest.mark.parametrize(
        "base_url", ["https://models.example/v1", "http://api.openai.com/v1", "https://api.openai.com.example/v1"]
    )
    def test_the_key_of_a_provider_is_never_sent_to_another_address(self, base_url: str) -> None:
        choice = chosen(ALL, base_url=base_url, default="m")
        assert (choice.provider, choice.api_key, choice.headers()) == ("custom", None, {})
        proxied = chosen(ALL, provider="openai", base_url=base_url, default="m")
        assert (proxied.api_key, proxied.headers()) == (None, {})

    def test_an_address_of_a_provider_takes_its_key(self) -> None:
        choice = chosen(ALL, base_url="https://api.anthropic.com/v1/", default="claude-haiku-4-5")
        assert (choice.provider, choice.key_source) == ("anthropic", "ANTHROPIC_API_KEY")

    def test_a_provider_goes_before_the_order_of_the_keys(self) -> None:
        assert chosen(ALL, provider="anthropic").key_source == "ANTHROPIC_API_KEY"

    def test_a_provider_without_a_key_is_an_error_that_names_the_variable(self) -> None:
        with pytest.raises(NoModel, match=r"no key for api\.anthropic\.com") as caught:
            chosen(OPENAI, provider="anthropic")
        assert caught.value.hint == "set ANTHROPIC_API_KEY, or model.api_key in config.yaml"

    @pytest.mark.parametrize(
        ("key", "provider"),
        [("sk-ant-x", "anthropic"), ("sk-or-v1-x", "openrouter"), ("sk-proj-x", "openai"), ("whatever", "openai")],
    )
    def test_a_key_alone_goes_to_whom_it_belongs(self, key: str, provider: str) -> None:
        choice = chosen(api_key=key)
        assert (choice.provider, choice.key_source) == (provider, "model.api_key")

    def test_the_key_of_the_configuration_goes_before_that_of_the_environment(self) -> None:
        assert chosen(OPENAI, provider="openai", api_key="sk-mine").api_key == "sk-mine"

    def test_offline_can_be_asked_for(self) -> None:
        assert chosen(OPENAI, provider="offline").describe() == "the offline model, as it is configured"
        assert chosen(OPENAI, default="offline").is_offline
        assert chosen(OPENAI, "offline").describe() == "the offline model, as it was asked for"

    def test_a_name_that_is_given_stands_in_for_the_default(self) -> None:
        assert chosen(OPENAI, "gpt-5", default="gpt-4.1").name == "gpt-5"

    def test_how_much_a_model_reads_is_said_of_the_configured_one_alone(self) -> None:
        settings = ModelConfig(base_url="http://10.0.0.7/v1", default="a", context_tokens=4096)
        assert choose_model(settings, {}).context_tokens == 4096
        assert choose_model(settings, {}, "a").context_tokens == 4096
        assert choose_model(settings, {}, "b").context_tokens is None

    def test_a_custom_endpoint_needs_a_name_and_an_address(self) -> None:
        with pytest.raises(ConfigError, match=r"model\.default does not say which model at 10\.0\.0\.7"):
            chosen(base_url="http://10.0.0.7/v1")
        with pytest.raises(ConfigError, match=r"provider is custom, but model\.base_url is not set"):
            chosen(provider="custom", default="m")

    @pytest.mark.parametrize(
        "base_url", ["localhost:8000/v1", "ftp://x/v1", "https://", "http://x:0/v1", "http://[::1/v1"]
    )
    def test_what_is_no_address_is_an_error_that_does_not_quote_it(self, base_url: str) -> None:
        with pytest.raises(ConfigError, match=r"model\.base_url in config\.yaml is not the address") as caught:
            chosen(base_url=base_url, default="m")
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
    def test_requests_go_below_the_address(self, base_url: str, url: str) -> None:
        assert chosen(base_url=base_url, default="m").url("/chat/completions") == url


class TestKeys:
    def test_credentials_in_an_address_are_used_and_not_shown(self) -> None:
        choice = chosen(base_url="https://ada:s%40fe@x.example/v1", default="m")
        assert choice.headers() == {"Authorization": "Basic YWRhOnNAZmU="}
        assert choice.shown_url == "https://x.example/v1"
        assert "fe" not in choice.describe()

    def test_a_key_goes_before_the_credentials_of_an_address(self) -> None:
        choice = chosen(base_url="https://ada:pw@x.example/v1", default="m", api_key="k")
        assert choice.headers() == {"Authorization": "Bearer k"}

    def test_no_secret_is_in_the_representation(self) -> None:
        assert "sk-a" not in repr(chosen(OPENAI))
        assert "pw" not in repr(chosen(base_url="https://ada:pw@x.example/v1", default="m"))

    def test_blanks_around_a_key_are_not_part_of_it(self) -> None:
        assert chosen({"OPENAI_API_KEY": " sk-a\n"}).api_key == "sk-a"

    @pytest.mark.parametrize("key", ["sk-a\nb", "sk-\u201ca\u201d", "sk-\x00"])
    def test_a_key_that_cannot_be_sent_is_an_error_that_does_not_quote_it(self, key: str) -> None:
        with pytest.raises(ConfigError, match="the key from OPENAI_API_KEY has characters that no key has") as caught:
            chosen({"OPENAI_API_KEY": key})
        assert key not in str(caught.value)

    @pytest.mark.parametrize("setting", ["api_key", "base_url", "default"])
    @pytest.mark.parametrize("section", ["model", "model.auxiliary"])
    def test_a_reference_to_nothing_is_an_error_and_never_sent(
        self, setting: str, section: str, tmp_path: Path
    ) -> None:
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
    def test_a_server_has_its_usual_port(self, provider: str, port: int) -> None:
        choice = chosen(OPENAI, provider=provider, default="m")
        assert choice.url("/models") == f"http://127.0.0.1:{port}/v1/models"
        assert choice.describe() == f"m at 127.0.0.1:{port} ({provider}), no key"

    def test_which_model_and_which_server_can_be_left_open(self) -> None:
        assert chosen(provider="ollama").describe() == "the first model there is at 127.0.0.1:11434 (ollama), no key"
        assert chosen(provider="local").describe() == (
            "the first model there is at the first local server that answers, no key"
        )

    def test_another_port_can_be_given(self) -> None:
        assert chosen(provider="ollama", base_url="http://10.0.0.7:9/v1").host == "10.0.0.7:9"

    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
    def test_an_address_tells_the_server(self, host: str) -> None:
        assert chosen(base_url=f"http://{host}:11434/v1").provider == "ollama"


class TestAuxiliary:
    def test_it_is_a_fast_model_at_the_same_provider(self) -> None:
        choice = auxiliary(OPENAI, ModelConfig(default="gpt-5"))
        assert choice.describe() == "gpt-5-nano at api.openai.com, key from OPENAI_API_KEY"

    def test_it_can_be_named(self) -> None:
        assert auxiliary(OPENAI, ModelConfig(auxiliary=EndpointConfig(default="gpt-4.1-nano"))).name == "gpt-4.1-nano"

    def test_elsewhere_it_is_the_main_model(self) -> None:
        settings = ModelConfig(base_url="http://10.0.0.7/v1", default="qwen3", context_tokens=4096)
        assert auxiliary({}, settings) == choose_model(settings, {})

    def test_it_can_be_somewhere_else(self) -> None:
        settings = ModelConfig(auxiliary=EndpointConfig(provider="ollama", default="llama3.2"))
        choice = auxiliary(OPENAI, settings)
        assert (choice.provider, choice.api_key, choice.section) == ("ollama", None, "model.auxiliary")

    def test_its_key_is_its_own(self) -> None:
        settings = ModelConfig(auxiliary=EndpointConfig(base_url="https://x.example/v1", default="m", api_key="k"))
        choice = auxiliary(OPENAI, settings)
        assert (choice.headers(), choice.key_source) == ({"Authorization": "Bearer k"}, "model.auxiliary.api_key")

    def test_offline_stays_offline(self) -> None:
        assert auxiliary({}, ModelConfig()).is_offline
        assert auxiliary(OPENAI, ModelConfig(auxiliary=EndpointConfig(provider="offline"))).is_offline


def test_to_choose_and_to_be_offline_loads_nothing_of_the_network() -> None:
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
