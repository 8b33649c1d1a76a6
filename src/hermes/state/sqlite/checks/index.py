"""The search index: how many messages it lacks, and whether it has exactly one entry for each message."""

from __future__ import annotations

import apsw

from hermes.phrases import plural
from hermes.state.engine import OutOfTime
from hermes.state.maintenance.findings import CheckResult, error, note, ok, warning
from hermes.state.rows import MAX_INTEGER
from hermes.state.sqlite.checks.file import fix_hint
from hermes.state.sqlite.checks.subject import DEEP_HINT, DONE_ON_OPEN, Subject
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.search import index_state
from hermes.state.sqlite.store.indexer import MANY

COMPARING_S = 0.1
SPANS, SPAN = 16, 512
"""A quick check compares this many ranges of this many ids, spread over the store."""
LOWEST, HIGHEST = -MAX_INTEGER - 1, MAX_INTEGER


def progress(_: Subject, view: View) -> CheckResult:
    """How many messages are not indexed yet."""
    mark = index_state.indexed_upto(view)
    waiting = int(view.value("SELECT count(*) FROM messages WHERE id > :mark", mark=mark))
    changed = int(view.value("SELECT count(*) FROM stale_index WHERE message_id <= :mark", mark=mark))
    details = {
        "indexed_upto": mark,
        "newest_id": _newest(view),
        "waiting": waiting,
        "changed": changed,
        "without_uid": int(view.value("SELECT count(*) FROM messages WHERE uid IS NULL")),
        "epoch": index_state.epoch(view),
    }
    if waiting + changed > MANY:
        return note(
            f"{plural(waiting + changed, 'message')} are not indexed yet; searches read them one by one, slowly",
            "nothing to do: a program that has it open for writing indexes them in the background",
            **details,
        )
    if waiting + changed:
        return ok(f"up to date but for {plural(waiting + changed, 'message')}; searches read those", **details)
    return ok("up to date", **details)


def parity(subject: Subject, view: View) -> CheckResult:
    """Whether both indexes have an entry for every message, and no other entries."""
    mark = index_state.indexed_upto(view)
    last = max(mark, _newest(view))
    is_all = subject.watch.is_deep or last <= SPANS * SPAN
    spans = [(LOWEST, HIGHEST)] if is_all else _spans(last)
    checked = last if is_all else SPANS * SPAN
    details = {"ids": last, "ids_checked": checked}
    try:
        with subject.watch.limit(view, COMPARING_S):
            lacking = sum(_count_missing(view, low, min(high, mark)) for low, high in spans)
            surplus = sum(_surplus(view, table, low, high, mark) for table in index_state.TABLES for low, high in spans)
    except OutOfTime:
        return note(
            f"comparing it with the messages takes longer than {COMPARING_S:g} s", DEEP_HINT, ids=last, ids_checked=0
        )
    except apsw.SQLError as exc:
        return warning(
            f"the search index is not complete ({exc}); searches read the messages directly", DONE_ON_OPEN, **details
        )
    details |= {"lacking": lacking, "surplus": surplus}
    if lacking:
        return error(
            f"{plural(lacking, 'message')} missing from the search index, so searches do not find them",
            fix_hint(subject, view),
            **details,
        )
    if surplus:
        return warning(f"{surplus} search index entries belong to no message", fix_hint(subject, view), **details)
    if not is_all:
        return note(f"a sample of {checked} of {last} ids has an entry for each message", DEEP_HINT, **details)
    return ok("has an entry for each message; `hermes sessions verify` compares their text", **details)


def _newest(view: View) -> int:
    return int(view.value("SELECT MAX(id) FROM messages") or 0)


def _spans(last: int) -> list[tuple[int, int]]:
    """Ranges of ids at equal distances, from below the oldest to above the newest."""
    step = (last - SPAN) / (SPANS - 1)
    starts = [int(number * step) for number in range(SPANS)]
    spans = [(start + 1, start + SPAN) for start in starts]
    return [(LOWEST, spans[0][1]), *spans[1:-1], (spans[-1][0], HIGHEST)]


def _count_missing(view: View, low: int, high: int) -> int:
    """How many messages are missing from an index that should have them."""
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
    """How many entries of an index belong to no message, or to one that is not indexed yet."""
    return int(
        view.value(
            f"""SELECT count(*) FROM {table}_docsize d LEFT JOIN messages m ON m.id = d.id
                WHERE d.id BETWEEN :low AND :high AND (m.id IS NULL OR d.id > :mark)""",
            low=low,
            high=high,
            mark=mark,
        )
    )
