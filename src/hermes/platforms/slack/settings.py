"""The settings of Slack."""

from __future__ import annotations

from dataclasses import dataclass, field

from hermes.errors import ConfigError
from hermes.gateway.platform_config import PlatformConfig, read_bool

BASE_URL = "https://slack.com/api/"
_HINT = "docs/guide/slack.md says where Slack shows it"


@dataclass(frozen=True, slots=True)
class SlackSettings:
    """What the adapter needs to know."""

    token: str = field(repr=False)
    app_token: str = field(default="", repr=False)
    """The token of socket mode; without it, events come by webhook."""
    signing_secret: str = field(default="", repr=False)
    base_url: str = BASE_URL
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
        if not token.startswith("xox"):
            raise ConfigError("the token of Slack must be the bot's token, which begins with xoxb-", hint=_HINT)
        if app_token and not app_token.startswith("xapp-"):
            raise ConfigError("platforms.slack.extra.app_token must begin with xapp-", hint=_HINT)
        if not app_token and not secret:
            raise ConfigError(
                "Slack needs extra.app_token for socket mode, or extra.signing_secret for webhooks", hint=_HINT
            )
        base_url = str(extra.get("base_url") or BASE_URL)
        chats = extra.get("free_response_chats") or ()
        if isinstance(chats, str) or not isinstance(chats, list | tuple):
            raise ConfigError("platforms.slack.extra.free_response_chats must be a list of channel ids")
        return cls(
            token=token,
            app_token=app_token,
            signing_secret=secret,
            base_url=base_url if base_url.endswith("/") else base_url + "/",
            reply_in_thread=read_bool(extra.get("reply_in_thread"), default=True),
            dm_top_level_threads_as_sessions=read_bool(extra.get("dm_top_level_threads_as_sessions"), default=False),
            require_mention=read_bool(extra.get("require_mention"), default=True),
            free_response_chats=frozenset(str(each) for each in chats),
        )
