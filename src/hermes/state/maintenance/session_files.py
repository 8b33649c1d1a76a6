"""The files that programs write about a session outside the store."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from hermes.log import warn

DUMP = "request_dump_"
_DUMP_SUFFIX = re.compile(r"[0-9]{1,6}|[0-9]{8}_[0-9]{6}(?:_[0-9]{6})?")
"""The part of a dump's name after the id: a number or a time. Any other text belongs to a longer id."""
_CHANGES = ".changes"


def remove_files(session_ids: Collection[str], sessions_dir: str | Path | None) -> int:
    """Remove the transcripts and dumps of deleted sessions, and return how many there were."""
    if sessions_dir is None or not session_ids:
        return 0
    removed = 0
    for path in _session_files(session_ids, Path(sessions_dir)):
        try:
            path.unlink()
            removed += 1
        except FileNotFoundError:
            continue
        except OSError as exc:
            # The rows are already deleted; a file that cannot be removed deserves a warning, not an error.
            warn(__name__, "%s could not be removed: %s", path, exc)
    return removed


def changes_file(session_id: str, directory: Path) -> Path | None:
    """Return where the former contents of the files are that a session has changed; None for an id that is no name."""
    return directory / f"{session_id}{_CHANGES}" if _is_name(session_id) else None


def _is_name(session_id: str) -> bool:
    return not any(char in session_id for char in "/\\\0") and not session_id.startswith(".")


def _session_files(session_ids: Collection[str], directory: Path) -> Iterator[Path]:
    safe = set(filter(_is_name, session_ids))
    for session_id in sorted(safe):
        yield directory / f"{session_id}.json"
        yield directory / f"{session_id}.jsonl"
        yield directory / f"{session_id}{_CHANGES}"
    try:
        names = os.listdir(directory)
    except OSError:
        return
    for name in names:
        is_dump = name.startswith(DUMP) and name.endswith(".json")
        if is_dump and _is_dump_of(safe, name.removeprefix(DUMP).removesuffix(".json")):
            yield directory / name


def _is_dump_of(session_ids: Collection[str], name: str) -> bool:
    """Whether `<id>_<suffix>` names a dump of one of the sessions; an id may contain `_`, and start like another id."""
    end = name.find("_")
    while end >= 0:
        if name[:end] in session_ids and _DUMP_SUFFIX.fullmatch(name, end + 1):
            return True
        end = name.find("_", end + 1)
    return False
