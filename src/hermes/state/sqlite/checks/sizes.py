"""Sizes: what takes how much room, and how much is left."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from hermes.phrases import sized
from hermes.state.engine import OutOfTime
from hermes.state.maintenance.findings import CheckResult, error, note, ok, warning
from hermes.state.sqlite.checks import processes
from hermes.state.sqlite.checks.subject import DEEP_HINT, Subject, Watch
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.disk_usage import count_pages, measure_parts
from hermes.state.sqlite.files.names import LOG, beside, bytes_of
from hermes.state.sqlite.filesystem import free_bytes

MEASURING_S = 0.15
FREE_SHARE = 0.25
FREE_BYTES = 1 << 20
"""Less than this is not worth an effort, whatever its share."""
LOG_LIMIT_BYTES = 64 << 20
ROOM_BYTES = 100 << 20
COPIES = 2.5
"""A repair keeps the file, makes a new one, and for a while a log of that; a compaction needs a little less."""


def database(subject: Subject, view: View) -> CheckResult:
    """How large the file is, and what of."""
    page_bytes, pages, _ = count_pages(view)
    whole = page_bytes * pages
    parts = parts_of(view, subject.watch, MEASURING_S)
    if parts is None:
        return note(f"{sized(whole)}; what takes how much of it was not measured", DEEP_HINT, bytes=whole, parts=None)
    return ok(sized(whole), bytes=whole, parts=parts)


def parts_of(view: View, watch: Watch, budget_s: float) -> dict[str, int] | None:
    """Return how many bytes each part of the file takes; None if there was not the time to read every page."""
    try:
        with watch.limit(view, budget_s):
            return measure_parts(view)
    except OutOfTime:
        return None


def free_pages(_: Subject, view: View) -> CheckResult:
    """How much of the file is empty."""
    page_bytes, pages, free = count_pages(view)
    share = free / max(1, pages)
    seen = {"bytes": page_bytes * free, "share": round(share, 4)}
    said = f"{share:.0%} of it is empty ({sized(page_bytes * free)})"
    if share > FREE_SHARE and page_bytes * free >= FREE_BYTES:
        return note(said, "what comes next fills it; `hermes sessions optimize` gives it back to the disk", **seen)
    return ok(said, **seen)


def log(subject: Subject) -> CheckResult:
    """How large the write-ahead log has become, and who keeps it from being emptied."""
    size = bytes_of(beside(subject.file, LOG))
    readers = processes.reading_now(subject.file)
    seen = {"bytes": size, "readers": None if readers is None else [asdict(each) for each in readers]}
    if size <= LOG_LIMIT_BYTES:
        return ok(f"{sized(size)} in the write-ahead log", **seen)
    said = f"{sized(size)} in the write-ahead log, which makes everything slower"
    if readers:
        return warning(
            said, f"let {processes.describe(readers)} come to the end of what is being read, or end it", **seen
        )
    return warning(said, "`hermes sessions optimize --no-vacuum` empties it", **seen)


def disk(subject: Subject) -> CheckResult:
    """Whether there is room to go on, and for a repair."""
    free = free_bytes(_existing_ancestor(subject.file))
    if free is None:
        return note("the system does not say how much room is left on the disk", free_bytes=None)
    stored, logged = bytes_of(subject.file), bytes_of(beside(subject.file, LOG))
    wanted = int(COPIES * (stored + logged))
    seen = {"free_bytes": free, "wanted_bytes": wanted}
    said = f"{sized(free)} are left on the disk"
    if free < max(ROOM_BYTES, logged):
        return error(said, "make room at once: soon nothing can be stored", **seen)
    if free < wanted:
        return warning(f"{said}; a repair or a compaction needs {sized(wanted)}", "make room", **seen)
    return ok(said, **seen)


def _existing_ancestor(file: Path) -> Path:
    """A path on the disk of a file whose directory may not have been made yet."""
    while not file.parent.exists() and file.parent != file:
        file = file.parent
    return file
