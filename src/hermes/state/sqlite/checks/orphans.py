"""Orphans: messages without a session, and sessions without their parent."""

from __future__ import annotations

import shlex

from hermes.phrases import join_some, plural
from hermes.state.engine import OutOfTime
from hermes.state.maintenance import shared_checks
from hermes.state.maintenance.findings import CheckResult, note, ok, warning
from hermes.state.maintenance.shared_checks import LISTED
from hermes.state.sqlite.checks.file import fix_hint
from hermes.state.sqlite.checks.subject import DEEP_HINT, Subject
from hermes.state.sqlite.connection import View

LOOKING_S = 0.1

_NAMED_BY_MESSAGES = """
    WITH RECURSIVE named(id) AS (
        SELECT MAX(session_id) FROM messages
        UNION ALL
        SELECT (SELECT MAX(session_id) FROM messages WHERE session_id < named.id) FROM named WHERE named.id IS NOT NULL)
    SELECT named.id, EXISTS (SELECT 1 FROM sessions s WHERE s.id = named.id) FROM named WHERE named.id IS NOT NULL"""
"""Every session id in the messages, each found with one step along an index."""

_PARENT_MISSING = """
    SELECT s.id FROM sessions s WHERE s.parent_session_id >= ''
    AND NOT EXISTS (SELECT 1 FROM sessions p WHERE p.id = s.parent_session_id)"""
"""Written so that it walks the index of parents; `IS NOT NULL` would read every session."""

_DELEGATES_ALONE = """
    SELECT id FROM sessions WHERE listed = 0 AND child_kind = 'delegate' AND +parent_session_id IS NULL"""
"""The plus keeps SQLite from using the index of parents: most sessions have none."""


def messages(subject: Subject, view: View) -> CheckResult:
    """Whether every message belongs to a session."""
    missing: list[str] = []
    checked, is_complete = 0, True
    try:
        with subject.watch.limit(view, LOOKING_S):
            for session_id, is_there in view.connection.execute(_NAMED_BY_MESSAGES):
                checked += 1
                if not is_there:
                    missing.append(session_id)
    except OutOfTime:
        is_complete = False
    details = {"sessions_checked": checked, "missing_sessions": missing[:LISTED]}
    if missing:
        return warning(
            f"messages of sessions that do not exist: {join_some(missing)}", fix_hint(subject, view), **details
        )
    if not is_complete:
        return note(f"no orphan among the messages of {plural(checked, 'session')}", DEEP_HINT, **details)
    return ok("every message belongs to a session", **details)


def sessions(subject: Subject, view: View) -> CheckResult:
    """Whether the parent of every child session still exists."""
    try:
        with subject.watch.limit(view, LOOKING_S):
            cut_off = sorted(name for (name,) in view.rows(_PARENT_MISSING))
            delegates = sorted(name for (name,) in view.rows(_DELEGATES_ALONE))
    except OutOfTime:
        return note(f"looking for the parent of each session takes longer than {LOOKING_S:g} s", DEEP_HINT)
    details = {"cut_off": cut_off[:LISTED], "delegates": delegates[:LISTED]}
    if cut_off:
        return warning(
            f"sessions whose parent does not exist: {join_some(cut_off)}", fix_hint(subject, view), **details
        )
    if delegates:
        return note(
            f"delegate sessions whose parent session was deleted: {join_some(delegates)}",
            f"{shlex.join(['hermes', 'sessions', 'delete', *delegates[:LISTED]])}",
            **details,
        )
    return ok("every session has its parent", **details)


def pending(_: Subject, view: View) -> CheckResult:
    """How many imported sessions wait for their parent session."""
    return shared_checks.check_pending_links(view)
