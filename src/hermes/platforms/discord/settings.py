"""The settings of Discord, from `platforms.discord`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hermes.errors import ConfigError
from hermes.gateway.platform_config import PlatformConfig, read_bool
from hermes.platforms.base.json_api import checked_base_url

BASE_URL = "https://discord.com/api/v10"
_HINT = "copy it from the page Bot of your application in Discord's developer portal, as ${DISCORD_BOT_TOKEN}"
_MOST_MESSAGES, _MOST_HOURS = 10_000, 24 * 30


@dataclass(frozen=True, slots=True)
class DiscordSettings:
    """How the bot is used."""

    token: str = field(repr=False)
    account: str = ""
    base_url: str = BASE_URL
    gateway_url: str = ""
    """Another address of the gateway, which begins with `wss://` or `ws://`; empty for Discord's own."""
    require_mention: bool = True
    thread_require_mention: bool = False
    free_response_chats: frozenset[str] = frozenset()
    allowed_roles: frozenset[str] = frozenset()
    """Roles whose members may talk in their server."""
    message_content: bool = True
    """Whether the bot requests the content of messages that do not mention it, which needs a permission."""
    command_prefix: str = "!"
    reply_to_mode: str = "first"
    backlog_limit: int = 1000
    """How many missed messages of a channel are fetched after an absence."""
    backlog_hours: int = 24
    """How old a missed message may be; it must be less than what `gateway.dedupe_days` covers."""


def read_settings(config: PlatformConfig) -> DiscordSettings:
    """Return the settings; raise `ConfigError` if one is missing or wrong."""
    extra = config.extra
    token = str(config.token or "").strip().removeprefix("Bot ").strip()
    if not token:
        raise ConfigError("platforms.discord.token is missing", hint=_HINT)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError("platforms.discord.token is not a token of Discord", hint=_HINT)
    return DiscordSettings(
        token=token,
        account=str(extra.get("account") or ""),
        base_url=checked_base_url("discord", extra.get("base_url"), BASE_URL),
        gateway_url=_gateway_url(extra.get("gateway_url")),
        require_mention=read_bool(extra.get("require_mention"), default=True),
        thread_require_mention=read_bool(extra.get("thread_require_mention"), default=False),
        free_response_chats=_ids(extra, "free_response_chats"),
        allowed_roles=_ids(extra, "allowed_roles"),
        message_content=read_bool(extra.get("message_content"), default=True),
        command_prefix=str(extra.get("command_prefix", "!") or ""),
        reply_to_mode=config.reply_to_mode,
        backlog_limit=_number(extra, "backlog_limit", 1000, _MOST_MESSAGES),
        backlog_hours=_number(extra, "backlog_hours", 24, _MOST_HOURS),
    )


def _gateway_url(value: object) -> str:
    text = str(value or "").strip()
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in ("ws", "wss") and bool(parts.hostname) and parts.username is None
        is_usable = is_usable and (parts.port is None or parts.port > 0)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ConfigError(
            "platforms.discord.extra.gateway_url is not an address", hint="write it as wss://gateway.example.org"
        )
    return text


def _ids(extra: Mapping[str, Any], name: str) -> frozenset[str]:
    value = extra.get(name)
    if value is None:
        return frozenset()
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple):
        raise ConfigError(f"platforms.discord.extra.{name} is not a list", hint="write it as a list of ids")
    return frozenset(str(each).strip() for each in value if str(each).strip())


def _number(extra: Mapping[str, Any], name: str, default: int, most: int) -> int:
    value = extra.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ConfigError(f"platforms.discord.extra.{name} is {value!r}", hint=f"use a number from 0 to {most}")
    return value
