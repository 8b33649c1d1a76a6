"""Token counts and costs: counters per session, and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.state.engine import Reading, Transaction, Values
from hermes.state.operations import (
    Operations,
    has_session,
    owner_condition,
    row_limit,
    session_owner_condition,
    unknown_session,
)
from hermes.state.owner import Owner, OwnerName
from hermes.state.rows import Row, decode_text, optional_amount, optional_cost, optional_text, session_row
from hermes.state.sessions.records import insert_session, new_session

if TYPE_CHECKING:
    from hermes.state.row_types import ModelUsage, TopSession, UsageEvent

COUNTERS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "api_call_count",
)
COSTS = ("estimated_cost_usd", "actual_cost_usd")
LATEST_WINS = ("cost_status", "cost_source", "pricing_version")
FIRST_WINS = ("billing_provider", "billing_base_url", "billing_mode", "model")


class Usage(Operations):
    """Operations on token counts and costs."""

    def update_token_counts(
        self,
        session_id: str,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        model: str | None = None,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        reasoning_tokens: int | None = None,
        estimated_cost_usd: float | None = None,
        actual_cost_usd: float | None = None,
        cost_status: str | None = None,
        cost_source: str | None = None,
        pricing_version: str | None = None,
        billing_provider: str | None = None,
        billing_base_url: str | None = None,
        billing_mode: str | None = None,
        api_call_count: int | None = None,
        absolute: bool = False,
    ) -> None:
        """Add to a session's counters, or with `absolute` set the given ones; create an unknown session."""
        given: Row = {
            "input_tokens": optional_amount(input_tokens, "input_tokens"),
            "output_tokens": optional_amount(output_tokens, "output_tokens"),
            "cache_read_tokens": optional_amount(cache_read_tokens, "cache_read_tokens"),
            "cache_write_tokens": optional_amount(cache_write_tokens, "cache_write_tokens"),
            "reasoning_tokens": optional_amount(reasoning_tokens, "reasoning_tokens"),
            "api_call_count": optional_amount(api_call_count, "api_call_count"),
            "estimated_cost_usd": optional_cost(estimated_cost_usd, "estimated_cost_usd"),
            "actual_cost_usd": optional_cost(actual_cost_usd, "actual_cost_usd"),
        }
        notes: Row = {
            "cost_status": cost_status,
            "cost_source": cost_source,
            "pricing_version": pricing_version,
            "billing_provider": billing_provider,
            "billing_base_url": billing_base_url,
            "billing_mode": billing_mode,
            "model": model,
        }
        for name, value in notes.items():
            optional_text(value, name)
        fresh = new_session(session_id, "unknown", self._clock(), model=model)

        def update(tx: Transaction) -> None:
            if not has_session(tx, session_id, self._asker):
                if isinstance(self._asker, Owner):
                    raise unknown_session(session_id)
                insert_session(tx, fresh, self._asker)
            session = _counters(tx, session_id)
            totals = _totals(session, given, absolute=absolute)
            _insert_event(tx, session, totals, notes, absolute=absolute, now=fresh["started_at"])
            _store(tx, session, totals, notes)

        self._engine.write(update)

    def usage_by_model(self, *, owner: OwnerName = None) -> list[ModelUsage]:
        """Return sessions, tokens and cost per model, the most expensive first."""
        asker = self._asker_for(owner)
        return self._report(
            f"""SELECT model, COUNT(*) AS session_count, SUM(input_tokens) AS total_input,
                       SUM(output_tokens) AS total_output, SUM(estimated_cost_usd) AS total_cost
                FROM sessions WHERE model IS NOT NULL {owner_condition(asker)}
                GROUP BY model ORDER BY COALESCE(SUM(estimated_cost_usd), 0) DESC, model""",
            whose=asker.stored,
        )

    def top_sessions(self, limit: int | None = 10, *, owner: OwnerName = None) -> list[TopSession]:
        """Return the sessions that used the most tokens."""
        asker = self._asker_for(owner)
        return self._report(
            f"""SELECT id, title, model, input_tokens + output_tokens AS total_tokens, estimated_cost_usd
                FROM sessions WHERE 1 = 1 {owner_condition(asker)}
                ORDER BY input_tokens + output_tokens DESC, id LIMIT :limit""",
            limit=row_limit(limit),
            whose=asker.stored,
        )

    def get_session_tools(self, session_id: str, owner: OwnerName = None) -> dict[str, int]:
        """Return how often a session called each tool, the most used first."""
        asker = self._asker_for(owner)

        def tools(tx: Reading) -> list[Values]:
            return tx.rows(
                f"""SELECT tool_name, calls FROM session_tools WHERE session_id = :id {session_owner_condition(asker)}
                    ORDER BY calls DESC, tool_name""",
                id=session_id,
                whose=asker.stored,
            )

        return {decode_text(name): calls for name, calls in self._engine.read(tools)}

    def list_usage_events(self, session_id: str, owner: OwnerName = None) -> list[UsageEvent]:
        """Return all usage events of a session, oldest first."""
        asker = self._asker_for(owner)
        return self._report(
            f"SELECT * FROM usage_events WHERE session_id = :id {session_owner_condition(asker)} ORDER BY id",
            id=session_id,
            whose=asker.stored,
        )

    def _report(self, sql: str, **values: Any) -> list[Any]:
        columns, rows = self._engine.read(lambda tx: tx.table(sql, **values))
        return [session_row(columns, row) for row in rows]


def _counters(tx: Transaction, session_id: str) -> Row:
    columns = ("id", *COUNTERS, *COSTS, *FIRST_WINS)
    row = tx.row(f"SELECT {', '.join(columns)} FROM sessions WHERE id = :id {tx.dialect.for_update}", id=session_id)
    assert row is not None
    return session_row(columns, row)


def _totals(session: Row, given: Row, *, absolute: bool) -> Row:
    """Return the new values of the counters that were given."""
    return {
        name: value if absolute else (session[name] or 0) + value for name, value in given.items() if value is not None
    }


def _insert_event(tx: Transaction, session: Row, totals: Row, notes: Row, *, absolute: bool, now: float) -> None:
    """Store the change as an event, unless nothing changes."""
    changes = {name: total - (session[name] or 0) for name, total in totals.items()}
    if not any(changes.values()):
        return
    columns = ["session_id", "at", "kind", "model", "billing_provider", *COUNTERS, *COSTS]
    tx.run(
        f"INSERT INTO usage_events ({', '.join(columns)}) VALUES ({', '.join(f':{column}' for column in columns)})",
        session_id=session["id"],
        at=now,
        kind="absolute" if absolute else "delta",
        model=notes["model"] or session["model"],
        billing_provider=notes["billing_provider"] or session["billing_provider"],
        **{name: changes.get(name, 0) for name in COUNTERS},
        **{name: changes.get(name) for name in COSTS},
    )


def _store(tx: Transaction, session: Row, totals: Row, notes: Row) -> None:
    values = dict(totals)
    values |= {name: notes[name] for name in LATEST_WINS if notes[name] is not None}
    values |= {name: notes[name] for name in FIRST_WINS if session[name] is None and notes[name] is not None}
    if values:
        assignments = ", ".join(f"{name} = :{name}" for name in values)
        tx.run(f"UPDATE sessions SET {assignments} WHERE id = :id", id=session["id"], **values)
