"""Diagnosis of a copy of a database: its defects, which program made it, and whether rows can be saved."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hermes.errors import NotADatabase, StoreCorrupt, StoreError, StoreTooNew
from hermes.state.engine import Report
from hermes.state.sqlite.amounts import whole_number
from hermes.state.sqlite.checks.verify import Defect, DefectKind, Depth, verify
from hermes.state.sqlite.files.names import bytes_of
from hermes.state.sqlite.repair.damaged_file import OUR_TABLES, REQUIRED_TABLES, DamagedFile
from hermes.state.sqlite.repair.salvage import Salvaged
from hermes.state.sqlite.schema import inspection
from hermes.state.sqlite.schema.definitions import ledger

INDEX_CODES = frozenset(("index", "index_parity"))
SCHEMA_CODES = frozenset(("altered", "foreign_schema"))
ORPHAN_ROWS = "orphan_rows"
"""Rows of other tables that belong to no session: nothing reads them, and they may belong to another program."""
KINDS = ("header", "schema", "data", "log", "index", "counts")
"""The parts of a file that may be damaged, the worst first."""

_CHUNK = 1 << 20


def defects_of(copy: Path, damaged: DamagedFile, unreadable: int, report: Report | None) -> list[Defect]:
    """List every defect of a copy; `unreadable` is how many bytes the disk could not read."""
    if not bytes_of(copy):
        return [_damage("cut_off", "it is empty, but its log is not")]
    try:
        verdict = verify(copy, Depth.FULL, report=report)
        found = [defect for defect in verdict.defects if defect.code != ORPHAN_ROWS]
    except (StoreError, UnicodeDecodeError) as exc:
        found = [_damage("damaged", str(exc))]
    if damaged.pages.pages_after_damage:
        found.append(
            _damage("log", f"its log is damaged, and {len(damaged.pages.pages_after_damage)} later pages are not used")
        )
    if unreadable:
        found.append(_damage("unreadable", f"the disk cannot read {unreadable} bytes of it"))
    return found


def damage_of(defects: Iterable[Defect], salvaged: Salvaged) -> tuple[str, ...]:
    """The damaged parts, one word each."""
    kinds = set(salvaged.damage)
    for defect in defects:
        if defect.code in INDEX_CODES:
            kinds.add("index")
        elif defect.code in SCHEMA_CODES:
            kinds.add("schema")
        elif defect.kind is DefectKind.DRIFT:
            kinds.add("counts")
        elif defect.code in ("truncated", "unreadable"):
            kinds.add("data")
    # A defect of the file that concerns no row concerns an index of the rows.
    return tuple(kind for kind in KINDS if kind in (kinds or {"index"}))


def require_our_file(damaged: DamagedFile, database: Path) -> None:
    """Raise if the file is no session store, or belongs to another program or to a newer version."""
    names = set(damaged.schema_entries)
    if damaged.is_schema_whole and names and not names >= REQUIRED_TABLES:
        raise NotADatabase(f"{database} is an SQLite database, but not a session database")
    version = max((row[0] for row in damaged.read_small_table("schema_version") if isinstance(row[0], int)), default=0)
    if version > inspection.SCHEMA_VERSION and not names & OUR_TABLES:
        raise NotADatabase(
            f"{database} has schema {version} of another program and is never altered",
            hint=f"repair it with that program; {inspection.import_hint(database)}",
        )
    notes = {row[0]: str(row[1]) for row in damaged.read_small_table("state_meta")}
    needed = [whole_number(notes.get(key)) or 0 for key in ("min_reader", "min_writer")]
    is_newer = max(needed) > inspection.FORMAT
    if is_newer or not {row[0] for row in damaged.read_small_table("hermes_ledger")} <= ledger().keys():
        raise StoreTooNew(f"{database} was written by a newer version of Hermes")


def require_rows(damaged: DamagedFile, salvaged: Salvaged, copy: Path, database: Path) -> None:
    """Raise if no row can be read, so that no empty store replaces the file."""
    if damaged.is_schema_whole or salvaged.sessions or salvaged.messages:
        return
    if _is_blank(copy):
        what = f"{database} holds nothing but zeros"
    elif damaged.pages.header.is_sound or damaged.schema_entries:
        what = f"nothing can be read of {database}"
    else:
        raise NotADatabase(f"{database} is not a session database, or nothing of it is left")
    raise StoreCorrupt(
        what,
        hint="the file was not changed: restore a backup with `hermes sessions restore`,"
        " or move the file away to start with an empty store",
    )


def _damage(code: str, message: str) -> Defect:
    return Defect(DefectKind.DAMAGE, code, message, "")


def _is_blank(copy: Path) -> bool:
    with copy.open("rb") as file:
        return not any(chunk.strip(b"\0") for chunk in iter(lambda: file.read(_CHUNK), b""))
