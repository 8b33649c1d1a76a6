"""The state of a gateway: what the database knows about all nodes, and what one process knows about itself."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hermes import __version__
from hermes.state.lanes.figures import LaneFigures, count_held, read_figures

if TYPE_CHECKING:
    from hermes.gateway.node.runner import GatewayRunner
    from hermes.gateway.upkeep.loop_lag import LoopLag
    from hermes.state.lanes.types import TurnRow
    from hermes.state.provider import SessionDBProvider

MOST_TURNS = 100


def database_figures(store: SessionDBProvider) -> dict[str, Any]:
    """Return what the database knows about lanes, messages, turns and leases of all nodes; this only reads."""
    figures = read_figures(store)
    turns = store.turns.running(limit=MOST_TURNS)
    return {
        "lanes": store.lanes.count(),
        "waiting": {
            "messages": figures.waiting_messages,
            "lanes": figures.waiting_lanes,
            "oldest_s": age_s(figures.oldest_waiting_at, figures.now),
        },
        "held": count_held(store),
        "running": figures.running_turns,
        "turns": [turn_figures(row, figures.now) for row in turns],
        "leases": _leases(figures),
        "dead": {"inbox": dict(figures.dead_inbox), "outbox": dict(figures.dead_outbox)},
        "undelivered": {
            "messages": figures.undelivered,
            "oldest_s": age_s(figures.oldest_undelivered_at, figures.now),
        },
    }


def turn_figures(row: TurnRow, now: float) -> dict[str, Any]:
    """Return what is known about a running turn."""
    note = row["note"] or {}
    return {
        "turn_id": row["turn_id"],
        "session_key": row["session_key"],
        "session_id": row["session_id"],
        "node": node_of(row["node"]),
        "holder": row["node"],
        "started_at": row["started_at"],
        "seconds": age_s(row["started_at"], now),
        "steps": row["progress"],
        "activity": note.get("activity") if isinstance(note.get("activity"), str) else None,
    }


def live_figures(runner: GatewayRunner, lag: LoopLag) -> dict[str, Any]:
    """Return what a process knows about itself."""
    parts, loop_lag = runner.parts, lag.figures()
    brain = runner.brain.figures()
    return {
        "node": runner.settings.node,
        "holder": runner.settings.holder,
        "pid": os.getpid(),
        "version": __version__,
        "started_at": runner.started_at,
        "uptime_s": age_s(runner.started_at, time.time()),
        "is_draining": parts.draining.is_set(),
        "turns": {
            "running": brain.running,
            "waiting_for_a_thread": brain.waiting,
            "abandoned": brain.abandoned,
            "most": runner.settings.max_turns,
        },
        "activities": {
            key: {"activity": info.activity, "seconds": round(info.seconds, 3)}
            for key, info in runner.running_turns().items()
        },
        "cache": asdict(brain.cache),
        "loop_lag": asdict(loop_lag),
        "counters": dict(sorted(parts.counters.items())),
        "deliveries": dict(sorted(runner.sender.counters.items())),
        "upkeep": dict(sorted(runner.expiry.figures.items())),
        "connectors": dict(runner.connectors.states),
        "limits": {
            **{name: value for name, value in asdict(runner.config.gateway.limits).items() if value is not None},
            "refused_turns": parts.counters.get("turns_refused", 0),
            "refused_messages": parts.counters.get("messages_refused", 0),
        },
    }


def node_of(holder: str) -> str:
    """Return the name of the node in the name of a lease's holder."""
    return holder.partition("/")[0]


def leases_by_node(leases: Mapping[str, int]) -> dict[str, int]:
    """Return how many lanes each node has, all its processes together."""
    nodes: dict[str, int] = {}
    for holder, lanes in leases.items():
        nodes[node_of(holder)] = nodes.get(node_of(holder), 0) + lanes
    return nodes


def age_s(moment: float | None, now: float) -> float | None:
    """Return how long ago a moment was, in seconds; None without a moment."""
    return None if moment is None else round(max(0.0, now - moment), 3)


def _leases(figures: LaneFigures) -> list[dict[str, Any]]:
    holders = sorted({*figures.leases, *figures.ended_leases})
    return [
        {
            "node": node_of(holder),
            "holder": holder,
            "lanes": figures.leases.get(holder, 0),
            "ended": figures.ended_leases.get(holder, 0),
        }
        for holder in holders
    ]
