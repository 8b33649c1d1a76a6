"""The settings of the Telegram adapter."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hermes.errors import ConfigError
from hermes.gateway.platform_config import PlatformConfig, read_bool

API = "https://api.telegram.org"
WEBHOOK_PATH = "/webhooks/telegram"
_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,200}")
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")


@dataclass(frozen=True, slots=True)
class TelegramSettings:
    """How the adapter connects, and which messages of groups are for the bot."""

    token: str = field(repr=False)
    account: str = ""
    base_url: str = API
    webhook_url: str = ""
    webhook_secret: str = field(default="", repr=False)
    require_mention: bool = True
    free_response_chats: frozenset[str] = frozenset()
    reply_to_mode: str = "first"
    poll_s: int = 25
    """How long the server keeps a request for updates open."""
    retry_s: tuple[float, ...] = (1.0, 2.0, 5.0, 15.0, 30.0)
    """The pauses after failures that follow each other."""
    timeout_s: float = 20.0

    @property
    def uses_webhook(self) -> bool:
        """Whether Telegram calls the gateway, instead of being polled."""
        return bool(self.webhook_url)

    @property
    def uses_proxy(self) -> bool:
        """Whether the proxy of the environment is used: not for a server that is reached without encryption."""
        return urlsplit(self.base_url).scheme == "https"


def read_settings(config: PlatformConfig) -> TelegramSettings:
    """Return the settings of the platform; raise `ConfigError` if one is missing or wrong."""
    token = (config.token or "").strip()
    if not token:
        raise ConfigError("Telegram has no token", hint="ask @BotFather for one and set platforms.telegram.token")
    if not _TOKEN.fullmatch(token):
        raise ConfigError("the token of Telegram has the wrong form", hint="it looks like 123456789:AAE... ")
    extra = config.extra
    mode = config.reply_to_mode
    if mode not in ("first", "all", "off"):
        raise ConfigError(f"reply_to_mode of Telegram is {mode!r}", hint="use first, all or off")
    return TelegramSettings(
        token=token,
        account=str(extra.get("account") or ""),
        base_url=_address(extra, "base_url", API),
        webhook_url=_address(extra, "webhook_url", ""),
        webhook_secret=_secret(extra.get("webhook_secret"), token),
        require_mention=read_bool(extra.get("require_mention"), default=True),
        free_response_chats=_chats(extra.get("free_response_chats")),
        reply_to_mode=mode,
    )


def _address(extra: dict[str, Any], name: str, usual: str) -> str:
    address = str(extra.get(name) or usual).rstrip("/")
    if address and (urlsplit(address).scheme not in ("http", "https") or not urlsplit(address).netloc):
        raise ConfigError(f"{name} of Telegram is no address", hint="it begins with https://")
    return address


def _secret(given: object, token: str) -> str:
    """Return the secret of the webhook; without a setting one that follows from the token."""
    if not given:
        return hmac.new(token.encode(), b"hermes webhook of telegram", hashlib.sha256).hexdigest()
    if not _SECRET.fullmatch(str(given)):
        raise ConfigError(
            "webhook_secret of Telegram has characters that Telegram refuses",
            hint="use up to 256 letters, digits, dashes and underscores",
        )
    return str(given)


def _chats(given: object) -> frozenset[str]:
    if given is None:
        return frozenset()
    if isinstance(given, str):
        return frozenset(each.strip() for each in given.split(",") if each.strip())
    if isinstance(given, list | tuple):
        return frozenset(str(each) for each in given)
    raise ConfigError("free_response_chats of Telegram is no list", hint="write a list of chat ids")
