"""The adapter of Telegram."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.errors import ConfigError
from hermes.platforms.telegram.settings import read_settings

if TYPE_CHECKING:
    from hermes.gateway.engine.ports import Adapter
    from hermes.platforms.base.context import AdapterContext


def make(context: AdapterContext) -> Adapter:
    """Make the adapter without connecting it; raise `ConfigError` if a setting is missing or wrong."""
    settings = read_settings(context.config)
    try:
        from hermes.platforms.telegram.bot import TelegramAdapter
    except ImportError as error:
        raise ConfigError(
            "Telegram needs a library that is not installed", hint="pip install 'hermes-sessions[telegram]'"
        ) from error
    if settings.uses_webhook and context.routes is None:
        raise ConfigError(
            "webhook_url of Telegram is set, but the HTTP server is off",
            hint="turn the HTTP server of the gateway on, or remove webhook_url to poll",
        )
    return TelegramAdapter(context, settings)
