"""The settings of Matrix, from `platforms.matrix`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hermes.errors import ConfigError
from hermes.gateway.platform_config import PlatformConfig, read_bool
from hermes.platforms.base.json_api import checked_base_url

Scope = Literal["room", "auto", "thread"]
_SCOPES: tuple[Scope, ...] = ("room", "auto", "thread")


@dataclass(frozen=True, slots=True)
class MatrixSettings:
    """How the account is used."""

    base_url: str
    token: str = field(repr=False)
    account: str = ""
    require_mention: bool = True
    free_response_chats: frozenset[str] = frozenset()
    inviters: frozenset[str] | None = None
    """Users whose invitations are accepted, `*:server` for those of a server, `*` for all; None: who may talk."""
    session_scope: Scope = "room"
    command_prefix: str = "!"
    reply_to_mode: str = "first"
    answers_strangers: bool = True
    """Whether unknown users get a pairing code, unless the setting for all platforms says otherwise."""
    backlog_limit: int = 1000
    """How many missed messages of a room are fetched after a long absence."""

    def names_inviter(self, user_id: str) -> bool:
        """Whether the list of users whose invitations are accepted names a user, or the server of a user."""
        return self.inviters is not None and not self.inviters.isdisjoint(
            {"*", user_id, f"*:{user_id.partition(':')[2]}"}
        )


def read_settings(config: PlatformConfig) -> MatrixSettings:
    """Return the settings; raise `ConfigError` if one is missing or wrong."""
    extra = config.extra
    if not config.token:
        raise ConfigError(
            "platforms.matrix.token is missing",
            hint="set it to the access token of the bot's account, as ${MATRIX_ACCESS_TOKEN}",
        )
    if not extra.get("base_url"):
        raise ConfigError(
            "platforms.matrix.extra.base_url is missing",
            hint="set it to the homeserver, such as https://matrix.example.org",
        )
    scope = str(extra.get("session_scope") or "room")
    if scope not in _SCOPES:
        raise ConfigError(f"platforms.matrix.extra.session_scope is {scope!r}", hint="use room, auto or thread")
    return MatrixSettings(
        base_url=checked_base_url("matrix", extra["base_url"]),
        token=config.token,
        account=str(extra.get("account") or ""),
        require_mention=read_bool(extra.get("require_mention"), default=True),
        free_response_chats=_names(extra, "free_response_chats") or frozenset(),
        inviters=_names(extra, "accept_invites_from"),
        answers_strangers=config.unauthorized_dm_behavior != "ignore",
        session_scope=next(each for each in _SCOPES if each == scope),
        command_prefix=str(extra.get("command_prefix", "!") or ""),
        reply_to_mode=config.reply_to_mode,
        backlog_limit=_number(extra, "backlog_limit", 1000),
    )


def _names(extra: Mapping[str, Any], name: str) -> frozenset[str] | None:
    value = extra.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple):
        raise ConfigError(f"platforms.matrix.extra.{name} is not a list", hint="write it as a list of ids")
    return frozenset(str(each).strip() for each in value if str(each).strip())


def _number(extra: Mapping[str, Any], name: str, default: int) -> int:
    value = extra.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10_000:
        raise ConfigError(f"platforms.matrix.extra.{name} is {value!r}", hint="use a number from 0 to 10000")
    return value
