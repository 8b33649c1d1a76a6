"""Verifying a database or a backup: all of it is read, and nothing is changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from hermes.errors import NotADatabase, StoreCorrupt
from hermes.phrases import plural
from hermes.state.engine import Report
from hermes.state.maintenance.findings import Status
from hermes.state.sqlite.checks import counters, index, orphans
from hermes.state.sqlite.checks.subject import DONE_ON_OPEN, REPAIR_HINT, Subject, Watch
from hermes.state.sqlite.connection import View, quote_name
from hermes.state.sqlite.files.checksum import SUFFIX, matches_checksum
from hermes.state.sqlite.files.long_read import LogWatch, open_long_read
from hermes.state.sqlite.files.names import LOG, beside, bytes_of, real_file
from hermes.state.sqlite.schema import inspection as schema
from hermes.state.sqlite.schema.definitions import schema_sql
from hermes.state.sqlite.schema.inspection import FORMAT, Inspection, SchemaState
from hermes.state.sqlite.search import index_state
from hermes.state.sqlite.search.comparison import wrong_indexes
from hermes.state.sqlite.search.rebuild import DAMAGE

STEPS_BETWEEN_LOOKS = 10_000

_COMPARISONS = {
    "orphan_messages": orphans.messages,
    "orphan_sessions": orphans.sessions,
    "counters": counters.messages,
    "usage": counters.usage,
    "index_parity": index.parity,
}


_REST = """
    SELECT "table", count(*) FROM pragma_foreign_key_check WHERE "table" NOT IN ('messages', 'sessions') GROUP BY 1"""


@dataclass(frozen=True, slots=True)
class Hints:
    """What to do about each kind of defect, for a store or for a backup."""

    damage: str
    index: str
    definitions: str
    drift: str
    """Empty where each defect has its own hint."""


STORE_HINTS = Hints(
    damage=f"{REPAIR_HINT}; `hermes sessions restore` replaces it with a backup",
    index="every message is stored, but searches may miss some until `hermes sessions repair` rebuilds the index",
    definitions=f"{DONE_ON_OPEN}and removes it",
    drift="",
)
BACKUP_HINTS = Hints(
    damage="use another backup: `hermes sessions restore` lists them, `hermes sessions backup` makes a new one",
    index="every message is in it; after the restore, searches may miss some until `hermes sessions repair` has run",
    definitions="a restore removes it",
    drift="every session and message is in it; after the restore, `hermes doctor` says how to fix this",
)


class Depth(StrEnum):
    """How much of a file is read."""

    QUICK = "quick"
    """Every page."""
    DAMAGE = "damage"
    """Also whether each index of a table agrees with it: everything that makes a file unusable."""
    FULL = "full"
    """Also the text in the search index, and everything that is derived from the messages."""


class DefectKind(StrEnum):
    """What a defect means for the use of the file."""

    DAMAGE = "damage"
    """The file cannot be trusted: it does not count as a backup and is not restored."""
    FOREIGN = "foreign"
    """The file is undamaged, but not a store of this program."""
    DRIFT = "drift"
    """Every session and every message is there, but a value derived from them is wrong."""


class Defect(NamedTuple):
    """A defect of a file, and what to do about it."""

    kind: DefectKind
    code: str
    message: str
    hint: str


class Contents(NamedTuple):
    """How much is in a file; undone messages count too."""

    sessions: int
    messages: int
    newest: float | None
    """When the newest message was stored."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The contents of a file, which program made it, and its defects."""

    path: Path
    defects: tuple[Defect, ...]
    inspection: Inspection | None = None
    contents: Contents | None = None
    is_compared: bool = False
    """Whether the counters and the search index were compared with the messages."""

    def has(self, *kinds: DefectKind) -> bool:
        """Whether the file has a defect of one of these kinds."""
        return any(each.kind in kinds for each in self.defects)


def verify(path: Path, depth: Depth = Depth.FULL, *, is_backup: bool = False, report: Report | None = None) -> Verdict:
    """Read a file, also while other processes write to it, and return its defects."""
    return _Verification(path, report, is_backup=is_backup).verdict(depth)


def contents_of(view: View) -> Contents:
    """Count the sessions and messages of a file of any version."""
    return Contents(
        sessions=view.value("SELECT count(*) FROM main.sessions"),
        messages=view.value("SELECT count(*) FROM main.messages"),
        # An old file may hold anything where a time should be.
        newest=view.value("SELECT max(timestamp) FROM main.messages WHERE typeof(timestamp) IN ('real', 'integer')"),
    )


class _Verification:
    """The verification of one file."""

    def __init__(self, path: Path, report: Report | None, *, is_backup: bool) -> None:
        self._path = path
        self._report = report
        self._is_backup = is_backup
        self._hints = BACKUP_HINTS if is_backup else STORE_HINTS
        self._defects: list[Defect] = []
        self._progress = 0, 0
        """How far a step is, and of how much; 0 where the total is not known."""

    def verdict(self, depth: Depth) -> Verdict:
        inspection: Inspection | None = None
        contents: Contents | None = None
        is_compared = False
        try:
            with self._read_step("reading the tables") as view:
                inspection = schema.inspect_view(view, self._path)
            self._check_checksum()
            self._check_origin(inspection)
            self._check_definitions(inspection)
            self._check_pages("quick_check" if depth is Depth.QUICK else "integrity_check")
            if inspection.state is not SchemaState.FRESH:
                with self._read_step("counting") as view:
                    contents = contents_of(view)
            if depth is Depth.FULL and inspection.state is SchemaState.CURRENT and not self._is_damaged:
                self._check_index()
                self._compare()
                self._check_index_text()
                is_compared = True
        except StoreCorrupt as exc:
            if not self._is_damaged:
                self._add(DefectKind.DAMAGE, "damaged", exc.message, self._hints.damage)
        except NotADatabase as exc:
            self._add(DefectKind.FOREIGN, "not_a_database", exc.message, self._hints.damage)
        return Verdict(self._path, tuple(self._defects), inspection, contents, is_compared)

    def _check_origin(self, inspection: Inspection) -> None:
        if inspection.state is SchemaState.FRESH:
            self._add(DefectKind.DAMAGE, "empty", "it is empty", self._hints.damage)
        elif inspection.state is SchemaState.UPSTREAM:
            self._add(
                DefectKind.FOREIGN,
                "foreign",
                f"it has schema {inspection.version} of another program",
                schema.import_hint(self._path),
            )
        elif max(inspection.min_reader, inspection.min_writer) > FORMAT or (
            inspection.is_newer and inspection.foreign.triggers
        ):
            self._add(DefectKind.FOREIGN, "too_new", "it was written by a newer version of Hermes", "update Hermes")

    def _check_definitions(self, inspection: Inspection) -> None:
        """Add definitions of other programs; in a file of another program they are no defect."""
        foreign = inspection.foreign
        rules = foreign.unsafe if inspection.state is SchemaState.UPSTREAM else (*foreign.rules, *foreign.unsafe)
        for rule in dict.fromkeys(rules):
            message = f"another program has changed its tables: {rule}"
            self._add(DefectKind.DAMAGE, "altered", message, self._hints.damage)
        if foreign.removable and inspection.state is SchemaState.OURS:
            message = f"it has unused definitions that are not Hermes's: {foreign.describe()}"
            self._add(DefectKind.DRIFT, "foreign_schema", message, self._hints.definitions)

    def _check_checksum(self) -> None:
        if matches_checksum(self._path, self._report) is False:
            self._add(
                DefectKind.DAMAGE,
                "changed",
                "it has changed since it was made: its checksum is different",
                f"{self._hints.damage}; if you changed it yourself, remove {beside(self._path, SUFFIX)}",
            )

    def _check_pages(self, pragma: str) -> None:
        """Let SQLite check every page, and name the damaged tables."""
        with self._read_step("checking the pages") as view:
            # Checking the search index takes ten times as long as all the rest, so it is a step of its own.
            view.connection.drop_modules(None)
            flaws = _flaws(view, pragma)
            tables = [name for (name,) in view.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            by_table = {name: _flaws(view, f"{pragma}({quote_name(name)})") for name in tables} if flaws else {}
            self._check_length(view)
        attributed = {flaw for found in by_table.values() for flaw in found}
        by_table["the file"] = [flaw for flaw in flaws if flaw not in attributed]
        for name, found in by_table.items():
            self._add_flaws(name, found)

    def _add_flaws(self, name: str, flaws: list[str]) -> None:
        if not flaws:
            return
        more = f" (and {len(flaws) - 1} more)" if len(flaws) > 1 else ""
        if name.startswith(index_state.TABLES):
            message = f"the search index is damaged, in {name}: {flaws[0]}{more}"
            self._add(DefectKind.DRIFT, "index", message, self._hints.index)
        else:
            self._add(DefectKind.DAMAGE, "damaged", f"{name} is damaged: {flaws[0]}{more}", self._hints.damage)

    def _check_length(self, view: View) -> None:
        """Add a defect if the file was cut off inside of a page, where SQLite reads zeros."""
        expected = view.value("PRAGMA page_count") * view.value("PRAGMA page_size")
        if bytes_of(self._path) < expected and not bytes_of(beside(real_file(self._path), LOG)):
            message = f"it was cut off: it has {bytes_of(self._path)} of {expected} bytes"
            self._add(DefectKind.DAMAGE, "truncated", message, self._hints.damage)

    def _check_index(self) -> None:
        for table in index_state.TABLES:
            with self._read_step(f"checking {table}") as view:
                self._add_flaws(table, _flaws(view, f"integrity_check({table})"))

    def _check_index_text(self) -> None:
        """Compare the text of an index without a visible defect with the messages."""
        if any(each.code in ("index", "index_parity") for each in self._defects):
            return
        with self._read_step("comparing the search index") as view:
            for table in wrong_indexes(view, schema_sql(), self._note_progress):
                message = f"the search index {table} does not agree with the messages"
                self._add(DefectKind.DRIFT, "index", message, self._hints.index)

    def _compare(self) -> None:
        """Compare the messages with everything that is derived from them, and check references between rows."""
        file = real_file(self._path)
        subject = Subject(
            self._path, file, file.parent, time.time(), Watch(self._report, is_deep=True, log=LogWatch(file))
        )
        with self._read_step("comparing") as view:
            view.run("BEGIN")
            for number, (name, look) in enumerate(_COMPARISONS.items()):
                subject.watch.begin("comparing", number, len(_COMPARISONS))
                outcome = look(subject, view)
                if outcome.status in (Status.WARNING, Status.ERROR):
                    self._add(DefectKind.DRIFT, name, outcome.summary, self._hints.drift or outcome.remedy)
            for table, count in view.rows(_REST):
                message = f"{plural(count, 'row')} of {table} without a session"
                self._add(DefectKind.DRIFT, "orphan_rows", message, self._hints.drift or "nothing reads them")

    @contextmanager
    def _read_step(self, what: str) -> Iterator[View]:
        """Open the file for one step: the log of a database cannot be emptied for as long as a step takes."""
        watch = LogWatch(self._path)
        self._progress = 0, 0

        def check() -> bool:
            done, total = self._progress
            if not total:
                self._progress = done + 1, 0
            watch.check()
            if self._report is not None:
                self._report(what, done, total)
            return False

        with open_long_read(self._path, in_use=not self._is_backup) as connection:
            connection.set_progress_handler(check, STEPS_BETWEEN_LOOKS)
            yield View(connection)

    def _note_progress(self, done: int, total: int) -> None:
        self._progress = done, total

    @property
    def _is_damaged(self) -> bool:
        return any(each.kind is DefectKind.DAMAGE for each in self._defects)

    def _add(self, kind: DefectKind, code: str, message: str, hint: str) -> None:
        self._defects.append(Defect(kind, code, message, hint))


def _flaws(view: View, pragma: str) -> list[str]:
    try:
        texts = [str(row[0]) for row in view.rows(f"PRAGMA {pragma}")]
    except DAMAGE as exc:
        return [str(exc)]
    # One row may report several flaws, below a heading with the name of the database.
    return [line for text in texts for line in text.splitlines() if line != "ok" and not line.startswith("***")]
