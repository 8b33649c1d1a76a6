"""The gateway's configuration from `config.yaml` and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hermes.chat_settings import PlatformSettings, SessionResetConfig
from hermes.config import Config, load_config, load_variables
from hermes.errors import ConfigError
from hermes.gateway.config import GatewayConfig
from hermes.gateway.platform import Platform
from hermes.gateway.platform_config import HomeChannel, PlatformConfig, StreamingConfig
from hermes.gateway.policy import SessionResetPolicy
from hermes.home import get_hermes_home

_POLICY_VARIABLES = (("SESSION_IDLE_MINUTES", "idle_minutes"), ("SESSION_RESET_HOUR", "at_hour"))


def load_gateway_config(home: Path | None = None, *, environ: Mapping[str, str] = os.environ) -> GatewayConfig:
    """Return the gateway's settings in `home`; variables of the environment and of `.env` win over `config.yaml`.

    Raise `ConfigError` with key, value, file and line for a wrong setting.
    """
    home = home or get_hermes_home()
    settings = gateway_config(load_config(home, environ=environ), home)
    return _with_variables(settings, load_variables(home, environ=environ))


def gateway_config(config: Config, home: Path) -> GatewayConfig:
    """Return the gateway's part of a configuration that was read."""
    by_platform = {Platform.from_stored(name): _policy(each) for name, each in config.reset_by_platform.items()}
    platforms = {}
    for name, settings in config.platforms.items():
        platform = Platform.from_stored(name)
        platforms[platform] = _platform_config(platform, settings)
        if settings.session_reset is not None:
            by_platform[platform] = _policy(settings.session_reset)
    streaming = config.streaming
    return GatewayConfig(
        platforms=platforms,
        default_reset_policy=_policy(config.session_reset),
        reset_by_type={name: _policy(each) for name, each in config.reset_by_type.items()},
        reset_by_platform=by_platform,
        reset_triggers=list(config.reset_triggers),
        sessions_dir=home / "sessions",
        group_sessions_per_user=config.group_sessions_per_user,
        thread_sessions_per_user=config.thread_sessions_per_user,
        max_concurrent_sessions=config.max_concurrent_sessions,
        unauthorized_dm_behavior=config.unauthorized_dm_behavior,
        streaming=StreamingConfig(
            enabled=streaming.enabled,
            transport=streaming.transport,
            edit_interval=streaming.edit_interval,
            buffer_threshold=streaming.buffer_threshold,
            cursor=streaming.cursor,
            fresh_final_after_seconds=streaming.fresh_final_after_seconds,
        ),
        session_store_max_age_days=config.session_store_max_age_days,
        timezone=config.timezone,
        jsonl_transcripts=config.gateway.jsonl_transcripts,
        redact_pii=config.privacy.redact_pii,
    )


def _policy(config: SessionResetConfig) -> SessionResetPolicy:
    return SessionResetPolicy(
        mode=config.mode,
        at_hour=config.at_hour,
        idle_minutes=config.idle_minutes,
        notify=config.notify,
        notify_exclude_platforms=config.notify_exclude_platforms,
        bg_process_max_age_hours=config.bg_process_max_age_hours,
    )


def _platform_config(platform: Platform, config: PlatformSettings) -> PlatformConfig:
    home = config.home_channel
    channel = HomeChannel(platform, home.chat_id, home.name, home.thread_id) if home and home.chat_id else None
    return PlatformConfig(
        enabled=config.enabled,
        token=config.token,
        api_key=config.api_key,
        home_channel=channel,
        reply_to_mode=config.reply_to_mode,
        gateway_restart_notification=config.gateway_restart_notification,
        extra=dict(config.extra),
        allow_all=config.allow_all,
        allowed_users=config.allowed_users,
        allowed_chats=config.allowed_chats,
        group_policy=config.group_policy,
        unauthorized_dm_behavior=config.unauthorized_dm_behavior,
        streaming={name: value for name, value in vars(config.streaming).items() if value is not None}
        if config.streaming
        else {},
    )


def _with_variables(config: GatewayConfig, variables: Mapping[str, str]) -> GatewayConfig:
    for variable, name in _POLICY_VARIABLES:
        text = variables.get(variable, "").strip()
        if not text:
            continue
        try:
            changes: dict[str, Any] = {name: int(text)}
            policy = replace(config.default_reset_policy, **changes)
        except ValueError:  # InvalidValue is one too
            raise ConfigError(
                f"the environment variable {variable} is {text!r}, which {name} of session_reset cannot be",
                hint="correct it, or unset it",
            ) from None
        config.default_reset_policy = policy
    for platform, settings in config.platforms.items():
        _set_home_channel(platform, settings, variables)
    return config


def _set_home_channel(platform: Platform, settings: PlatformConfig, variables: Mapping[str, str]) -> None:
    """Apply variables such as TELEGRAM_HOME_CHANNEL, _NAME and _THREAD_ID."""
    prefix = f"{platform.value.upper()}_HOME_CHANNEL"
    chat_id = variables.get(prefix, "").strip()
    if chat_id:
        settings.home_channel = HomeChannel(
            platform, chat_id, variables.get(f"{prefix}_NAME") or "Home", variables.get(f"{prefix}_THREAD_ID")
        )
