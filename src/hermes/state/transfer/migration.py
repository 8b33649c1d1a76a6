"""A migration: copy one store to another, in steps that each succeed completely or not at all.

An empty store gets a copy of everything, messages in the order of their ids, which they keep. Then both stores are
compared, session by session, and sessions that changed in the source meanwhile are copied again. A store that was not
empty only gets what it lacks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from hermes.errors import Conflict
from hermes.state.engine import Report, Transaction
from hermes.state.maintenance.meta import OWN_KEYS, OWN_PREFIX
from hermes.state.maintenance.upkeep import LAST_PRUNE
from hermes.state.operations import Operations, read
from hermes.state.transfer.canonical_rows import Message, canonical_text
from hermes.state.transfer.changed_sessions import update_sessions
from hermes.state.transfer.lane_tables import compare_lanes, copy_lanes
from hermes.state.transfer.origin import StoreReader, pages_of
from hermes.state.transfer.progress import Progress, key_of, lock_progress, read_progress, save_progress
from hermes.state.transfer.session_bundle import SessionBundle, group_bundles, parents_first
from hermes.state.transfer.store_address import identity_of
from hermes.state.transfer.target import add_messages, add_sessions, known_sessions, newest_message
from hermes.state.transfer.verification import Difference, verify

_NOTES = 'SELECT "key", value FROM state_meta'

ROUNDS = 3
"""How often changed sessions are copied again; sessions that still change are reported."""


class Migration:
    """One run of a migration into a target."""

    def __init__(self, store: Operations, target: Operations, report: Report | None = None) -> None:
        self.origin = StoreReader(store)
        self.destination = StoreReader(target)
        self.sessions, self.messages = self.origin.totals()
        """How many there are to copy."""
        self._store, self._target = store, target
        identity = identity_of(store)
        self._name, self._key = identity[0], key_of(repr(identity))
        self._run = os.urandom(8).hex()
        self._report = report
        self._ahead: set[str] = set()
        """Sessions with new messages in the target, so that they will not become equal."""

    def begin(self, *, resume: bool) -> Progress:
        """Record in the target that a migration has started, or continue an unfinished one."""
        self.progress = self._target._engine.write(lambda tx: self._begin(tx, resume=resume))
        return self.progress

    def copy_all(self) -> list[str]:
        """Copy everything; return the sessions that keep changing and could not be made equal."""
        for _ in range(ROUNDS):
            if self.progress.is_exclusive:
                self._add_sessions()
            if self.progress.mode == "copy":
                self._copy_messages()
            changed = list(self._differences())
            if self._ahead.issuperset(changed):
                break
            self._update_sessions(changed)
        else:
            changed = list(self._differences())
        copy_lanes(self._store, self._target, self._step)
        self._copy_notes()
        return [each for each in changed if each not in self._ahead]

    def compare(self, report: Report | None = None) -> Iterator[Difference]:
        """Yield the sessions of the source that differ in the target, and the tables of lanes that do."""
        yield from verify(self.origin, self.destination, report)
        yield from compare_lanes(self._store, self._target)

    def finish(self) -> None:
        """Record that everything is copied: a later migration only adds what the target lacks."""
        self.progress = self._step(lambda tx, progress: replace(progress, finished_at=time.time()))

    def _begin(self, tx: Transaction, *, resume: bool) -> Progress:
        found = read_progress(tx, self._key, tx.dialect.for_update)
        if found is not None and found.finished_at is None:
            if not resume:
                raise Conflict(
                    f"a migration from {self._name} is not finished: {found.sessions:,} sessions and"
                    f" {found.messages:,} messages are copied",
                    hint="continue it with `--resume`",
                )
            started = replace(found, run=self._run)
        else:
            is_empty = tx.value("SELECT 1 FROM sessions LIMIT 1") is None and newest_message(tx) == 0
            started = Progress(self._name, "copy" if is_empty else "merge", self._run, time.time())
        save_progress(tx, self._key, started)
        return started

    def _step(self, work: Callable[[Transaction, Progress], Progress]) -> Progress:
        """Run one step and save the progress in the same transaction."""

        def step(tx: Transaction) -> Progress:
            progress = work(tx, lock_progress(tx, self._key, self._run))
            save_progress(tx, self._key, progress)
            return progress

        self.progress = self._target._engine.write(step)
        if self._report is not None:
            self._report("messages", self.progress.messages, self.messages)
        return self.progress

    def _add_sessions(self) -> None:
        """Add the sessions that the target lacks, without their messages."""
        for page in pages_of(parents_first(self.origin.families())):
            here = self._known(page)
            bundles = self.origin.bundles([each for each in page if each not in here])
            if bundles:
                self._step(partial(_step_sessions, bundles=bundles))

    def _copy_messages(self) -> None:
        """Copy messages in the order of their ids, until another program adds messages to the target."""
        with ThreadPoolExecutor(1, "hermes-transfer") as ahead:
            page = self.origin.messages_after(self.progress.after)
            while page and self.progress.mode == "copy":
                # Read the next page while this one is written.
                following = ahead.submit(self.origin.messages_after, page[-1].id)
                self._copy_page(page)
                page = following.result()

    def _copy_page(self, page: Sequence[Message]) -> None:
        here = self._known([each.session_id for each in page])
        # Sessions that were created after the others were copied.
        new = dict.fromkeys(each.session_id for each in page if each.session_id not in here)
        bundles = self.origin.bundles(list(new)) if new else []
        self._step(partial(_step_page, page=page, bundles=bundles))

    def _known(self, session_ids: Sequence[str]) -> set[str]:
        return read(self._target, lambda tx: known_sessions(tx, session_ids))

    def _differences(self) -> Iterator[str]:
        """Yield the sessions that are missing, incomplete or different in the target."""
        for page in pages_of(parents_first(self.origin.families())):
            yield from self._find_changed(page) if self.progress.is_exclusive else self._find_missing(page)

    def _find_changed(self, page: Sequence[str]) -> Iterator[str]:
        here = {each.id: each for each in self.destination.bundles(page)}
        for each in self.origin.bundles(page):
            if each.id not in here or here[each.id].with_title_of(each).comparable != each.comparable:
                yield each.id

    def _find_missing(self, page: Sequence[str]) -> Iterator[str]:
        here = self._known(page)
        wanted, found = self.origin.uids(page), self.destination.uids(page)
        return (each for each in page if each not in here or not wanted.get(each, set()) <= found.get(each, set()))

    def _update_sessions(self, session_ids: Sequence[str]) -> None:
        for page in pages_of(session_ids):
            for some in group_bundles(self.origin.bundles(page)):
                self._step(
                    partial(update_sessions, store=self._store, origin=self.origin, bundles=some, ahead=self._ahead)
                )

    def _copy_notes(self) -> None:
        """Add the keys of `state_meta` that the target lacks, except those that a store keeps about itself."""
        rows = read(self._store, lambda tx: tx.rows(_NOTES))
        notes = {
            key: None if value is None else canonical_text(value)
            for key, value in rows
            if key not in OWN_KEYS and key != LAST_PRUNE and not key.startswith(OWN_PREFIX)
        }
        if notes:
            self._step(partial(_step_notes, notes=notes))


def _step_sessions(tx: Transaction, progress: Progress, bundles: Sequence[SessionBundle]) -> Progress:
    here = known_sessions(tx, [each.id for each in bundles])
    new = [each for each in bundles if each.id not in here]
    add_sessions(tx, new)
    return replace(progress, sessions=progress.sessions + len(new))


def _step_page(
    tx: Transaction, progress: Progress, page: Sequence[Message], bundles: Sequence[SessionBundle]
) -> Progress:
    if newest_message(tx) > progress.after:
        # Another program already uses the target and has taken the next ids.
        return replace(progress, mode="fill")
    progress = _step_sessions(tx, progress, bundles)
    here = known_sessions(tx, (each.session_id for each in page))
    # Messages without a session are not copied.
    messages = [each for each in page if each.session_id in here]
    add_messages(tx, messages)
    return replace(progress, after=page[-1].id, messages=progress.messages + len(messages))


def _step_notes(tx: Transaction, progress: Progress, notes: dict[str, str | None]) -> Progress:
    here = {key for key, _ in tx.rows(_NOTES)}
    missing = [{"key": key, "value": value} for key, value in notes.items() if key not in here]
    tx.run_many(tx.dialect.upsert("state_meta", ["key"], ["value"]), missing)
    return progress
