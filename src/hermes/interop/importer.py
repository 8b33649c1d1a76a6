"""Import of sessions from files: each file is checked first, and a session is imported whole or not at all."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from hermes.errors import HermesError, StoreError
from hermes.ids import new_session_id
from hermes.interop.detection import FoundFile
from hermes.interop.source import ByteProgress, Source
from hermes.state.engine import Reading, Report
from hermes.state.import_export.message_pages import group_by_messages
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

MAX_GROUP_MESSAGES, MAX_GROUP_SESSIONS = 1_000, 64
"""At most so many messages and sessions per transaction: each waits for the disk, and blocks other writers."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How to import sessions."""

    on_conflict: OnConflict = "merge"
    is_dry_run: bool = False
    keeps_going: bool = False
    """Whether to import the good part of a file that cannot be read to its end."""
    source: str | None = None
    """The source to store; None keeps the source that the file states."""
    keeps_owners: bool = False
    """Whether sessions keep the owners stated in the files; otherwise they belong to the terminal."""
    adds_to_own: bool = False
    """Whether a file may add messages and children to sessions that were created here."""


@dataclass(slots=True)
class Tally:
    """The result of an import."""

    files: int = 0
    sessions: Counter[ImportOutcome] = field(default_factory=Counter)
    messages: int = 0
    skipped_lines: int = 0
    failures: dict[Path, HermesError] = field(default_factory=dict)


class Importer:
    """Imports sessions into a store; a dry run also works with None, for a store that does not exist yet."""

    def __init__(
        self,
        store: Operations | None,
        options: ImportOptions,
        now: float,
        names: Mapping[Path, str] = MappingProxyType({}),
    ) -> None:
        """`names` are the original names of files that are read as copies; other files are named by their paths."""
        self.tally = Tally()
        self._store = store
        self._options = options
        self._now = now
        self._names = names
        self._report: Report | None = None
        self._seen_bytes = self._all_bytes = 0
        self._renamed: dict[str, str] = {}
        self._previewed: dict[str, array[int]] = {}
        """What a dry run would have imported: per session, the hashes of its messages' uids."""

    def import_files(self, files: Sequence[FoundFile], report: Report | None = None) -> None:
        """Import all files; a failure in one does not stop the others."""
        self._report = report
        self._all_bytes = 2 * sum(each.size_bytes for each in files)
        for each in files:
            self.tally.files += 1
            before = self._seen_bytes
            try:
                if isinstance(each.source, HermesError):
                    raise each.source
                self._import_file(each.path, each.source)
            except StoreError:
                raise  # the target store fails for every file
            except HermesError as error:
                self.tally.failures[each.path] = error
            except OSError as error:
                self.tally.failures[each.path] = HermesError(f"{each.path} cannot be read: {error.strerror}")
            self._seen_bytes = before + 2 * each.size_bytes

    def _import_file(self, path: Path, source: Source) -> None:
        examined = source.examine(self._now, self._progress("checking"))
        if examined.trouble is not None:
            self.tally.failures[path] = examined.trouble
            if not self._options.keeps_going:
                return
        self.tally.skipped_lines += examined.skipped_lines
        if self._options.is_dry_run:
            for session in self._sessions_of(path, source):
                self._preview(session)
            return
        self._choose_new_ids(examined.ids)
        sessions = self._sessions_of(path, source)
        for together in group_by_messages(sessions, _messages_in_memory, MAX_GROUP_MESSAGES, MAX_GROUP_SESSIONS):
            assert self._store is not None
            for arrival in write_sessions(self._store, together, self._options.on_conflict, self._now, self._renamed):
                self.tally.sessions[arrival.outcome] += 1
                self.tally.messages += arrival.messages

    def _sessions_of(self, path: Path, source: Source) -> Iterator[CheckedSession]:
        name = self._names.get(path) or str(path.absolute())
        terms = ImportTerms(name, self._options.keeps_owners, self._options.adds_to_own)
        for session in source.sessions(self._now, self._progress("importing")):
            parent = session.parent_id
            session = apply_terms(session, terms, self._now)
            values = session.values
            if self._options.source is not None:
                values = {**values, "source": self._options.source}
            yield replace(session, values=values, parent_id=self._renamed.get(parent, parent) if parent else None)

    def _choose_new_ids(self, ids: Sequence[str]) -> None:
        """Choose new ids for sessions whose ids are taken, before their children are imported."""
        if self._options.on_conflict != "rename" or self._store is None:
            return

        def find_taken(tx: Reading) -> list[str]:
            return [each for each in ids if each not in self._renamed and session_exists(tx, each)]

        self._renamed |= {each: new_session_id(self._now) for each in read(self._store, find_taken)}

    def _preview(self, session: CheckedSession) -> None:
        uids = {each.values["uid"] for each in iter_drafts(session, self._now)}
        found = None if self._store is None else find_stored_session(self._store, session.id)
        here = None if found is None else found.uids
        may_change = found is None or session.adds_to_own or not found.is_own
        if session.id in self._previewed:
            before = set(self._previewed[session.id])
            here = (here or set()) | {uid for uid in uids if hash(uid) in before}
        outcome, messages = preview_import(uids, self._options.on_conflict, here, may_change=may_change)
        if outcome is not ImportOutcome.KEPT:
            self._previewed.setdefault(session.id, array("q")).extend(map(hash, uids))
        self.tally.sessions[outcome] += 1
        self.tally.messages += messages

    def _progress(self, what: str) -> ByteProgress:
        def report_bytes(more: int) -> None:
            self._seen_bytes += more
            if self._report is not None:
                self._report(what, self._seen_bytes, self._all_bytes)

        return report_bytes


def _messages_in_memory(session: CheckedSession) -> int:
    """Count the messages of a session; one that is still read from its file fills a group alone."""
    return len(session.messages) if isinstance(session.messages, list) else MAX_GROUP_MESSAGES
