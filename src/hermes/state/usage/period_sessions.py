"""Which sessions and messages belong to a period, as SQL."""

from __future__ import annotations

from typing import Any, NamedTuple

from hermes.state.sessions.records import activity_tick
from hermes.state.usage.period import Period

_FROM = """CASE WHEN COALESCE(s.child_kind, '') IN ('compression', 'branch') AND s.started_at > :since
                THEN s.started_at ELSE :since END"""
"""When the messages of a session start to count: compressions and branches start with copies of older ones."""

IS_PART = "(s.started_at < :since OR COALESCE(s.child_kind, '') IN ('compression', 'branch'))"
"""Whether only some of a session's messages count, so that its own counters are too high."""

IN_PERIOD = f"m.timestamp >= {_FROM} AND m.timestamp < :until AND m.active = 1"
"""Whether a message `m` of a session `s` counts."""


class InsightsFilter(NamedTuple):
    """The sessions and the period to read."""

    period: Period
    source: str | None = None
    owner: str | None = None

    @property
    def filter(self) -> str:
        """SQL conditions on a session `s`, without the period."""
        wanted = [f"AND s.{name} = :{name}" for name in ("source", "owner") if getattr(self, name) is not None]
        return " ".join(wanted)

    @property
    def active(self) -> str:
        """SQL conditions that a session `s` or a continuation was active in the period; they use the list index."""
        return f"""s.listed IN (0, 1) AND s.archived IN (0, 1) AND s.active_tick >= :tick AND s.chain_active >= :since
                   {self.filter}"""

    @property
    def itself_active(self) -> str:
        """SQL conditions that a session `s` itself was active."""
        return f"{self.active} AND s.last_active >= :since"

    def values(self) -> dict[str, Any]:
        """Return the values of these conditions."""
        return {
            **self.period.values(),
            "tick": activity_tick(self.period.since),
            "source": self.source,
            "owner": self.owner,
        }
