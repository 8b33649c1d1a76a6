"""The chat platforms: the built-in ones, and those that plugins register."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from hermes.errors import InvalidValue
from hermes.state.owner import owner_of

_MAX_CHARACTERS = 64
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


class Platform(Enum):
    """A messaging platform. `Platform("name")` also finds registered ones; other names raise ValueError."""

    LOCAL = "local"
    TELEGRAM = "telegram"
    DISCORD = "discord"
    WHATSAPP = "whatsapp"
    WHATSAPP_CLOUD = "whatsapp_cloud"
    SLACK = "slack"
    SIGNAL = "signal"
    MATTERMOST = "mattermost"
    MATRIX = "matrix"
    HOMEASSISTANT = "homeassistant"
    EMAIL = "email"
    SMS = "sms"
    DINGTALK = "dingtalk"
    API_SERVER = "api_server"
    WEBHOOK = "webhook"
    MSGRAPH_WEBHOOK = "msgraph_webhook"
    FEISHU = "feishu"
    WECOM = "wecom"
    WECOM_CALLBACK = "wecom_callback"
    WEIXIN = "weixin"
    BLUEBUBBLES = "bluebubbles"
    QQBOT = "qqbot"
    YUANBAO = "yuanbao"

    @classmethod
    def _missing_(cls, value: object) -> Platform | None:
        return _registered.get(value) if isinstance(value, str) else None

    @classmethod
    def register(cls, name: str, *, pii_safe: bool = False) -> Platform:
        """Add the platform of a plugin and return it; a second registration only changes `pii_safe`.

        `pii_safe` says that ids and names may be redacted in prompts, because the platform does not need them there.
        """
        if name in _BUILT_IN:
            raise InvalidValue(f"{name!r} is a built-in platform", hint="give the platform of the plugin another name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidValue(
                f"{name!r} cannot be the name of a platform",
                hint="use up to 64 lower-case letters, digits, dots, dashes and underscores",
            )
        owner_of(name, "1")  # raises for the terminal's names
        platform = _registered[name] = cls.from_stored(name)
        _absent.pop(name, None)
        _pii_safe[name] = pii_safe
        return platform

    @classmethod
    def unregister(cls, name: str) -> None:
        """Remove the platform of a plugin; its stored lanes stay."""
        platform = _registered.pop(name, None)
        _pii_safe.pop(name, None)
        if platform is not None:
            _absent[name] = platform

    @classmethod
    def from_stored(cls, name: str) -> Platform:
        """Return the platform of a stored row, also if the plugin that registered it is absent."""
        try:
            return cls(name)
        except ValueError:
            pass
        if not isinstance(name, str) or not 0 < len(name) <= _MAX_CHARACTERS or not name.isprintable():
            raise InvalidValue(f"{str(name)[:80]!r} cannot be the name of a platform")
        return _absent.get(name) or _absent.setdefault(name, _make(name))

    @classmethod
    def is_name(cls, text: str) -> bool:
        """Whether a text is the name of a platform that is built in or registered now."""
        return text in _BUILT_IN or text in _registered

    @property
    def is_known(self) -> bool:
        """Whether the platform is built in or registered now."""
        return Platform.is_name(self.value)

    @property
    def allows_redaction(self) -> bool:
        """Whether prompts may hide ids and names: not on Discord, whose mentions need them, nor on unmarked plugins."""
        if self.value in _BUILT_IN:
            return self is not Platform.DISCORD
        return _pii_safe.get(self.value, False)

    @property
    def title(self) -> str:
        """The name as a title, such as `Telegram` or `Api Server`."""
        return str(self.value).replace("_", " ").title()


_BUILT_IN: Final = frozenset(each.value for each in Platform)
_registered: dict[str, Platform] = {}
_absent: dict[str, Platform] = {}
"""Platforms that only stored rows name. Each is one object, so that equal names stay equal."""
_pii_safe: dict[str, bool] = {}


def _make(name: str) -> Platform:
    """Return a member that is in no list of members: the class itself knows only the built-in ones."""
    member = object.__new__(Platform)
    member._name_ = re.sub(r"\W", "_", name).upper()
    member._value_ = name
    return member
