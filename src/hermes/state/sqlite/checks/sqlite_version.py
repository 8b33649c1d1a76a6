"""The engine: which SQLite this is, and whether it can be trusted with a file."""

from __future__ import annotations

import apsw

from hermes.state.maintenance.findings import CheckResult, error, ok, warning
from hermes.state.sqlite.checks.subject import Subject

SOUND_SINCE = 3_051_003
"""Before 3.51.3 a log that several processes use could be taken for empty while it was not."""

UPDATE = "install the apsw that Hermes asks for: pip install --upgrade apsw"


def versions(_: Subject) -> CheckResult:
    """Which versions are in use."""
    return judge_version(apsw.sqlite_lib_version(), apsw.apsw_version(), apsw.compile_options)


def judge_version(sqlite: str, driver: str, options: tuple[str, ...]) -> CheckResult:
    """What to think of an SQLite."""
    has_fulltext = "ENABLE_FTS5" in options
    seen = {"sqlite": sqlite, "apsw": driver, "fts5": has_fulltext}
    said = f"SQLite {sqlite} by apsw {driver}"
    major, minor, patch = (int(number) for number in f"{sqlite}.0".split(".")[:3])
    if not has_fulltext:
        return error(f"{said} has no full-text index (FTS5)", UPDATE, **seen)
    if major * 1_000_000 + minor * 1_000 + patch < SOUND_SINCE:
        return warning(f"{said} may damage a file that several processes write", UPDATE, **seen)
    return ok(f"{said}, with FTS5", **seen)
