"""Limits: how much one user and one chat may use in a day, checked before the model is called."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from hermes.gateway.keys import lane_owner
from hermes.gateway.people import texts
from hermes.state.lanes.quotas import MAX_SCOPE_CHARACTERS, QuotaLimits

if TYPE_CHECKING:
    from hermes.chat_settings import LimitsConfig
    from hermes.gateway.source import SessionSource
    from hermes.state.asynchronous.limits import AsyncQuotas
    from hermes.state.owner import Owner

_NONE = QuotaLimits()


class Limits:
    """Counts turns, tokens and costs of users and chats, each day from midnight in a time zone."""

    def __init__(self, settings: LimitsConfig, quotas: AsyncQuotas, zone: tzinfo | None = None) -> None:
        self._settings = settings
        self._quotas = quotas
        self._zone = zone
        self._of_user = QuotaLimits(settings.turns_per_user, settings.tokens_per_user, settings.cost_per_user)
        self._of_chat = QuotaLimits(settings.turns_per_chat, settings.tokens_per_chat, settings.cost_per_chat)

    def check_size(self, text: str) -> str | None:
        """Return why a message is too long; None if it is not."""
        most = self._settings.message_characters
        return None if len(text) <= most else texts.too_long(len(text), most)

    async def begin(self, owner: Owner, source: SessionSource, now: float) -> str | None:
        """Count a turn; if a limit is reached, count nothing and return which one, and when it ends."""
        scopes = self._scopes(owner, source)
        if not scopes:
            return None
        denied = await self._quotas.begin(scopes, day_of(now, self._zone))
        if denied is None:
            return None
        whose = texts.Whose.USER if denied.scope == user_scope(owner, source) else texts.Whose.CHAT
        return texts.used_up(whose, denied.limit, denied.most, end_of_day(now, self._zone), now)

    async def book(self, owner: Owner, source: SessionSource, *, tokens: int, cost_usd: float, now: float) -> None:
        """Count what a turn has used."""
        scopes = self._scopes(owner, source)
        if scopes and (tokens > 0 or cost_usd > 0):
            day = day_of(now, self._zone)
            await self._quotas.add(list(scopes), day, tokens=max(0, tokens), cost_usd=max(0.0, cost_usd))

    async def today(self, owner: Owner, source: SessionSource, now: float) -> dict[str, str]:
        """Return what is used of each limit today, for people."""
        day = day_of(now, self._zone)
        facts: dict[str, str] = {}
        for scope, limits in self._scopes(owner, source).items():
            used = await self._quotas.read(scope, day)
            whose = texts.Whose.USER if scope == user_scope(owner, source) else texts.Whose.CHAT
            facts |= texts.used_today(whose, used, limits)
        return facts

    def _scopes(self, owner: Owner, source: SessionSource) -> Mapping[str, QuotaLimits]:
        """Return the limits that apply, by scope; without limits nothing is counted."""
        scopes = {user_scope(owner, source): self._of_user, chat_scope(source): self._of_chat}
        return {scope: limits for scope, limits in scopes.items() if limits != _NONE}


def user_scope(owner: Owner, source: SessionSource) -> str:
    """Return the scope of the user who sends a message, also if several users share the lane."""
    user = lane_owner(source, owner.stored or "", is_shared=False)
    return _scope(f"user:{user.stored or ''}")


def chat_scope(source: SessionSource) -> str:
    """Return the scope of the chat of a message."""
    return _scope(f"chat:{source.platform.value}:{source.chat_id}")


def day_of(now: float, zone: tzinfo | None) -> str:
    """Return the day of a moment, such as 2026-01-31."""
    return datetime.fromtimestamp(now, zone).date().isoformat()


def end_of_day(now: float, zone: tzinfo | None) -> datetime:
    """Return the first moment of the next day, with its time zone."""
    local = datetime.fromtimestamp(now, zone)
    midnight = datetime(local.year, local.month, local.day, tzinfo=zone) + timedelta(days=1)
    # Where clocks change at midnight, a day can start later.
    return datetime.fromtimestamp(midnight.timestamp(), zone) if zone else midnight.astimezone()


def _scope(name: str) -> str:
    """Return a name that the store takes, whatever ids a platform has."""
    if len(name) <= MAX_SCOPE_CHARACTERS and name.isprintable():
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    kind = name.partition(":")[0]
    return f"{kind}:sha256:{digest}"
