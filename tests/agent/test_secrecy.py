"""A key is sent unencrypted only to this machine, a private network, or where the user allows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.models.choice import ModelChoice, choose_auxiliary_model, choose_model
from hermes.agent.models.http.addresses import is_near
from hermes.config import EndpointConfig, ModelConfig
from hermes.errors import ConfigError
from tests.agent.asking import ask, endpoint
from tests.support.modelserver import ModelServer

NEAR = [
    *("127.0.0.1", "127.9.9.9", "10.0.0.7", "172.16.0.1", "172.31.255.255", "192.168.1.5", "169.254.3.4"),
    *("::1", "fd00::1", "fe80::1", "fe80::1%eth0", "::ffff:10.0.0.1"),
    *("localhost", "LOCALHOST", "localhost.", "models.localhost", "box.local", "gpu.lab.local"),
]
FAR = [
    *("8.8.8.8", "172.32.0.1", "192.169.0.1", "100.64.0.1", "0.0.0.0", "2001:db8::1", "::ffff:8.8.8.8"),
    *("models.example", "gpu", "local", "box.local.example", "localhost.example", "notlocalhost", "10.0.0.7.example"),
    *("127.1", "2130706433", "0x7f000001", "box.internal", "evil.example\\.local", "b\u00f6x.local", ""),
]


@pytest.mark.parametrize("host", NEAR)
def test_host_in_the_own_network_needs_no_encryption(host: str) -> None:
    assert is_near(host)


@pytest.mark.parametrize("host", FAR)
def test_public_host_needs_encryption(host: str) -> None:
    assert not is_near(host)


class TestChoice:
    @pytest.mark.parametrize(
        ("base_url", "api_key"),
        [
            ("http://models.example/v1", "sk-secret-1"),
            ("http://8.8.8.8:8000/v1", "sk-secret-1"),
            ("http://ada:sk-secret-1@models.example/v1", None),
            ("http://models.example/v1?api-key=sk-secret-1", None),
        ],
    )
    def test_unencrypted_key_is_refused_with_a_hint_and_not_quoted(self, base_url: str, api_key: str | None) -> None:
        with pytest.raises(ConfigError, match="over http") as caught:
            choose_model(ModelConfig(base_url=base_url, default="m", api_key=api_key), {})
        assert "model.allow_http" in (caught.value.hint or "")
        assert "sk-secret-1" not in str(caught.value)

    @pytest.mark.parametrize(
        "base_url", ["https://models.example/v1", "http://10.0.0.7:8000/v1", "http://box.local/v1"]
    )
    def test_key_may_be_sent_encrypted_or_to_private_addresses(self, base_url: str) -> None:
        assert choose_model(ModelConfig(base_url=base_url, default="m", api_key="k"), {}).headers() != {}

    def test_http_without_a_key_is_allowed(self) -> None:
        assert choose_model(ModelConfig(base_url="http://models.example/v1", default="m"), {}).headers() == {}

    def test_setting_allows_an_unencrypted_key(self) -> None:
        settings = ModelConfig(base_url="http://models.example/v1", default="m", api_key="k", allow_http=True)
        assert choose_model(settings, {}).headers() == {"Authorization": "Bearer k"}

    def test_auxiliary_model_needs_its_own_setting(self) -> None:
        own = EndpointConfig(base_url="http://models.example/v1", default="m", api_key="k")
        settings = ModelConfig(provider="offline", allow_http=True, auxiliary=own)
        with pytest.raises(ConfigError, match="over http") as caught:
            choose_auxiliary_model(settings, {}, choose_model(settings, {}))
        assert "model.auxiliary.allow_http" in (caught.value.hint or "")

    def test_no_request_sends_an_unencrypted_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with ModelServer() as server:
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.port}")
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
            choice = ModelChoice("custom", "m", "http://far.invalid/v1", "sk-secret-1", "MY_KEY")
            with pytest.raises(ConfigError, match="the key from MY_KEY would be sent to far"):
                ask(endpoint(server, choice=choice))
        assert server.visits == []


def test_allow_http_is_read_from_the_file(tmp_path: Path) -> None:
    from hermes.config import load_config

    (tmp_path / "config.yaml").write_text("model: {allow_http: true, auxiliary: {allow_http: true}}")
    model = load_config(tmp_path, environ={}).model
    assert (model.allow_http, model.auxiliary.allow_http) == (True, True)
