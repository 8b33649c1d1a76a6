"""Messages of a period by hour, source and role, counted by the database."""

from __future__ import annotations

from typing import NamedTuple

from hermes.state.engine import Reading
from hermes.state.usage.period import HOUR_S
from hermes.state.usage.period_sessions import IN_PERIOD, IS_PART, InsightsFilter

_MARGIN_S = 60
"""How much earlier than their session the messages of a short session may be: platforms have their own clocks."""

_BASE = 1 << 13
_ROLES = f"""CAST(TOTAL(CASE m.role WHEN 'assistant' THEN {1 + _BASE**2} WHEN 'user' THEN {1 + _BASE}
                                    WHEN 'tool' THEN {1 + _BASE**3} ELSE 1 END) AS INTEGER)"""
"""Four counts in one number, because one sum is faster than four: all messages, and those of user, model and tool.

A float holds them exactly, and unlike an integer it cannot overflow.
"""


_IS_COUNTED = "NOT EXISTS (SELECT 1 FROM messages f WHERE f.uid IS NULL)"
"""Whether all messages are counted by their sessions. Those that another program has just added have no uid yet."""


class MessageCell(NamedTuple):
    """The messages of one source in one local hour, numbered from 1970."""

    hour: int
    source: str
    messages: int
    user: int
    assistant: int
    tool: int


def count_messages(tx: Reading, where: InsightsFilter) -> list[MessageCell]:
    """Return the messages of a period by hour and source."""
    counts = (
        _in_short_sessions(where)
        if tx.dialect.counts_in_index
        else _one_by_one(where, "sessions s", where.itself_active)
    )
    return [
        MessageCell(int(hour), source, *map(int, some)) for hour, source, *some in tx.rows(counts, **where.values())
    ]


def _one_by_one(where: InsightsFilter, sessions: str, condition: str) -> str:
    """Return SQL that sorts all messages of some sessions by hour and source, and counts them."""
    # SQLite takes a CROSS JOIN in the order in which it is written: the sessions, then the messages of each.
    return f"""SELECT FLOOR({where.period.local_sql("m.timestamp")} / {HOUR_S}), s.source, COUNT(*),
                      SUM(CASE WHEN m.role = 'user' THEN 1 ELSE 0 END),
                      SUM(CASE WHEN m.role = 'assistant' THEN 1 ELSE 0 END),
                      SUM(CASE WHEN m.role = 'tool' THEN 1 ELSE 0 END)
               FROM {sessions} CROSS JOIN messages m
               WHERE m.session_id = s.id AND {condition} AND {IN_PERIOD} GROUP BY 1, 2"""


def _in_short_sessions(where: InsightsFilter) -> str:
    """Return SQL that sorts one row for each session of one hour, and only the messages of the others.

    SQLite groups by sorting, and most sessions are short. A session is of one hour if its start and its last activity
    are in that hour, and all its messages are between them.
    """
    hour = f"FLOOR({where.period.local_sql('s.last_active')} / {HOUR_S})"
    begin = f"(s.started_at - {_MARGIN_S})"
    first_hour = f"FLOOR({where.period.local_sql(begin)} / {HOUR_S})"
    is_short = f"""COALESCE(NOT {IS_PART} AND {begin} >= :since AND s.last_active < :until
                            AND s.message_count BETWEEN 1 AND {_BASE - 1} AND {first_hour} = {hour}
                            AND {_IS_COUNTED}, 0)"""
    others = "short CROSS JOIN sessions s"
    return f"""WITH short AS MATERIALIZED (
                   SELECT s.id, s.source, s.message_count, {hour} AS hour,
                          (SELECT {_ROLES} FROM messages m WHERE m.session_id = s.id AND m.timestamp >= {begin}
                                  AND m.timestamp <= s.last_active AND m.active = 1) AS roles
                   FROM sessions s WHERE {where.itself_active} AND {is_short})
               SELECT hour, source, SUM(message_count), SUM(roles / {_BASE} % {_BASE}),
                      SUM(roles / {_BASE**2} % {_BASE}), SUM(roles / {_BASE**3})
               FROM short WHERE roles % {_BASE} = message_count GROUP BY 1, 2
               UNION ALL {_one_by_one(where, others, f"s.id = short.id AND roles % {_BASE} <> short.message_count")}
               UNION ALL {_one_by_one(where, "sessions s", f"{where.itself_active} AND NOT {is_short}")}"""
