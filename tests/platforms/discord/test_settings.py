"""The settings of Discord, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.errors import ConfigError
from hermes.gateway.platform import Platform
from hermes.gateway.platform_config import PlatformConfig
from hermes.platforms.discord.settings import BASE_URL, read_settings
from hermes.platforms.registry import make_adapters


def config(token: str | None = "abc.def", **extra: Any) -> PlatformConfig:
    return PlatformConfig(enabled=True, token=token, extra=extra)


def test_defaults_need_only_a_token() -> None:
    settings = read_settings(config("Bot abc.def"))
    assert (settings.token, settings.base_url, settings.gateway_url) == ("abc.def", BASE_URL, "")
    assert settings.require_mention
    assert settings.message_content
    assert "abc" not in repr(settings)


def test_lists_may_be_text_with_commas() -> None:
    settings = read_settings(config(free_response_chats="1, 2", allowed_roles=[3, "4"]))
    assert settings.free_response_chats == {"1", "2"}
    assert settings.allowed_roles == {"3", "4"}


@pytest.mark.parametrize(
    ("token", "extra", "problem"),
    [
        (None, {}, "token is missing"),
        ("two words", {}, "not a token"),
        ("line\nbreak", {}, "not a token"),
        ("abc", {"base_url": "discord.com"}, "base_url is not an address"),
        ("abc", {"gateway_url": "https://gateway.example.org"}, "gateway_url is not an address"),
        ("abc", {"gateway_url": "wss://user@gateway.example.org"}, "gateway_url is not an address"),
        ("abc", {"gateway_url": "wss://[::1"}, "gateway_url is not an address"),
        ("abc", {"free_response_chats": 5}, "free_response_chats is not a list"),
        ("abc", {"backlog_limit": True}, "backlog_limit is True"),
        ("abc", {"backlog_hours": 10_000}, "backlog_hours is 10000"),
    ],
)
def test_wrong_setting_is_named(token: str | None, extra: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as failure:
        read_settings(config(token, **extra))
    assert failure.value.hint


def test_registry_makes_the_adapter_without_connecting_it(tmp_path: Path) -> None:
    made = make_adapters({Platform.DISCORD: config()}, tmp_path)
    assert made.problems == {}
    (adapter,) = made.adapters
    assert (adapter.platform, adapter.needs_one_poller, adapter.can_edit) == ("discord", True, True)
