"""Toolsets: which of them are on, by where a conversation takes place."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hermes.errors import ConfigError
from hermes.state.owner import is_terminal_source

ALL = "all"
DEFAULT = "default"

OF_TERMINAL: Sequence[str] = (ALL,)
OF_OTHERS: Sequence[str] = ("memory", "recall")
"""What anybody on a chat platform may have without the operator saying so: nothing that reaches the machine."""


def toolsets_for(source: str, configured: Mapping[str, Sequence[str]], known: Collection[str]) -> frozenset[str]:
    """The toolsets of a conversation: as `tools.<source>` says, else `tools.default`, else what is safe there."""
    if is_terminal_source(source):
        key, fallback = "cli", OF_TERMINAL
    else:
        key, fallback = source if source in configured else DEFAULT, OF_OTHERS
    names = {each for each in configured.get(key, fallback) if each}
    if key not in configured:
        names &= {ALL, *known}
    unknown = sorted(names - {ALL, *known})
    if unknown:
        raise ConfigError(
            f"tools.{key} has {', '.join(unknown)}, but there is no such toolset",
            hint=f"there are {', '.join(sorted(known))}, and {ALL}",
        )
    return frozenset(known) if ALL in names else frozenset(names)
