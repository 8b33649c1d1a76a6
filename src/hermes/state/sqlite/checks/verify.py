"""Whether a database, or a backup of one, is whole: all of it is read, and nothing is changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from hermes.errors import NotADatabase, StoreCorrupt
from hermes.state.engine import Report
from hermes.state.maintenance.findings import Status
from hermes.state.sqlite.checks import counters, index, orphans
from hermes.state.sqlite.checks.subject import DONE_ON_OPEN, REPAIR_HINT, Subject, Watch
from hermes.state.sqlite.connection import View
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
    """What to do about what is found, for each kind of file."""

    damage: str
    index: str
    definitions: str
    drift: str
    """Empty where each finding has its own."""


STORE_HINTS = Hints(
    damage=f"{REPAIR_HINT}; `hermes sessions restore` goes back to a backup",
    index="every message is there, but searches may miss some until `hermes sessions repair` has made the index again",
    definitions=f"{DONE_ON_OPEN}: it is removed",
    drift="",
)
BACKUP_HINTS = Hints(
    damage="use another one: `hermes sessions restore` lists them, `hermes sessions backup` makes a new one",
    index="every message is there; once it is restored, searches may miss some until `hermes sessions repair` has run",
    definitions="it is removed when the backup is restored",
    drift="every session and message is there: once it is restored, `hermes doctor` says how to put this right",
)


class Depth(StrEnum):
    """How much of a file is looked at."""

    QUICK = "quick"
    """Every page."""
    DAMAGE = "damage"
    """Also whether each index of a table has what the table has: everything that speaks against using the file."""
    FULL = "full"
    """Also what is in the search index, and whether everything that is derived from the messages agrees with them."""


class DefectKind(StrEnum):
    """What a finding means for those who want to use the file."""

    DAMAGE = "damage"
    """It cannot be relied on, so it is no backup and is not restored."""
    FOREIGN = "foreign"
    """It is whole, but not a store of this program."""
    DRIFT = "drift"
    """Every session and every message is there, but something that is derived from them is not right."""


class Defect(NamedTuple):
    """Something that is wrong with a file, and what to do."""

    kind: DefectKind
    code: str
    message: str
    hint: str


class Contents(NamedTuple):
    """How much is in a file; messages that were rewound count too."""

    sessions: int
    messages: int
    newest: float | None
    """When the newest message was said."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is in a file, whose it is, and everything that is wrong with it."""

    path: Path
    defects: tuple[Defect, ...]
    inspection: Inspection | None = None
    contents: Contents | None = None

    def has(self, *kinds: DefectKind) -> bool:
        """Whether something of these kinds is wrong with it."""
        return any(each.kind in kinds for each in self.defects)


def verify(path: Path, depth: Depth = Depth.FULL, *, is_backup: bool = False, report: Report | None = None) -> Verdict:
    """Read a file, also while others write to it, and tell what is wrong."""
    return _Verification(path, report, is_backup=is_backup).verdict(depth)


def contents_of(view: View) -> Contents:
    """How much is in a file of any version."""
    return Contents(
        sessions=view.value("SELECT count(*) FROM main.sessions"),
        messages=view.value("SELECT count(*) FROM main.messages"),
        # An old file may hold anything where a time should be.
        newest=view.value("SELECT max(timestamp) FROM main.messages WHERE typeof(timestamp) IN ('real', 'integer')"),
    )


class _Verification:
    """One look at one file."""

    def __init__(self, path: Path, report: Report | None, *, is_backup: bool) -> None:
        self._path = path
        self._report = report
        self._is_backup = is_backup
        self._hints = BACKUP_HINTS if is_backup else STORE_HINTS
        self._defects: list[Defect] = []
        self._progress = 0, 0
        """How far a step is, and of how much; of nothing where nobody knows."""

    def verdict(self, depth: Depth) -> Verdict:
        inspection: Inspection | None = None
        contents: Contents | None = None
        try:
            with self._read_step("looking at the tables") as view:
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
        except StoreCorrupt as exc:
            if not self._is_damaged:
                self._add(DefectKind.DAMAGE, "damaged", exc.message, self._hints.damage)
        except NotADatabase as exc:
            self._add(DefectKind.FOREIGN, "not_a_database", exc.message, self._hints.damage)
        return Verdict(self._path, tuple(self._defects), inspection, contents)

    def _check_origin(self, inspection: Inspection) -> None:
        if inspection.state is SchemaState.FRESH:
            self._add(DefectKind.DAMAGE, "empty", "there is nothing in it", self._hints.damage)
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
        """Tell of what others have put into the schema; what another program's own file has in it is its own affair."""
        foreign = inspection.foreign
        rules = foreign.unsafe if inspection.state is SchemaState.UPSTREAM else (*foreign.rules, *foreign.unsafe)
        for rule in dict.fromkeys(rules):
            message = f"others have changed its tables: {rule}"
            self._add(DefectKind.DAMAGE, "altered", message, self._hints.damage)
        if foreign.removable and inspection.state is SchemaState.OURS:
            message = f"it has something that is not Hermes's and is never used: {foreign.describe()}"
            self._add(DefectKind.DRIFT, "foreign_schema", message, self._hints.definitions)

    def _check_checksum(self) -> None:
        if matches_checksum(self._path, self._report) is False:
            self._add(
                DefectKind.DAMAGE,
                "changed",
                "it is not what it was when it was made: its checksum is another",
                f"{self._hints.damage}; if you changed it yourself, remove {beside(self._path, SUFFIX)}",
            )

    def _check_pages(self, pragma: str) -> None:
        """Have SQLite look at every page, and name the tables that it finds something wrong with."""
        with self._read_step("checking the pages") as view:
            # What is in the search index takes ten times as long as all the rest, and is looked at apart from it.
            view.connection.drop_modules(None)
            flaws = _flaws(view, pragma)
            tables = [name for (name,) in view.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            by_table = {name: _flaws(view, f"{pragma}({_quoted(name)})") for name in tables} if flaws else {}
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
        """SQLite takes the end of a file that was cut off inside of a page for zeros."""
        expected = view.value("PRAGMA page_count") * view.value("PRAGMA page_size")
        if bytes_of(self._path) < expected and not bytes_of(beside(real_file(self._path), LOG)):
            message = f"it was cut off: it has {bytes_of(self._path)} of {expected} bytes"
            self._add(DefectKind.DAMAGE, "truncated", message, self._hints.damage)

    def _check_index(self) -> None:
        for table in index_state.TABLES:
            with self._read_step(f"checking {table}") as view:
                self._add_flaws(table, _flaws(view, f"integrity_check({table})"))

    def _check_index_text(self) -> None:
        """Compare what an index without a visible flaw says with the messages."""
        if any(each.code in ("index", "index_parity") for each in self._defects):
            return
        with self._read_step("comparing the search index") as view:
            for table in wrong_indexes(view, schema_sql(), self._note_progress):
                message = f"the search index {table} does not say what the messages say"
                self._add(DefectKind.DRIFT, "index", message, self._hints.index)

    def _compare(self) -> None:
        """Compare what is derived from the messages with the messages, and what belongs together with each other."""
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
                message = f"{count} rows of {table} belong to no session"
                self._add(DefectKind.DRIFT, "orphan_rows", message, self._hints.drift or "nothing reads them")

    @contextmanager
    def _read_step(self, what: str) -> Iterator[View]:
        """The file, for one step: the log of a database cannot be emptied for as long as a step takes."""
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
        said = [str(row[0]) for row in view.rows(f"PRAGMA {pragma}")]
    except DAMAGE as exc:
        return [str(exc)]
    # One row may tell of several, below a heading with the name of the database.
    return [line for text in said for line in text.splitlines() if line != "ok" and not line.startswith("***")]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
