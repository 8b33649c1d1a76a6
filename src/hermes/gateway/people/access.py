"""Who may use commands for administrators, and approve what agents ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes.errors import ConfigError

if TYPE_CHECKING:
    from hermes.config import Config
    from hermes.gateway.source import SessionSource

_WILDCARDS = ("*", "?", "all", "everybody", "anybody")

Person = tuple[str, str]
"""The name of a platform, and the id of a user there."""


class Access:
    """The people whom the operator has named, each by platform and user id; no other user has any right."""

    def __init__(self, admins: Sequence[str] = (), approvers: Sequence[str] = ()) -> None:
        self._admins = frozenset(parse_person(each, "gateway.admins") for each in admins)
        self._approvers = self._admins | {parse_person(each, "gateway.approvers") for each in approvers}

    @classmethod
    def of(cls, config: Config) -> Access:
        """Return the rights that the configuration gives; raise `ConfigError` for an entry that names no one user."""
        return cls(config.gateway.admins, config.gateway.approvers)

    def is_admin(self, source: SessionSource) -> bool:
        """Return whether the sender of a message is an administrator."""
        return not self._admins.isdisjoint(people_of(source))

    def may_approve(self, source: SessionSource) -> bool:
        """Return whether the sender of a message may approve requests, as administrators may too."""
        return not self._approvers.isdisjoint(people_of(source))

    def approver_name(self, source: SessionSource) -> str:
        """Return the name under which a decision of this sender is stored: the one that the operator has listed."""
        known = [each for each in people_of(source) if each in self._approvers]
        platform, user = known[0] if known else (source.platform.value, source.user_id or "")
        return f"{platform}:{user}"

    @property
    def approvers(self) -> frozenset[Person]:
        """All who may approve."""
        return self._approvers


def people_of(source: SessionSource) -> list[Person]:
    """Return the sender of a message by each of their ids."""
    platform = source.platform.value.casefold()
    return [(platform, each) for each in (source.user_id, source.user_id_alt) if each]


def parse_person(entry: str, key: str) -> Person:
    """Return the person of an entry such as `telegram:12345`; raise `ConfigError` if it names no one user."""
    platform, _, user = entry.partition(":")
    platform, user = platform.strip().casefold(), user.strip()
    if not platform or not user:
        raise ConfigError(f"{key}: {entry!r} is not a user", hint="write platform:user, for example telegram:12345")
    if "*" in platform or user.casefold() in _WILDCARDS or "*" in user:
        raise ConfigError(f"{key}: {entry!r} would be everybody", hint="list each user, for example telegram:12345")
    return platform, user
