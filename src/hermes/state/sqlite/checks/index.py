"""The search index: how far it is behind, and whether it has every message and nothing else."""

from __future__ import annotations

import apsw

from hermes.phrases import counted
from hermes.state.engine import OutOfTime
from hermes.state.maintenance.findings import CheckResult, error, note, ok, warning
from hermes.state.rows import MAX_INTEGER
from hermes.state.sqlite.checks.file import fix_hint
from hermes.state.sqlite.checks.subject import DEEP_HINT, DONE_ON_OPEN, Subject
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.search import index_state
from hermes.state.sqlite.store.open_file import BACKLOG

COMPARING_S = 0.1
SPANS, SPAN = 16, 512
"""A quick look is at so many stretches of so many ids, all over the store."""
LOWEST, HIGHEST = -MAX_INTEGER - 1, MAX_INTEGER


def progress(_: Subject, view: View) -> CheckResult:
    """How many messages wait to be indexed."""
    mark = index_state.indexed_upto(view)
    waiting = int(view.value("SELECT count(*) FROM messages WHERE id > :mark", mark=mark))
    changed = int(view.value("SELECT count(*) FROM stale_index WHERE message_id <= :mark", mark=mark))
    seen = {
        "indexed_upto": mark,
        "newest_id": _newest(view),
        "waiting": waiting,
        "changed": changed,
        "without_uid": int(view.value("SELECT count(*) FROM messages WHERE uid IS NULL")),
        "epoch": index_state.epoch(view),
    }
    if waiting + changed > BACKLOG:
        return note(
            f"{counted(waiting + changed, 'message')} wait to be indexed; searches read them meanwhile, slowly",
            "nothing to do by hand: a program that has it open for writing does it in the background",
            **seen,
        )
    if waiting + changed:
        return ok(f"up to date but for {counted(waiting + changed, 'message')}, which searches read themselves", **seen)
    return ok("up to date", **seen)


def parity(subject: Subject, view: View) -> CheckResult:
    """Whether every message is in both indexes, and nothing else is."""
    mark = index_state.indexed_upto(view)
    last = max(mark, _newest(view))
    is_all = subject.watch.is_deep or last <= SPANS * SPAN
    spans = [(LOWEST, HIGHEST)] if is_all else _spans(last)
    checked = last if is_all else SPANS * SPAN
    seen = {"ids": last, "ids_checked": checked}
    try:
        with subject.watch.limit(view, COMPARING_S):
            lacking = sum(_lacking(view, low, min(high, mark)) for low, high in spans)
            surplus = sum(_surplus(view, table, low, high, mark) for table in index_state.TABLES for low, high in spans)
    except OutOfTime:
        return note(
            f"{COMPARING_S:g} s were not enough to compare it with the messages", DEEP_HINT, ids=last, ids_checked=0
        )
    except apsw.SQLError as exc:
        return warning(
            f"the search index is not complete ({exc}); searches read the messages themselves", DONE_ON_OPEN, **seen
        )
    seen |= {"lacking": lacking, "surplus": surplus}
    if lacking:
        return error(
            f"{counted(lacking, 'message')} missing from the search index, and so not found",
            fix_hint(subject, view),
            **seen,
        )
    if surplus:
        return warning(f"{surplus} entries of the search index stand for no message", fix_hint(subject, view), **seen)
    if not is_all:
        return note(f"a sample of {checked} of {last} ids has an entry for each message", DEEP_HINT, **seen)
    return ok("has an entry for each message; `hermes sessions verify` reads what the entries say", **seen)


def _newest(view: View) -> int:
    return int(view.value("SELECT MAX(id) FROM messages") or 0)


def _spans(last: int) -> list[tuple[int, int]]:
    """Stretches of ids at equal distances, from below the oldest to above the newest."""
    step = (last - SPAN) / (SPANS - 1)
    starts = [int(number * step) for number in range(SPANS)]
    spans = [(start + 1, start + SPAN) for start in starts]
    return [(LOWEST, spans[0][1]), *spans[1:-1], (spans[-1][0], HIGHEST)]


def _lacking(view: View, low: int, high: int) -> int:
    """How many messages are not in one of the indexes in which they should be."""
    absent = " OR ".join(
        f"NOT EXISTS (SELECT 1 FROM {table}_docsize d WHERE d.id = m.id)" for table in index_state.TABLES
    )
    return int(
        view.value(
            f"""SELECT count(*) FROM messages m
                WHERE m.id BETWEEN :low AND :high AND ({absent}) AND m.uid IS NOT NULL
                  AND NOT EXISTS (SELECT 1 FROM stale_index t WHERE t.message_id = m.id)""",
            low=low,
            high=high,
        )
    )


def _surplus(view: View, table: str, low: int, high: int, mark: int) -> int:
    """How many entries of an index stand for no message, or for one that is not indexed yet."""
    return int(
        view.value(
            f"""SELECT count(*) FROM {table}_docsize d LEFT JOIN messages m ON m.id = d.id
                WHERE d.id BETWEEN :low AND :high AND (m.id IS NULL OR d.id > :mark)""",
            low=low,
            high=high,
            mark=mark,
        )
    )
