"""Who may talk to the gateway: decided for every message before it is stored, also while a turn runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final

from hermes.gateway.people.access import Access, Person, people_of
from hermes.gateway.people.pairing import Pairings, ask_for_code, read_pairings
from hermes.gateway.platform import Platform
from hermes.gateway.platform_config import PlatformConfig

if TYPE_CHECKING:
    from hermes.gateway.config import GatewayConfig
    from hermes.gateway.source import SessionSource
    from hermes.state.provider import SessionDBProvider

OPEN: Final = frozenset({Platform.LOCAL, Platform.API_SERVER})
"""Platforms that know their users: the socket is the operator's own, and the API has keys."""
UNAUTHORIZED: Final = "unauthorized"
REMEMBER_S: Final = 2.0
"""How long the list of paired users is used without reading it again."""
_SAME_PLATFORM: Final = {Platform.WHATSAPP_CLOUD: Platform.WHATSAPP}
_UNSET: Final = PlatformConfig()


class Verdict(Enum):
    """What happens with a message."""

    ALLOW = "allow"
    IGNORE = "ignore"
    PAIR = "pair"


def judge(source: SessionSource, config: PlatformConfig, known: frozenset[Person], usual: str = "pair") -> Verdict:
    """Decide about a message, given the users who may talk on every platform."""
    if config.allow_all:
        return Verdict.ALLOW
    is_group = source.chat_type != "dm"
    if is_group and config.group_policy == "disabled":
        return Verdict.IGNORE
    people = people_of(source)
    if any(user in config.allowed_users for _, user in people) or not known.isdisjoint(people):
        return Verdict.ALLOW
    if source.role_authorized or source.chat_id in config.allowed_chats:
        return Verdict.ALLOW
    if is_group:
        return Verdict.ALLOW if config.group_policy == "open" else Verdict.IGNORE
    behavior = config.unauthorized_dm_behavior or usual
    return Verdict.PAIR if behavior == "pair" and people and not source.is_bot else Verdict.IGNORE


class Doorkeeper:
    """Decides who may talk, with the lists of the configuration and the users who were paired."""

    def __init__(
        self,
        config: GatewayConfig,
        access: Access,
        store: SessionDBProvider,
        clock: Callable[[], float],
        *,
        guards_all: bool = False,
    ) -> None:
        """Create it. Without `guards_all`, a platform whose section says nothing about users is open."""
        self._platforms: Mapping[Platform, PlatformConfig] = config.platforms
        self._usual = config.unauthorized_dm_behavior
        self._access = access
        self._store = store
        self._clock = clock
        self._guards_all = guards_all
        self._pairings = Pairings()
        self._read_at = float("-inf")

    async def refusal(self, source: SessionSource) -> str | None:
        """Return None if a user may talk, else what the chat gets: a pairing code, or nothing."""
        verdict = await self._judge(source)
        if verdict is Verdict.ALLOW:
            return None
        if verdict is Verdict.IGNORE:
            return ""
        # The last id is the stable one, if a platform has two.
        person, name = people_of(source)[-1], source.user_name or ""
        if not self._pairings.copy().ask(person, name, "", "", self._clock()):
            return ""  # decided without a write: strangers cannot make the store work
        code = await asyncio.to_thread(ask_for_code, self._store, person, name, self._clock())
        return "" if code is None else pairing_text(code)

    async def may_talk(self, source: SessionSource) -> bool:
        """Whether a user may talk. Unlike `refusal` this changes nothing: adapters ask before they download files."""
        return await self._judge(source) is Verdict.ALLOW

    async def _judge(self, source: SessionSource) -> Verdict:
        config = self._config_of(source.platform)
        if config is None:
            return Verdict.ALLOW
        known = self._access.approvers
        verdict = judge(source, config, known, self._usual)
        if verdict is not Verdict.ALLOW and people_of(source):
            verdict = judge(source, config, known | (await self._read()).people(), self._usual)
        return verdict

    def _config_of(self, platform: Platform) -> PlatformConfig | None:
        """Return the rules of a platform; None if it is open."""
        if platform in OPEN:
            return None
        config = self._platforms.get(platform) or self._platforms.get(_SAME_PLATFORM.get(platform, platform)) or _UNSET
        says_nothing = not (config.allowed_users or config.allowed_chats or config.group_policy != "allowed")
        return None if says_nothing and not self._guards_all else config

    async def _read(self) -> Pairings:
        if not self._read_at <= self._clock() < self._read_at + REMEMBER_S:
            self._pairings = await asyncio.to_thread(read_pairings, self._store)
            self._read_at = self._clock()
        return self._pairings


def pairing_text(code: str) -> str:
    """Return what an unknown user gets."""
    return (
        f"I do not know you yet. Your pairing code is {code}: give it to the operator of this gateway, who lets you in"
        f" with `hermes gateway pairing approve {code}`. It is valid for an hour."
    )
