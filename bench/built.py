"""Files that take minutes to fill: built once, and kept for later runs until the code or the corpus changes."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bench import archive
from bench.job import Job, Result
from bench.peers import PEERS
from bench.processes import ROOT, Processes
from bench.row import OURS, WORDS
from bench.weight import file_bytes

_STAMP = "built.json"
_STATE = "src/hermes/state"
_SOURCES = {
    OURS: (
        "src/hermes/query/*.py",
        f"{_STATE}/indexing/indexed_text.py",
        f"{_STATE}/sqlite/schema/*.sql",
        *(f"{_STATE}/sqlite/search/{name}.py" for name in ("expression", "indexing", "index_state", "trigrams")),
    ),
    WORDS: ("bench/wordfloor.py",),
    "postgresql": (
        "src/hermes/query/*.py",
        f"{_STATE}/indexing/indexed_text.py",
        f"{_STATE}/postgres/migrations/*.sql",
        *(f"{_STATE}/postgres/search/{name}.py" for name in ("indexing", "document")),
    ),
}
_SAMPLE = 1_000
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Built:
    """A directory with the file `state.db`, and how long building it took."""

    home: Path
    result: Result


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds archives below `directory`."""

    processes: Processes
    directory: Path
    report: Callable[[str], None]

    def build(self, store: str, label: str, messages: int) -> Built:
        """Build a store's file with this many messages; an older one of the same size is removed."""
        made_from = fingerprint(store)
        home = self.directory / f"{store}-{label}-{made_from}"
        stamp = home / _STAMP
        if stamp.exists():
            return Built(home, json.loads(stamp.read_text()))
        self.directory.mkdir(exist_ok=True)
        for outdated in self.directory.glob(f"{store}-{label}-*"):
            shutil.rmtree(outdated)
        self.report(f"search: filling {store} with {label} messages (once)")
        with tempfile.TemporaryDirectory(prefix="building-", dir=self.directory) as name:
            place = Path(name) / "built"
            place.mkdir()
            result = self.processes.run_in(place, store, Job("build", "", messages=messages))
            if "rate" not in result:
                return Built(home, result)
            if fingerprint(store) != made_from:
                return Built(home, {"error": "its source was changed while the file was filled"})
            result["bytes"] = file_bytes(place / "state.db") / messages
            (place / _STAMP).write_text(json.dumps(result))
            place.rename(home)
        return Built(home, result)


def read_through(home: Path) -> None:
    """Read the whole database into the system's page cache, so that no search waits for the disk."""
    for file in home.glob("state.db*"):
        with file.open("rb", buffering=0) as opened:
            while opened.read(_BLOCK):
                pass


def copy(home: Path, to: Path) -> None:
    """Copy the database for a workload that changes it."""
    for file in home.glob("state.db*"):
        shutil.copyfile(file, to / file.name)


def fingerprint(store: str) -> str:
    """A hash of all that the bytes of a file depend on: the messages, and the code or release that stores them."""
    found = hashlib.sha256(f"{archive.VERSION} {list(archive.sessions(_SAMPLE))}".encode())
    found.update(" ".join(peer.requirement for peer in PEERS if peer.name == store).encode())
    for file in _files(_SOURCES.get(store, ())):
        found.update(file.read_bytes())
    return found.hexdigest()[:12]


def _files(patterns: Iterable[str]) -> list[Path]:
    return sorted(file for pattern in patterns for file in ROOT.glob(pattern))
