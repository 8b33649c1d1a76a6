"""Sizes: how large the parts of the file are, and how much disk space is left."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from hermes.phrases import format_size
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
"""Less than this is not worth compacting, whatever its share."""
LOG_LIMIT_BYTES = 64 << 20
ROOM_BYTES = 100 << 20
COPIES = 2.5
"""A repair keeps the file, writes a new one, and for a while a log of that; a compaction needs a little less."""


def database(subject: Subject, view: View) -> CheckResult:
    """How large the file is, and how large each part of it."""
    page_bytes, pages, _ = count_pages(view)
    size = page_bytes * pages
    parts = parts_of(view, subject.watch, MEASURING_S)
    if parts is None:
        return note(f"{format_size(size)}; its parts were not measured", DEEP_HINT, bytes=size, parts=None)
    return ok(format_size(size), bytes=size, parts=parts)


def parts_of(view: View, watch: Watch, budget_s: float) -> dict[str, int] | None:
    """Return how many bytes each part of the file takes; None if there is not enough time to read every page."""
    try:
        with watch.limit(view, budget_s):
            return measure_parts(view)
    except OutOfTime:
        return None


def free_pages(_: Subject, view: View) -> CheckResult:
    """How much of the file is empty."""
    page_bytes, pages, free = count_pages(view)
    share = free / max(1, pages)
    details = {"bytes": page_bytes * free, "share": round(share, 4)}
    summary = f"{share:.0%} of it is empty ({format_size(page_bytes * free)})"
    if share > FREE_SHARE and page_bytes * free >= FREE_BYTES:
        return note(summary, "new messages reuse it; `hermes sessions optimize` gives it back to the disk", **details)
    return ok(summary, **details)


def log(subject: Subject) -> CheckResult:
    """How large the write-ahead log has become, and which readers keep it from being emptied."""
    size = bytes_of(beside(subject.file, LOG))
    readers = processes.reading_now(subject.file)
    details = {"bytes": size, "readers": None if readers is None else [asdict(each) for each in readers]}
    if size <= LOG_LIMIT_BYTES:
        return ok(f"{format_size(size)} in the write-ahead log", **details)
    summary = f"{format_size(size)} in the write-ahead log, which makes everything slower"
    if readers:
        return warning(summary, f"let {processes.describe(readers)} finish reading, or end the process", **details)
    return warning(summary, "`hermes sessions optimize --no-vacuum` empties it", **details)


def disk(subject: Subject) -> CheckResult:
    """Whether the disk has enough space for new messages, and for a repair."""
    free = free_bytes(_existing_ancestor(subject.file))
    if free is None:
        return note("the system does not say how much space is left on the disk", free_bytes=None)
    stored, logged = bytes_of(subject.file), bytes_of(beside(subject.file, LOG))
    wanted = int(COPIES * (stored + logged))
    details = {"free_bytes": free, "wanted_bytes": wanted}
    summary = f"{format_size(free)} are left on the disk"
    if free < max(ROOM_BYTES, logged):
        return error(summary, "free some space now: soon nothing can be stored", **details)
    if free < wanted:
        return warning(f"{summary}; a repair or a compaction needs {format_size(wanted)}", "free some space", **details)
    return ok(summary, **details)


def _existing_ancestor(file: Path) -> Path:
    """An existing path on the disk of a file whose directory may not exist yet."""
    while not file.parent.exists() and file.parent != file:
        file = file.parent
    return file
