"""Bringing sessions in from files: a file is examined before anything of it is taken, and sessions come in whole."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from hermes.errors import HermesError, StoreError
from hermes.ids import new_session_id
from hermes.interop.detection import Found
from hermes.interop.source import Source, Tell
from hermes.state.engine import Reading, Report
from hermes.state.import_export.session_checks import CheckedSession, iter_drafts
from hermes.state.import_export.session_writer import (
    ImportOutcome,
    OnConflict,
    find_stored_session,
    preview_import,
    write_sessions,
)
from hermes.state.import_export.trust import ImportTerms, apply_terms
from hermes.state.operations import Operations, read
from hermes.state.sessions.records import session_exists

TOGETHER, SESSIONS_TOGETHER = 1_000, 64
"""So many messages come in at once: each time costs a wait for the disk, and meanwhile nobody else can write."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """How sessions are to be brought in."""

    on_conflict: OnConflict = "merge"
    is_dry_run: bool = False
    keeps_going: bool = False
    """Whether a file that is good only up to a line is taken up to there."""
    source: str | None = None
    """What to name as their source; None: what they name themselves."""
    keeps_owners: bool = False
    """Whether sessions belong to the owners that the files name; otherwise they are the terminal's."""
    adds_to_own: bool = False
    """Whether sessions that were made here may get messages and children from a file."""


@dataclass(slots=True)
class Tally:
    """What came of it."""

    files: int = 0
    sessions: Counter[ImportOutcome] = field(default_factory=Counter)
    messages: int = 0
    skipped_lines: int = 0
    failures: dict[Path, HermesError] = field(default_factory=dict)


class Importer:
    """Brings sessions into a store; None for one that is not there yet does for a dry run."""

    def __init__(
        self, store: Operations | None, wishes: Wishes, now: float, names: Mapping[Path, str] = MappingProxyType({})
    ) -> None:
        """`names` are those of files that are read as copies; others are called by their paths."""
        self.tally = Tally()
        self._store = store
        self._wishes = wishes
        self._now = now
        self._names = names
        self._report: Report | None = None
        self._seen_bytes = self._all_bytes = 0
        self._renamed: dict[str, str] = {}
        self._foreseen: dict[str, array[int]] = {}
        """What a dry run would have brought in: the hashes of the uids of each session's messages."""

    def take(self, files: Sequence[Found], report: Report | None = None) -> None:
        """Bring in what is in all of them; what is wrong with one keeps no other out."""
        self._report = report
        self._all_bytes = 2 * sum(each.size_bytes for each in files)
        for each in files:
            self.tally.files += 1
            before = self._seen_bytes
            try:
                if isinstance(each.source, HermesError):
                    raise each.source
                self._take(each.path, each.source)
            except StoreError:
                raise  # it is the store into which all of them go
            except HermesError as error:
                self.tally.failures[each.path] = error
            except OSError as error:
                self.tally.failures[each.path] = HermesError(f"{each.path} cannot be read: {error.strerror}")
            self._seen_bytes = before + 2 * each.size_bytes

    def _take(self, path: Path, source: Source) -> None:
        examined = source.examine(self._now, self._tell("checking"))
        if examined.trouble is not None:
            self.tally.failures[path] = examined.trouble
            if not self._wishes.keeps_going:
                return
        self.tally.skipped_lines += examined.skipped_lines
        if self._wishes.is_dry_run:
            for session in self._wanted(path, source):
                self._foresee(session)
            return
        self._choose_names(examined.ids)
        for together in _groups(self._wanted(path, source)):
            assert self._store is not None
            for arrival in write_sessions(self._store, together, self._wishes.on_conflict, self._now, self._renamed):
                self.tally.sessions[arrival.outcome] += 1
                self.tally.messages += arrival.messages

    def _wanted(self, path: Path, source: Source) -> Iterator[CheckedSession]:
        name = self._names.get(path) or str(path.absolute())
        terms = ImportTerms(name, self._wishes.keeps_owners, self._wishes.adds_to_own)
        for session in source.sessions(self._now, self._tell("importing")):
            parent = session.parent_id
            session = apply_terms(session, terms, self._now)
            values = session.values
            if self._wishes.source is not None:
                values = {**values, "source": self._wishes.source}
            yield replace(session, values=values, parent_id=self._renamed.get(parent, parent) if parent else None)

    def _choose_names(self, ids: Sequence[str]) -> None:
        """New ids for sessions whose own are taken, before one of their children comes in."""
        if self._wishes.on_conflict != "rename" or self._store is None:
            return

        def taken(tx: Reading) -> list[str]:
            return [each for each in ids if each not in self._renamed and session_exists(tx, each)]

        self._renamed |= {each: new_session_id(self._now) for each in read(self._store, taken)}

    def _foresee(self, session: CheckedSession) -> None:
        uids = {each.values["uid"] for each in iter_drafts(session, self._now)}
        found = None if self._store is None else find_stored_session(self._store, session.id)
        here = None if found is None else found.uids
        may_change = found is None or session.adds_to_own or not found.is_own
        if session.id in self._foreseen:
            before = set(self._foreseen[session.id])
            here = (here or set()) | {uid for uid in uids if hash(uid) in before}
        outcome, messages = preview_import(uids, self._wishes.on_conflict, here, may_change=may_change)
        if outcome is not ImportOutcome.KEPT:
            self._foreseen.setdefault(session.id, array("q")).extend(map(hash, uids))
        self.tally.sessions[outcome] += 1
        self.tally.messages += messages

    def _tell(self, what: str) -> Tell:
        def tell(more: int) -> None:
            self._seen_bytes += more
            if self._report is not None:
                self._report(what, self._seen_bytes, self._all_bytes)

        return tell


def _groups(sessions: Iterator[CheckedSession]) -> Iterator[list[CheckedSession]]:
    """Sessions that come in together; one whose messages are not in memory comes alone, and before the next is read."""
    group: list[CheckedSession] = []
    messages = 0
    for session in sessions:
        count = len(session.messages) if isinstance(session.messages, list) else TOGETHER
        if group and messages + count > TOGETHER:
            yield group
            group, messages = [], 0
        group.append(session)
        messages += count
        if messages >= TOGETHER or len(group) == SESSIONS_TOGETHER:
            yield group
            group, messages = [], 0
    if group:
        yield group
