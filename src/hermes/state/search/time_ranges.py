"""Ranges of message ids with their oldest and newest times, which the indexer stores for each batch."""

from __future__ import annotations

from hermes.state.engine import Reading, TimeRange
from hermes.state.search.scope import Scope


def next_time_ranges(
    tx: Reading, scope: Scope, after: TimeRange | None, limit: int, *, newest_first: bool
) -> list[TimeRange]:
    """Return the next ranges that may hold messages of the scope's time, by their newest (or oldest) time."""
    column, order, sign = ("newest", "DESC", "<") if newest_first else ("oldest", "ASC", ">")
    conditions, values = ["1 = 1"], {"since": scope.since, "until": scope.until}
    if scope.since is not None:
        conditions.append("newest >= :since")
    if scope.until is not None:
        conditions.append("oldest <= :until")
    if after is not None:
        conditions.append(f"({column} {sign} :moment OR ({column} = :moment AND first_id {sign} :first))")
        values |= {"moment": after.newest if newest_first else after.oldest, "first": after.low}
    rows = tx.rows(
        f"""SELECT first_id, last_id, oldest, newest FROM message_times WHERE {" AND ".join(conditions)}
            ORDER BY {column} {order}, first_id {order} LIMIT :limit""",
        limit=limit,
        **values,
    )
    return [TimeRange(*row) for row in rows]
