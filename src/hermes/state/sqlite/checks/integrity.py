"""Integrity: whether the file can be read and is consistent."""

from __future__ import annotations

import apsw

from hermes.phrases import plural
from hermes.state.engine import OutOfTime
from hermes.state.maintenance.findings import CheckResult, error, note, ok, warning
from hermes.state.sqlite.checks import file
from hermes.state.sqlite.checks.subject import DEEP_HINT, Subject
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.files.names import LOG, beside, bytes_of
from hermes.state.sqlite.search import index_state

READING_S = 0.25
FIRST = ("sqlite_schema", "sessions", "messages")
"""The tables where damage is worst; they are checked first."""


def integrity(subject: Subject, view: View) -> CheckResult:
    """Whether SQLite finds damage: in the whole file, or table by table until the time is over."""
    is_deep, is_ours = subject.watch.is_deep, file.is_ours(subject, view)
    tables = _tables(view, with_index=is_ours)
    flaws = {"end": "the last page is not complete"} if _is_cut_off(subject, view) else {}
    done = 0
    try:
        with subject.watch.limit(view, READING_S):
            file_flaw = _first_flaw(view, "integrity_check") if is_deep and is_ours else None
            if file_flaw is not None or not (is_deep and is_ours):
                for table in tables:
                    if flaw := _flaw_of_table(view, "integrity_check" if is_deep else "quick_check", table):
                        flaws[table] = flaw
                    done += 1
            if file_flaw is not None and not flaws:
                flaws["pages"] = file_flaw
    except OutOfTime:
        if not flaws:
            return note(
                f"nothing wrong in {done} of {plural(len(tables), 'table')}; the rest takes over {READING_S:g} s",
                DEEP_HINT,
                tables=len(tables),
                tables_checked=done,
                flaws=flaws,
            )
    if flaws:
        return _report_damage(subject, view, flaws)
    return ok(
        f"nothing wrong in {plural(len(tables), 'table')}", tables=len(tables), tables_checked=len(tables), flaws=flaws
    )


def _is_cut_off(subject: Subject, view: View) -> bool:
    """Whether the file ends inside of a page, where SQLite reads zeros; a log would have the rest."""
    expected = int(view.value("PRAGMA page_count")) * int(view.value("PRAGMA page_size"))
    return bytes_of(subject.file) < expected and not bytes_of(beside(subject.file, LOG))


def _report_damage(subject: Subject, view: View, flaws: dict[str, str]) -> CheckResult:
    what, first = ", ".join(flaws), next(iter(flaws.values()))
    if all(table.startswith(index_state.TABLES) for table in flaws):
        return warning(
            f"the search index is damaged ({first}); every message is stored, but searches may miss some",
            file.fix_hint(subject, view),
            flaws=flaws,
        )
    return error(f"the file is damaged: {what} ({first})", file.salvage_hint(subject, view), flaws=flaws)


def _tables(view: View, *, with_index: bool) -> list[str]:
    """Every table; the full-text indexes come last, because they take longest.

    Those of other programs hold the text too, and SQLite reports them as damaged if the text contains a NUL.
    """
    found = {name for (name,) in view.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    found -= {*FIRST, *(() if with_index else index_state.TABLES)}
    return [
        *FIRST,
        *sorted(found, key=lambda name: (name.startswith(index_state.TABLES), name in index_state.TABLES, name)),
    ]


def _flaw_of_table(view: View, pragma: str, table: str) -> str | None:
    quoted = table.replace('"', '""')
    try:
        return _first_flaw(view, f'{pragma}("{quoted}")')
    except apsw.SQLError as exc:
        # An index that cannot even be opened is damaged; a virtual table that only another program can open is not.
        return str(exc) if table in index_state.TABLES else None


def _first_flaw(view: View, pragma: str) -> str | None:
    try:
        return next((str(row[0]) for row in view.rows(f"PRAGMA {pragma}") if row[0] != "ok"), None)
    except (apsw.CorruptError, apsw.NoMemError) as exc:
        return str(exc)
