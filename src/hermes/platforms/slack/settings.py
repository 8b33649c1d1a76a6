"""The settings of Slack, from `platforms.slack`."""

from __future__ import annotations

from dataclasses import dataclass, field

from hermes.errors import ConfigError
from hermes.gateway.platform_config import PlatformConfig, read_bool
from hermes.platforms.base.json_api import checked_base_url

BASE_URL = "https://slack.com/api"
_HINT = "docs/guide/slack.md says where Slack shows it"


@dataclass(frozen=True, slots=True)
class SlackSettings:
    """What the adapter needs to know."""

    token: str = field(repr=False)
    app_token: str = field(default="", repr=False)
    """The token of socket mode; without it, events come by webhook."""
    signing_secret: str = field(default="", repr=False)
    base_url: str = f"{BASE_URL}/"
    reply_in_thread: bool = True
    dm_top_level_threads_as_sessions: bool = False
    require_mention: bool = True
    free_response_chats: frozenset[str] = frozenset()

    @classmethod
    def of(cls, config: PlatformConfig) -> SlackSettings:
        """Return the settings; raise `ConfigError` if a secret is missing or is the wrong one."""
        extra = config.extra
        token, app_token = (config.token or "").strip(), str(extra.get("app_token") or "").strip()
        secret = str(extra.get("signing_secret") or "").strip()
        if not token.startswith(("xoxb-", "xoxe.xoxb-")):
            raise ConfigError("platforms.slack.token must be the bot's token, which begins with xoxb-", hint=_HINT)
        if app_token and not app_token.startswith("xapp-"):
            raise ConfigError("platforms.slack.extra.app_token must begin with xapp-", hint=_HINT)
        if not app_token and not secret:
            raise ConfigError(
                "Slack needs extra.app_token for socket mode, or extra.signing_secret for webhooks", hint=_HINT
            )
        return cls(
            token=token,
            app_token=app_token,
            signing_secret=secret,
            base_url=checked_base_url("slack", extra.get("base_url"), BASE_URL) + "/",
            reply_in_thread=read_bool(extra.get("reply_in_thread"), default=True),
            dm_top_level_threads_as_sessions=read_bool(extra.get("dm_top_level_threads_as_sessions"), default=False),
            require_mention=read_bool(extra.get("require_mention"), default=True),
            free_response_chats=_ids(extra.get("free_response_chats")),
        )


def _ids(value: object) -> frozenset[str]:
    if isinstance(value, str):
        value = value.split(",")
    if value is not None and not isinstance(value, list | tuple):
        raise ConfigError(
            "platforms.slack.extra.free_response_chats is not a list", hint="write it as a list of channel ids"
        )
    return frozenset(str(each).strip() for each in value or () if str(each).strip())
