"""The engine: which version of SQLite is in use, and whether it is safe."""

from __future__ import annotations

import apsw

from hermes.state.maintenance.findings import CheckResult, error, ok, warning
from hermes.state.sqlite.checks.subject import Subject

SOUND_SINCE = 3_051_003
"""Before 3.51.3 SQLite could take a log that several processes use for empty while it was not."""

UPDATE = "install the version of apsw that Hermes requires: pip install --upgrade apsw"


def versions(_: Subject) -> CheckResult:
    """The versions of SQLite and apsw in use."""
    return judge_version(apsw.sqlite_lib_version(), apsw.apsw_version(), apsw.compile_options)


def judge_version(sqlite: str, driver: str, options: tuple[str, ...]) -> CheckResult:
    """Whether a version of SQLite is good enough."""
    has_fulltext = "ENABLE_FTS5" in options
    details = {"sqlite": sqlite, "apsw": driver, "fts5": has_fulltext}
    version = f"SQLite {sqlite} by apsw {driver}"
    major, minor, patch = (int(number) for number in f"{sqlite}.0".split(".")[:3])
    if not has_fulltext:
        return error(f"{version} has no full-text index (FTS5)", UPDATE, **details)
    if major * 1_000_000 + minor * 1_000 + patch < SOUND_SINCE:
        return warning(f"{version} may damage a file that several processes write", UPDATE, **details)
    return ok(f"{version}, with FTS5", **details)
