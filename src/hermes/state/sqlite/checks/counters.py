"""Counters: whether a session's counters agree with its messages and its usage events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from math import isclose

from hermes.phrases import plural
from hermes.state.engine import OutOfTime, Values
from hermes.state.maintenance.findings import CheckResult, note, ok, warning
from hermes.state.rows import decode_content, decode_text, make_preview
from hermes.state.sqlite.checks.file import fix_hint
from hermes.state.sqlite.checks.subject import DEEP_HINT, DONE_ON_OPEN, Subject
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.invalid_utf8 import decode_value
from hermes.state.usage.counters import COSTS, COUNTERS

COUNTING_S = 0.1

_SETTLED = """s.id NOT IN (SELECT session_id FROM stale_sessions)
              AND s.id NOT IN (SELECT session_id FROM messages WHERE uid IS NULL)"""
"""The next open counts sessions that another program changed anyway."""

_COUNTED = f"""
    SELECT s.message_count, count(m.id) FILTER (WHERE m.active = 1),
           s.last_active, COALESCE(MAX(m.timestamp), s.started_at),
           CAST(s.preview AS BLOB),
           (SELECT CAST(u.content AS BLOB) FROM messages u
            WHERE u.session_id = s.id AND u.role = 'user' AND u.content IS NOT NULL AND u.active = 1
            ORDER BY u.id LIMIT 1)
    FROM sessions s LEFT JOIN messages m ON m.session_id = s.id
    WHERE {_SETTLED} GROUP BY s.rowid ORDER BY s.rowid DESC"""

_BOOKED_NAMES = (*COUNTERS, *COSTS)
_BOOKED = f"""
    SELECT {", ".join(f"COALESCE(s.{name}, 0), COALESCE(SUM(e.{name}), 0)" for name in _BOOKED_NAMES)}
    FROM sessions s LEFT JOIN usage_events e ON e.session_id = s.id
    WHERE {_SETTLED} GROUP BY s.rowid ORDER BY s.rowid DESC"""


def changed_elsewhere(_: Subject, view: View) -> CheckResult:
    """How many sessions another program has changed and must be counted again."""
    waiting = int(
        view.value(
            """SELECT count(*) FROM (SELECT session_id FROM stale_sessions
                                     UNION SELECT session_id FROM messages WHERE uid IS NULL)"""
        )
    )
    if waiting:
        return note(
            f"another program has changed {plural(waiting, 'session')}: the counters are out of date",
            DONE_ON_OPEN,
            sessions=waiting,
        )
    return ok("no other program has changed a session", sessions=0)


def messages(subject: Subject, view: View) -> CheckResult:
    """Whether the message count, the last activity and the preview agree with the messages."""
    return _compare(subject, view, _COUNTED, _message_drift, "the counts and previews", fix_hint(subject, view))


def usage(subject: Subject, view: View) -> CheckResult:
    """Whether tokens and costs are the sums of the usage events."""
    return _compare(subject, view, _BOOKED, _usage_drift, "the tokens and costs", subject.recount_command)


def _compare(
    subject: Subject, view: View, sql: str, drift: Callable[[Values], Iterator[str]], what: str, remedy: str
) -> CheckResult:
    """Compare the sessions, the newest first, until the time is over."""
    total = int(view.value("SELECT count(*) FROM sessions"))
    checked, drifted = 0, 0
    wrong: Counter[str] = Counter()
    try:
        with subject.watch.limit(view, COUNTING_S):
            for row in view.connection.execute(sql):
                found = list(drift(row))
                wrong.update(found)
                drifted += bool(found)
                checked += 1
    except OutOfTime:
        is_complete = False
    else:
        is_complete = True
    details = {"sessions": total, "sessions_checked": checked, "drifted": drifted, "wrong": dict(wrong)}
    if drifted:
        names = ", ".join(f"{name} ({count})" for name, count in wrong.most_common())
        return warning(f"{what} of {plural(drifted, 'session')} are wrong: {names}", remedy, **details)
    if not is_complete:
        return note(f"{what} are correct for the {checked} newest of {plural(total, 'session')}", DEEP_HINT, **details)
    return ok(f"{what} of {plural(total, 'session')} are correct", **details)


def _message_drift(row: Values) -> Iterator[str]:
    noted_count, count, noted_active, active, noted_preview, first = row
    if noted_count != count:
        yield "message_count"
    if noted_active != active:
        yield "last_active"
    if _preview(noted_preview, decode_text) != _preview(first, lambda content: make_preview(decode_content(content))):
        yield "preview"


def _preview(stored: bytes | None, read: Callable[[str], object]) -> object:
    return None if stored is None else read(decode_value("text", stored))


def _usage_drift(row: Values) -> Iterator[str]:
    for name, noted, booked in zip(_BOOKED_NAMES, row[::2], row[1::2], strict=True):
        # Costs are sums of fractions, which differ slightly when they are added in another order.
        if not isclose(noted, booked, rel_tol=1e-6, abs_tol=1e-9):
            yield name
