"""WhatsApp ids: one spelling for each chat and user, also when the bridge changes between number and linked id."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hermes.home import get_hermes_home
from hermes.state.owner import is_whatsapp_room, whatsapp_digits

_SAFE = re.compile(r"[A-Za-z0-9@.+-]{1,128}")
"""Ids that may be part of a file name."""
_FOLDERS: Final = (Path("whatsapp", "session"), Path("platforms", "whatsapp", "session"))
_MAX_ALIASES = 64
_MAX_BYTES = 4096
_MAX_CACHED = 10_000

Stamp = tuple[str, int | None]
"""A file and its time of change in nanoseconds; None if it does not exist."""
_cache: dict[tuple[str, str], tuple[frozenset[str], tuple[Stamp, ...]]] = {}


def normalize_whatsapp_identifier(value: str | None) -> str:
    """Return an id without `+`, device and server; a phone number or linked id as plain digits."""
    text = str(value or "").strip()
    if not is_whatsapp_room(text):
        number = whatsapp_digits(text)
        if number is not None:
            return number[0]
        text = text.replace("+", "", 1).split(":", 1)[0]
    return text.split("@", 1)[0].strip()


def expand_whatsapp_aliases(identifier: str | None) -> frozenset[str]:
    """Return all ids of the same person or chat that the bridge's mapping files connect, itself included."""
    first = normalize_whatsapp_identifier(identifier)
    if not first:
        return frozenset()
    home = get_hermes_home()
    key = (str(home), first)
    known = _cache.get(key)
    if known is not None and all(_changed_at(path) == stamp for path, stamp in known[1]):
        return known[0]
    stamps: list[Stamp] = []
    aliases = frozenset(_walk(home, first, stamps))
    if len(_cache) >= _MAX_CACHED:
        _cache.clear()
    _cache[key] = (aliases, tuple(stamps))
    return aliases


def canonical_whatsapp_identifier(value: str | None) -> str:
    """Return the shortest alias of an id, the first in alphabetical order of equally short ones; "" for none."""
    aliases = expand_whatsapp_aliases(value)
    return min(aliases, key=lambda alias: (len(alias), alias)) if aliases else ""


def canonical_whatsapp_chat(chat_id: str) -> str:
    """Return the id of a group without its server; the dash of old group ids stays."""
    return chat_id.strip().split("@", 1)[0] or chat_id


def _walk(home: Path, first: str, stamps: list[Stamp]) -> Iterator[str]:
    """Yield `first` and the ids connected with it, and record the files that were looked at."""
    seen, waiting = {first}, [first]
    folders = [folder for folder in (home / each for each in _FOLDERS) if _record(folder, stamps)]
    while waiting:
        identifier = waiting.pop(0)
        yield identifier
        if not _SAFE.fullmatch(identifier):
            continue
        for folder in folders:
            for name in (f"lid-mapping-{identifier}.json", f"lid-mapping-{identifier}_reverse.json"):
                alias = _read_alias(folder / name, stamps)
                if alias and alias not in seen and len(seen) < _MAX_ALIASES:
                    seen.add(alias)
                    waiting.append(alias)


def _read_alias(path: Path, stamps: list[Stamp]) -> str:
    """Return the id in a mapping file; "" if it cannot be read, because the bridge rewrites it at any time."""
    if not _record(path, stamps):
        return ""
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return normalize_whatsapp_identifier(str(value))


def _record(path: Path, stamps: list[Stamp]) -> bool:
    """Remember the state of a file or directory, and return whether it exists."""
    stamp = _changed_at(str(path))
    stamps.append((str(path), stamp))
    return stamp is not None


def _changed_at(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return None
