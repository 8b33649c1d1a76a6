"""Sizes: what takes how much room, and how much is left."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from hermes.phrases import sized
from hermes.state.checkup import Outcome, error, note, ok, warning
from hermes.state.engine import OutOfTime
from hermes.state.sqlite.checks import use
from hermes.state.sqlite.checks.subject import LOOK_DEEPER, Subject, Watch
from hermes.state.sqlite.connection import View
from hermes.state.sqlite.files import LOG, beside, bytes_of
from hermes.state.sqlite.place import free_bytes

MEASURING_S = 0.15
FREE_SHARE = 0.25
FREE_BYTES = 1 << 20
"""Less than this is not worth an effort, whatever its share."""
LOG_LIMIT_BYTES = 64 << 20
ROOM_BYTES = 100 << 20
COPIES = 2.5
"""A repair keeps the file, makes a new one, and for a while a log of that; a compaction needs a little less."""

PARTS = ("messages", "words", "trigrams", "indexes", "other", "free")
"""What a file consists of: messages, the two full-text indexes, the other indexes, the other tables, and nothing."""


def database(subject: Subject, view: View) -> Outcome:
    """How large the file is, and what of."""
    page_bytes, pages, _ = _pages(view)
    whole = page_bytes * pages
    parts = parts_of(view, subject.watch, MEASURING_S)
    if parts is None:
        return note(f"{sized(whole)}; what takes how much of it was not measured", LOOK_DEEPER, bytes=whole, parts=None)
    return ok(sized(whole), bytes=whole, parts=parts)


def parts_of(view: View, watch: Watch, budget_s: float) -> dict[str, int] | None:
    """How many bytes of the file each of `PARTS` takes; None if there was not the time to look at every page."""
    page_bytes, _, free = _pages(view)
    parts = dict.fromkeys(PARTS, 0) | {"free": page_bytes * free}
    try:
        with watch.limit(view, budget_s):
            for name, size in view.rows("SELECT name, SUM(pgsize) FROM dbstat GROUP BY name"):
                parts[_part(name)] += size
    except OutOfTime:
        return None
    return parts


def free_pages(_: Subject, view: View) -> Outcome:
    """How much of the file is empty."""
    page_bytes, pages, free = _pages(view)
    share = free / max(1, pages)
    seen = {"bytes": page_bytes * free, "share": round(share, 4)}
    said = f"{share:.0%} of it is empty ({sized(page_bytes * free)})"
    if share > FREE_SHARE and page_bytes * free >= FREE_BYTES:
        return note(said, "what comes next fills it; `hermes sessions optimize` gives it back to the disk", **seen)
    return ok(said, **seen)


def log(subject: Subject) -> Outcome:
    """How large the write-ahead log has become, and who keeps it from being emptied."""
    size = bytes_of(beside(subject.file, LOG))
    readers = use.reading_now(subject.file)
    seen = {"bytes": size, "readers": None if readers is None else [asdict(each) for each in readers]}
    if size <= LOG_LIMIT_BYTES:
        return ok(f"{sized(size)} in the write-ahead log", **seen)
    said = f"{sized(size)} in the write-ahead log, which makes everything slower"
    if readers:
        return warning(said, f"let {use.named(readers)} come to the end of what is being read, or end it", **seen)
    return warning(said, "`hermes sessions optimize --no-vacuum` empties it", **seen)


def disk(subject: Subject) -> Outcome:
    """Whether there is room to go on, and for a repair."""
    free = free_bytes(_going_to_be_on(subject.file))
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


def _going_to_be_on(file: Path) -> Path:
    """A path on the disk of a file whose directory may not have been made yet."""
    while not file.parent.exists() and file.parent != file:
        file = file.parent
    return file


def _pages(view: View) -> tuple[int, int, int]:
    """How large a page is, how many there are, and how many of them are free."""
    size, count, free = (int(view.value(f"PRAGMA {name}")) for name in ("page_size", "page_count", "freelist_count"))
    return size, count, free


def _part(name: str) -> str:
    if name.startswith("messages_fts_trigram"):
        return "trigrams"
    if name.startswith("messages_fts"):
        return "words"
    if name.startswith(("idx_", "sqlite_autoindex_")):
        return "indexes"
    return "messages" if name == "messages" else "other"
