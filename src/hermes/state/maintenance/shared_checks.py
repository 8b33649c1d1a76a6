"""Looks at what every engine keeps in the same way: who has a right, what waits, and for what."""

from __future__ import annotations

from hermes.phrases import counted, some
from hermes.state.engine import Reading
from hermes.state.maintenance.findings import CheckResult, Status, note, ok, warning
from hermes.state.messages.spool import Spool

LISTED = 20
"""More ids than this help nobody."""


def check_compression_locks(tx: Reading, now: float) -> CheckResult:
    """Which sessions are being compressed."""
    rows = tx.rows("SELECT session_id, holder, expires_at FROM compression_locks ORDER BY session_id")
    held = [row for row in rows if row[2] >= now]
    expired = len(rows) - len(held)
    said = f"{counted(len(held), 'session')} being compressed" if held else "no session is being compressed"
    return CheckResult(
        Status.NOTE if expired else Status.OK,
        f"{said}; {counted(expired, 'right')} to compress ran out" if expired else said,
        "nothing to do by hand: whoever wants to compress takes it over" if expired else "",
        {
            "held": [{"session_id": name, "holder": holder, "expires_at": until} for name, holder, until in held],
            "expired": expired,
        },
    )


def check_pending_links(tx: Reading) -> CheckResult:
    """How many imported sessions wait for their parent."""
    parents = [name for (name,) in tx.rows("SELECT DISTINCT parent_session_id FROM pending_links ORDER BY 1")]
    seen = {"parents": parents[:LISTED]}
    if parents:
        return note(
            f"imported sessions wait for their parents: {some(parents)}",
            "import those too; until then the sessions stand for themselves",
            **seen,
        )
    return ok("no imported session waits for its parent", **seen)


def check_spool(spool: Spool, cause: str) -> CheckResult:
    """How many messages wait to be stored, because of something wrong with what is named."""
    count, aside = spool.count(), spool.unreadable_size
    seen = {"path": str(spool.path), "messages": count, "bytes": spool.size, "unreadable_bytes": aside}
    if count:
        return warning(
            f"{counted(count, 'message')} in {spool.path} could not be stored yet",
            f"put right what is wrong with {cause}; the next program that opens it for writing stores them, "
            "such as `hermes sessions optimize`",
            **seen,
        )
    if not spool.is_empty():
        return warning(f"{spool.path} cannot be read", "look into it: each line is a message, as JSON", **seen)
    if aside:
        return warning(
            f"lines of messages that could not be read are in {spool.unreadable}",
            "look into it, then remove it",
            **seen,
        )
    return ok("no message waits to be stored", **seen)
