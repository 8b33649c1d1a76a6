"""The settings of Slack: what is missing or wrong is named, and no secret is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.errors import ConfigError
from hermes.gateway.platform_config import PlatformConfig
from hermes.platforms.base.context import AdapterContext
from hermes.platforms.base.media import MediaFolder
from hermes.platforms.registry import find_maker
from hermes.platforms.slack.settings import SlackSettings


def config(token: str | None = "xoxb-1", **extra: Any) -> PlatformConfig:
    return PlatformConfig(enabled=True, token=token, extra=extra)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (config(None, app_token="xapp-1"), "xoxb-"),
        (config("xapp-1", app_token="xapp-1"), "xoxb-"),
        (config("xoxp-1", app_token="xapp-1"), "xoxb-"),
        (config(), "extra.app_token"),
        (config(app_token="xoxb-1"), "xapp-"),
        (config(app_token="xapp-1", base_url="slack"), "base_url"),
        (config(app_token="xapp-1", free_response_chats=5), "free_response_chats"),
        (config(signing_secret="s"), "HTTP server"),
    ],
)
def test_missing_and_wrong_settings_are_named(tmp_path: Path, given: PlatformConfig, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        find_maker("slack")(AdapterContext(given, tmp_path, MediaFolder(tmp_path, "slack")))
    assert caught.value.hint


def test_settings_are_read_and_secrets_are_not_shown() -> None:
    settings = SlackSettings.of(
        config(
            " xoxb-secret ",
            app_token="xapp-secret",
            signing_secret="secret",
            base_url="https://slack-gov.com/api/",
            reply_in_thread="no",
            free_response_chats="C1, C2,",
        )
    )
    assert (settings.token, settings.base_url) == ("xoxb-secret", "https://slack-gov.com/api/")
    assert not settings.reply_in_thread
    assert settings.free_response_chats == {"C1", "C2"}
    assert "secret" not in repr(settings)
