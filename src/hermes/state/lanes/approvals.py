"""Approvals: requests to run a tool that wait for a person's decision, also while no process runs."""

from __future__ import annotations

import secrets
from hashlib import sha256
from typing import Any, Literal, TypedDict, cast, get_args

from hermes.errors import InvalidValue
from hermes.state.engine import Dialect, Reading, Transaction, Values
from hermes.state.lanes.identity import MAX_PAYLOAD_BYTES, require_name, short_form, stored_name
from hermes.state.lanes.queue.queue_row import require_writable
from hermes.state.lanes.retention import require_age
from hermes.state.operations import Operations, insert_into, placeholders, row_limit, unknown_session
from hermes.state.rows import (
    decode_text,
    optional_identifier,
    optional_integer,
    optional_text,
    require_flag,
    require_identifier,
    require_integer,
    require_number,
)
from hermes.state.sessions.records import session_exists

ApprovalState = Literal["pending", "approved", "denied", "expired", "used", "void"]
ApprovalScope = Literal["once", "session", "always"]

ALPHABET = "34679ACDEFGHJKMNPQRTUVWXY"
"""Characters that people do not confuse with each other: no 0 and O, 1 and I and L, 2 and Z, 5 and S, 8 and B."""
ID_CHARACTERS = 6
ID_ATTEMPTS = 100

_ROW = (
    *("number", "id", "lane_id", "session_key", "session_id", "owner", "platform", "tool", "arguments", "directory"),
    *("subject", "summary", "detail", "risk", "digest", "state", "scope", "asked_at", "expires_at", "decided_at"),
    "decided_by",
)
_ADDED = (*(name for name in _ROW if name not in ("number", "scope", "decided_at", "decided_by")), "open_digest")
_TEXTS = (
    *("session_key", "session_id", "owner", "platform", "tool", "arguments", "directory", "subject", "summary"),
    *("detail", "risk", "decided_by"),
)
_DUE = "state = 'pending' AND expires_at <= :now"
_DECIDE = """UPDATE approvals SET state = :state, scope = :scope, decided_at = :now, decided_by = :by,
                 open_digest = NULL
             WHERE id = :id AND state = 'pending' AND expires_at > :now"""
_EXPIRE = "UPDATE approvals SET state = 'expired', decided_at = :now, open_digest = NULL WHERE number = :number"
_OLD = "decided_at IS NOT NULL AND decided_at <= :cutoff"


class ApprovalRow(TypedDict):
    """A request to run a tool."""

    number: int
    """Grows with every request; `after` of a list."""
    id: str
    session_key: str
    session_id: str
    owner: str | None
    platform: str | None
    tool: str
    arguments: str
    """JSON, exactly as the model sent it."""
    directory: str | None
    subject: str
    summary: str
    detail: str
    risk: str
    digest: str
    state: ApprovalState
    scope: ApprovalScope | None
    asked_at: float
    expires_at: float
    decided_at: float | None
    """When it was approved, denied or expired."""
    decided_by: str | None


def approval_digest(session_id: str, tool: str, arguments: str, directory: str | None = None) -> str:
    """Return the hash of what a person approves: this tool with these arguments, in this session and directory."""
    return sha256(ascii((session_id, tool, arguments, directory)).encode()).hexdigest()


class Approvals(Operations):
    """Operations on requests to run a tool."""

    def request(
        self,
        session_key: str,
        session_id: str,
        tool: str,
        arguments: str,
        *,
        ttl_seconds: float,
        directory: str | None = None,
        owner: str | None = None,
        platform: str | None = None,
        subject: str = "",
        summary: str = "",
        detail: str = "",
        risk: str = "",
    ) -> ApprovalRow:
        """Store a request and return it; while the same one (by its digest) is pending, return that one."""
        key = require_name(session_key, "session_key")
        ttl_s = require_number(ttl_seconds, "ttl_seconds")
        if ttl_s <= 0:
            raise InvalidValue(f"ttl_seconds must be more than 0, not {ttl_s:g}")
        texts = {"arguments": arguments, "subject": subject, "summary": summary, "detail": detail, "risk": risk}
        values: dict[str, Any] = {
            "lane_id": short_form(key),
            "session_key": stored_name(key),
            "session_id": require_identifier(session_id, "session_id"),
            "owner": optional_text(owner, "owner"),
            "platform": optional_identifier(platform, "platform"),
            "tool": require_name(tool, "tool"),
            "directory": optional_text(directory, "directory"),
            **{name: _require_text(text, name) for name, text in texts.items()},
            "state": "pending",
        }
        digest = values["digest"] = values["open_digest"] = approval_digest(session_id, tool, arguments, directory)

        def work(tx: Transaction) -> ApprovalRow:
            select = f"{_select(tx.dialect)} WHERE open_digest = :digest {tx.dialect.for_update}"
            found = tx.row(select, digest=digest)
            known = None if found is None else _approval_row(found)
            if known is not None and known["state"] == "pending":
                return known
            if known is not None:  # its time is over; `expire_due` still has to report it
                tx.run("UPDATE approvals SET open_digest = NULL WHERE number = :number", number=known["number"])
            if not session_exists(tx, session_id):
                raise unknown_session(session_id)
            now = _now(tx)
            # Without a row nothing is locked: if two callers insert the same request at once, the second one retries.
            added = {**values, "id": _new_id(tx), "asked_at": now, "expires_at": now + ttl_s}
            tx.run(insert_into("approvals", _ADDED), **added)
            row = tx.row(select, digest=digest)
            assert row is not None
            return _approval_row(row)

        return self._engine.write(work)

    def get(self, approval_id: str) -> ApprovalRow | None:
        """Return a request by its id, in upper or lower case; a pending one whose time is over reads as expired."""
        wanted = _require_id(approval_id)
        return self._engine.read(lambda tx: _find(tx, wanted))

    def pending(
        self, *, session_key: str | None = None, after: int | None = None, limit: int | None = 100
    ) -> list[ApprovalRow]:
        """Return the requests that a person can decide, oldest first, of all lanes or one; `after` is a `number`."""
        lane_id = None if session_key is None else short_form(require_name(session_key, "session_key"))
        start, most = optional_integer(after, "after") or 0, row_limit(limit)
        of_lane = "" if lane_id is None else "AND lane_id = :lane"

        def work(tx: Reading) -> list[ApprovalRow]:
            rows = tx.rows(
                f"""{_select(tx.dialect)} WHERE state = 'pending' AND expires_at > :now AND number > :after {of_lane}
                    ORDER BY number LIMIT :most""",
                now=_now(tx),
                after=start,
                lane=lane_id,
                most=most,
            )
            return [_approval_row(row) for row in rows]

        return self._engine.read(work)

    def decide(self, approval_id: str, approve: bool, by: str, scope: ApprovalScope = "once") -> ApprovalRow | None:
        """Approve or deny a pending request and return it; None if it is unknown, decided or expired."""
        wanted, decided_by = _require_id(approval_id), require_name(by, "by")
        state = "approved" if require_flag(approve, "approve") else "denied"
        if scope not in get_args(ApprovalScope):
            raise InvalidValue(f"scope must be one of {', '.join(get_args(ApprovalScope))}, not {scope!r}")

        def work(tx: Transaction) -> ApprovalRow | None:
            values = {"id": wanted, "state": state, "scope": scope, "by": decided_by}
            return _find(tx, wanted) if tx.run(_DECIDE, now=_now(tx), **values) else None

        return self._engine.write(work)

    def use(self, approval_id: str, digest: str) -> bool:
        """Return True for an approved request with this digest, once; with another digest it becomes void.

        After an error the caller does not know whether the approval was used, and has to take it for used.
        """
        wanted, seen = _require_id(approval_id), require_name(digest, "digest")
        change = "UPDATE approvals SET state = :state WHERE id = :id AND state = 'approved' AND digest {} :digest"

        def work(tx: Transaction) -> bool:
            if tx.run(change.format("="), id=wanted, digest=seen, state="used"):
                return True
            tx.run(change.format("<>"), id=wanted, digest=seen, state="void")
            return False

        return self._engine.write(work)

    def expire_due(self, *, limit: int = 100) -> list[ApprovalRow]:
        """End up to `limit` pending requests whose time is over, and return them; each is returned to one caller."""
        most = require_integer(limit, "limit")
        require_writable(self._engine)

        def work(tx: Transaction) -> list[ApprovalRow]:
            now = _now(tx)
            ending = f"ORDER BY expires_at LIMIT :most {tx.dialect.skip_locked}"
            rows = tx.rows(f"{_select(tx.dialect)} WHERE {_DUE} {ending}", now=now, most=most)
            found = [_approval_row(row) for row in rows]
            for row in found:
                tx.send(_EXPIRE, number=row["number"], now=now)
            return [{**row, "state": "expired", "decided_at": now} for row in found]

        # Most calls find nothing, and a read waits for no writer.
        return self._engine.write(work) if self._engine.read(_is_due) else []

    def sweep(self, older_than_s: float, *, limit: int = 500) -> int:
        """Remove up to `limit` requests that were decided or expired longer ago than this, and return how many."""
        age, most = require_age(older_than_s), require_integer(limit, "limit")
        require_writable(self._engine)
        sql = f"SELECT number FROM approvals WHERE {_OLD} ORDER BY decided_at LIMIT :most"
        old = self._engine.read(lambda tx: [row[0] for row in tx.rows(sql, cutoff=_now(tx) - age, most=most)])
        listed, values = placeholders("number", old)
        delete = f"DELETE FROM approvals WHERE number IN ({listed})"
        return self._engine.write(lambda tx: tx.run(delete, **values)) if old else 0


def _require_id(value: Any) -> str:
    """Return an id as it is stored."""
    return require_name(value, "approval_id").strip().upper()


def _require_text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue(f"{name} must be a string, not {type(value).__name__}")
    if len(value.encode("utf-8", "replace")) > MAX_PAYLOAD_BYTES:
        raise InvalidValue(f"{name} is longer than {MAX_PAYLOAD_BYTES:,} bytes")
    return value


def _new_id(tx: Reading) -> str:
    """Return an id that no stored request has; if another process takes it at once, the transaction is retried."""
    for _ in range(ID_ATTEMPTS):
        new = "".join(secrets.choice(ALPHABET) for _ in range(ID_CHARACTERS))
        if tx.row("SELECT 1 FROM approvals WHERE id = :id", id=new) is None:
            return new
    raise InvalidValue("there are too many approvals", hint="remove old ones with sweep")


def _find(tx: Reading, approval_id: str) -> ApprovalRow | None:
    row = tx.row(f"{_select(tx.dialect)} WHERE id = :id", id=approval_id)
    return None if row is None else _approval_row(row)


def _is_due(tx: Reading) -> bool:
    return tx.row(f"SELECT 1 FROM approvals WHERE {_DUE} LIMIT 1", now=_now(tx)) is not None


def _now(tx: Reading) -> float:
    return float(tx.value(f"SELECT {tx.dialect.now}"))


def _select(dialect: Dialect) -> str:
    return f"SELECT {', '.join(_ROW)}, {dialect.now} FROM approvals"


def _approval_row(values: Values) -> ApprovalRow:
    """Return a request from its columns and the time of the database."""
    *columns, now = values
    row: dict[str, Any] = dict(zip(_ROW, columns, strict=True))
    for name in _TEXTS:
        row[name] = decode_text(row[name])
    lane_id = row.pop("lane_id")
    row["session_key"] = lane_id if row["session_key"] is None else row["session_key"]
    if row["state"] == "pending" and row["expires_at"] <= now:
        row["state"] = "expired"
    return cast("ApprovalRow", row)
