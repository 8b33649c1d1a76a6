"""Quotas: how many turns and tokens, and which cost, a scope may use on a day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from hermes.errors import InvalidValue
from hermes.state.engine import Reading, Transaction
from hermes.state.lanes.identity import require_name, short_form
from hermes.state.lanes.queue.queue_row import require_writable
from hermes.state.operations import Operations, insert_into, placeholders
from hermes.state.rows import optional_amount, optional_cost

MAX_SCOPE_CHARACTERS = 512
MAX_SCOPES = 100
SLICE = 500

QuotaLimit = Literal["turns", "tokens", "cost_usd"]

_KEY = ("id", "scope", "day")


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """The most that a scope may use on a day; None: no limit."""

    turns: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """What a scope has used on a day."""

    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class QuotaDenied:
    """The first limit that a turn would exceed: its scope, its name and value, and what is used already."""

    scope: str
    limit: QuotaLimit
    most: float
    used: float


class Quotas(Operations):
    """Operations on quotas."""

    def begin(self, scopes: Mapping[str, QuotaLimits], day: str) -> QuotaDenied | None:
        """Count a turn in every scope and return None; if a scope has reached a limit, count nothing and return it.

        Tokens and costs are known only at the end of a turn, so it may begin as long as they are below their limits.
        """
        if not isinstance(scopes, Mapping):
            raise InvalidValue(f"scopes must be a dict, not {type(scopes).__name__}")
        rows = _rows(scopes, day)
        limits = {scope: _require_limits(each) for scope, each in scopes.items()}

        def work(tx: Transaction) -> QuotaDenied | None:
            used = _lock(tx, list(rows))
            for row_id, row in rows.items():
                denied = _exceeded(row["scope"], limits[row["scope"]], used.get(row_id, QuotaUsage()))
                if denied is not None:
                    return denied
            for row_id in sorted(rows):
                # Without a row nothing is locked: if two callers insert at once, the second one retries.
                if row_id in used:
                    tx.send("UPDATE usage_days SET turns = turns + 1 WHERE id = :id", id=row_id)
                else:
                    tx.run(insert_into("usage_days", (*_KEY, "turns")), **rows[row_id], turns=1)
            return None

        return self._engine.write(work)

    def add(self, scopes: Iterable[str], day: str, *, tokens: int = 0, cost_usd: float = 0.0) -> None:
        """Count the tokens and the cost of a turn in every scope."""
        if isinstance(scopes, str) or not isinstance(scopes, Iterable):
            raise InvalidValue(f"scopes must be a list of names, not {type(scopes).__name__}")
        rows = _rows(scopes, day)
        amounts = {
            "tokens": optional_amount(tokens, "tokens") or 0,
            "cost_usd": optional_cost(cost_usd, "cost_usd") or 0.0,
        }

        def work(tx: Transaction) -> None:
            sql = tx.dialect.upsert("usage_days", ("id",), ("scope", "day"), add=tuple(amounts))
            for row_id in sorted(rows):  # in one order, so that two callers never wait for each other
                tx.send(sql, **rows[row_id], **amounts)

        self._engine.write(work)

    def read(self, scope: str, day: str) -> QuotaUsage:
        """Return what a scope has used on a day."""
        (row_id,) = _rows([scope], day)
        sql = "SELECT turns, tokens, cost_usd FROM usage_days WHERE id = :id"
        row = self._engine.read(lambda tx: tx.row(sql, id=row_id))
        return QuotaUsage() if row is None else _usage(*row)

    def sweep(self, before_day: str) -> int:
        """Remove what was used before a day, in slices, and return how many rows that were."""
        values = {"before": _require_day(before_day), "most": SLICE}
        require_writable(self._engine)
        total = 0

        def find(tx: Reading) -> list[str]:
            # An id begins with its day.
            return [
                row[0]
                for row in tx.rows("SELECT id FROM usage_days WHERE id < :before ORDER BY id LIMIT :most", **values)
            ]

        def delete(tx: Transaction) -> int:
            _, listed = placeholders("id", found)
            return tx.run(tx.dialect.delete_where_in("usage_days", "id", listed), **listed)

        while found := self._engine.read(find):
            total += self._engine.write(delete)
        return total


def _rows(scopes: Iterable[str], day: str) -> dict[str, dict[str, str]]:
    """Return the key columns of the rows of some scopes on a day, by id, in the order of the scopes."""
    name = _require_day(day)
    rows: dict[str, dict[str, str]] = {}
    for scope in scopes:
        if len(require_name(scope, "scope")) > MAX_SCOPE_CHARACTERS:
            raise InvalidValue(f"a scope has at most {MAX_SCOPE_CHARACTERS} characters, not {len(scope)}")
        row_id = f"{name} {short_form(scope)}"
        rows[row_id] = {"id": row_id, "scope": scope, "day": name}
    if len(rows) > MAX_SCOPES:
        raise InvalidValue(f"one call names at most {MAX_SCOPES} scopes, not {len(rows)}")
    return rows


def _require_day(value: Any) -> str:
    """Return `value` if it is a day such as 2026-01-31."""
    try:
        if isinstance(value, str) and date.fromisoformat(value).isoformat() == value:
            return value
    except ValueError:
        pass
    raise InvalidValue(f"a day has the form 2026-01-31, not {value!r}")


def _require_limits(value: Any) -> QuotaLimits:
    """Return `value` if it is limits that are not negative."""
    if not isinstance(value, QuotaLimits):
        raise InvalidValue(f"limits must be QuotaLimits, not {type(value).__name__}")
    optional_amount(value.turns, "turns")
    optional_amount(value.tokens, "tokens")
    optional_cost(value.cost_usd, "cost_usd")
    return value


def _lock(tx: Transaction, ids: list[str]) -> dict[str, QuotaUsage]:
    """Lock the rows that exist, in the order of their ids, and return what they count."""
    if not ids:
        return {}
    _, values = placeholders("id", ids)
    listed = tx.dialect.from_where_in("usage_days", "id", values)
    rows = tx.rows(f"SELECT id, turns, tokens, cost_usd {listed} ORDER BY id {tx.dialect.for_update}", **values)
    return {row[0]: _usage(*row[1:]) for row in rows}


def _usage(turns: Any, tokens: Any, cost_usd: Any) -> QuotaUsage:
    return QuotaUsage(int(turns), int(tokens), float(cost_usd))


def _exceeded(scope: str, limits: QuotaLimits, used: QuotaUsage) -> QuotaDenied | None:
    """Return the first limit that is reached."""
    if limits.turns is not None and used.turns >= limits.turns:
        return QuotaDenied(scope, "turns", limits.turns, used.turns)
    if limits.tokens is not None and used.tokens >= limits.tokens:
        return QuotaDenied(scope, "tokens", limits.tokens, used.tokens)
    if limits.cost_usd is not None and used.cost_usd >= limits.cost_usd:
        return QuotaDenied(scope, "cost_usd", limits.cost_usd, used.cost_usd)
    return None
