"""Checks that every engine shares: compression locks, pending links, the spool."""

from __future__ import annotations

from hermes.phrases import join_some, plural
from hermes.state.engine import Reading
from hermes.state.maintenance.findings import CheckResult, Status, note, ok, warning
from hermes.state.messages.spool import Spool

LISTED = 20
"""How many ids a finding lists at most."""


def check_compression_locks(tx: Reading, now: float) -> CheckResult:
    """Report which sessions are being compressed."""
    rows = tx.rows("SELECT session_id, holder, expires_at FROM compression_locks ORDER BY session_id")
    held = [row for row in rows if row[2] >= now]
    expired = len(rows) - len(held)
    summary = f"{plural(len(held), 'session')} being compressed" if held else "no session is being compressed"
    return CheckResult(
        Status.NOTE if expired else Status.OK,
        f"{summary}; {plural(expired, 'lock')} expired" if expired else summary,
        "nothing to do: the next compression takes over the lock" if expired else "",
        {
            "held": [{"session_id": name, "holder": holder, "expires_at": until} for name, holder, until in held],
            "expired": expired,
        },
    )


def check_pending_links(tx: Reading) -> CheckResult:
    """Report how many imported sessions wait for their parent."""
    parents = [name for (name,) in tx.rows("SELECT DISTINCT parent_session_id FROM pending_links ORDER BY 1")]
    seen = {"parents": parents[:LISTED]}
    if parents:
        return note(
            f"imported sessions wait for their parents: {join_some(parents)}",
            "import those too; until then the sessions have no parent",
            **seen,
        )
    return ok("no imported session waits for its parent", **seen)


def check_spool(spool: Spool, cause: str) -> CheckResult:
    """Report how many messages wait in the spool because of a problem with `cause`."""
    count, unreadable = spool.count(), spool.unreadable_size
    seen = {"path": str(spool.path), "messages": count, "bytes": spool.size, "unreadable_bytes": unreadable}
    if count:
        return warning(
            f"{plural(count, 'message')} in {spool.path} could not be stored yet",
            f"fix the problem with {cause}; the next program that opens it for writing stores them, "
            "such as `hermes sessions optimize`",
            **seen,
        )
    if not spool.is_empty():
        return warning(f"{spool.path} cannot be read", "check its content: each line is a message, as JSON", **seen)
    if unreadable:
        return warning(
            f"unreadable lines of the spool are in {spool.unreadable}",
            "check its content, then remove it",
            **seen,
        )
    return ok("no messages wait to be stored", **seen)
