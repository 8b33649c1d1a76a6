"""The settings of the WhatsApp Cloud API, from `platforms.whatsapp_cloud`."""

from __future__ import annotations

from dataclasses import dataclass, field

from hermes.errors import ConfigError
from hermes.gateway.platform_config import PlatformConfig
from hermes.platforms.base.json_api import checked_base_url

GRAPH_URL = "https://graph.facebook.com/v23.0"
WEBHOOK_PATH = "/webhooks/whatsapp"


@dataclass(frozen=True, slots=True)
class WhatsAppSettings:
    """One phone number of a WhatsApp business account."""

    phone_number_id: str
    token: str = field(repr=False)
    app_secret: str = field(repr=False)
    verify_token: str = field(repr=False)
    base_url: str = GRAPH_URL
    account: str = ""
    reply_to_mode: str = "first"
    path: str = WEBHOOK_PATH


def read_settings(config: PlatformConfig) -> WhatsAppSettings:
    """Return the settings; raise `ConfigError` if one is missing or wrong."""
    extra = {"phone_number_id": config.extra.get("phone_id"), **config.extra}
    if not config.token:
        raise ConfigError(
            "platforms.whatsapp_cloud.token is missing", hint="set it to the access token of the system user"
        )
    for name, hint in (
        ("phone_number_id", "the dashboard of the app shows it under WhatsApp, API Setup"),
        ("app_secret", "the dashboard of the app shows it under App settings, Basic"),
        ("verify_token", "invent a long random word, and enter the same one in the dashboard"),
    ):
        if not str(extra.get(name) or ""):
            raise ConfigError(f"platforms.whatsapp_cloud.extra.{name} is missing", hint=hint)
    phone_number_id = str(extra["phone_number_id"])
    if not (phone_number_id.isascii() and phone_number_id.isdigit()):
        raise ConfigError("platforms.whatsapp_cloud.extra.phone_number_id is not a number", hint="it has digits only")
    path = str(extra.get("webhook_path") or WEBHOOK_PATH)
    if not path.startswith("/"):
        raise ConfigError(
            "platforms.whatsapp_cloud.extra.webhook_path is not a path", hint="write it as /webhooks/whatsapp"
        )
    return WhatsAppSettings(
        phone_number_id=phone_number_id,
        token=config.token,
        app_secret=str(extra["app_secret"]),
        verify_token=str(extra["verify_token"]),
        base_url=checked_base_url("whatsapp_cloud", extra.get("base_url"), GRAPH_URL),
        account=str(extra.get("account") or ""),
        reply_to_mode=config.reply_to_mode,
        path=path,
    )
