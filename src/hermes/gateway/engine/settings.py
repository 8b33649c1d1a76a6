"""The settings of the engine."""

from __future__ import annotations

import re
import secrets
import socket
from dataclasses import dataclass
from typing import Literal

from hermes.config import Config

BusyMode = Literal["interrupt", "queue", "steer", "collect"]

STOPS_MORE = 20
"""So many more commands such as /stop may wait than other commands."""
_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_NODE_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """How a node works."""

    node: str
    """The name of this gateway."""
    holder: str
    """The name with a suffix that is new for every process: leases of an earlier process are not its own."""
    lease_s: float = 30.0
    max_turns: int = 50
    mode: BusyMode = "interrupt"
    acknowledges: bool = True
    idle_timeout_s: float = 1800.0
    """How long a turn may do nothing; 0: as long as it likes."""
    total_timeout_s: float = 0.0
    notify_s: float = 180.0
    """After how long a chat learns that its turn still runs; 0: never."""
    freshness_s: float = 3600.0
    drain_timeout_s: float = 180.0
    reply_ttl_s: float = 86_400.0
    stop_grace_s: float = 10.0
    """How long a stopped turn may take to end before its thread is abandoned."""
    ack_interval_s: float = 30.0
    max_waiting: int = 100
    album_s: float = 0.8
    """How long photos and files wait for more of the same album before their turn starts."""

    @property
    def most_read(self) -> int:
        """How many waiting messages of a lane are looked at: all that can wait, so that a late /stop is seen."""
        return max(200, self.most_waiting("command", is_stop=True))

    def most_waiting(self, kind: str, is_stop: bool) -> int:
        """Return how many messages may wait in a lane before one of a kind is refused.

        Commands get in while the queue of messages is full, and those that stop a turn while the commands are too many.
        """
        if kind != "command":
            return self.max_waiting
        return 2 * self.max_waiting + (STOPS_MORE if is_stop else 0)


def engine_settings(config: Config, node: str | None = None) -> EngineSettings:
    """Return the settings of a node; its name is the given one, the configured one, or that of the machine."""
    name = node_name(node or config.gateway.node or socket.gethostname())
    return EngineSettings(
        node=name,
        holder=f"{name}/{secrets.token_hex(4)}",
        lease_s=config.gateway.lease_seconds,
        max_turns=min(config.gateway.max_turns, config.max_concurrent_sessions or config.gateway.max_turns),
        mode=config.display.busy_input_mode,
        acknowledges=config.display.busy_ack_enabled,
        idle_timeout_s=config.agent.gateway_timeout,
        total_timeout_s=config.agent.gateway_max_seconds,
        notify_s=config.agent.gateway_notify_interval,
        freshness_s=config.agent.gateway_auto_continue_freshness,
        drain_timeout_s=config.agent.restart_drain_timeout,
        reply_ttl_s=config.gateway.reply_ttl_hours * 3600,
        max_waiting=config.gateway.limits.waiting_messages,
    )


def node_name(text: str) -> str:
    """Return a name for a node: letters, digits, dots, dashes and underscores."""
    return _UNUSUAL.sub("-", text.strip())[:_MAX_NODE_CHARACTERS].strip("-") or "gateway"
