"""Chooses the enabled toolsets by the source of a conversation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hermes.errors import ConfigError
from hermes.state.owner import is_terminal_source

ALL = "all"
DEFAULT = "default"

OF_TERMINAL: Sequence[str] = (ALL,)
OF_OTHERS: Sequence[str] = ("memory", "recall")
"""The default on chat platforms: nothing that reaches the machine."""
NEED_DIRECTORY = frozenset(("files", "terminal"))
"""The toolsets that a chat has only with a directory of its own."""


def toolsets_for(source: str, configured: Mapping[str, Sequence[str]], known: Collection[str]) -> frozenset[str]:
    """Return the toolsets of a conversation: those of `tools.<source>`, else of `tools.default`, else the safe ones."""
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
            f"tools.{key} has an unknown toolset: {', '.join(unknown)}",
            hint=f"choose from {', '.join(sorted(known))} and {ALL}",
        )
    return frozenset(known) if ALL in names else frozenset(names)
