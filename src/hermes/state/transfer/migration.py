"""A migration: everything of one store carried to another, in steps of which each is done whole or not at all.

Into an empty store all is copied, messages in the order of their ids, which they keep. Then both are compared, session
by session, and what was changed in the origin meanwhile is carried too. A store that was not empty is only given what
it lacks.
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
from hermes.state.meta import OWN_KEYS, OWN_PREFIX
from hermes.state.operations import Operations, read
from hermes.state.transfer import journal as journals
from hermes.state.transfer.bringing import bring
from hermes.state.transfer.cargo import Cargo, grouped, parents_first
from hermes.state.transfer.form import Message, text_form
from hermes.state.transfer.journal import Journal
from hermes.state.transfer.loading import add_messages, add_sessions, known_sessions, newest_message
from hermes.state.transfer.place import identity_of
from hermes.state.transfer.reading import Origin, pages_of
from hermes.state.upkeep import LAST_PRUNE

_NOTES = 'SELECT "key", value FROM state_meta'

ROUNDS = 3
"""So often what has changed meanwhile is carried; what changes all the time is named."""


class Migration:
    """One run of a migration into a target."""

    def __init__(self, store: Operations, target: Operations, report: Report | None = None) -> None:
        self.origin = Origin(store)
        self.destination = Origin(target)
        self.sessions, self.messages = self.origin.totals()
        """How many there are to carry."""
        self._store, self._target = store, target
        identity = identity_of(store)
        self._name, self._key = identity[0], journals.key_of(repr(identity))
        self._run = os.urandom(8).hex()
        self._report = report
        self._ahead: set[str] = set()
        """Sessions in which somebody has said something in the target, so that they will not be the same."""

    def begin(self, *, resume: bool) -> Journal:
        """Note in the target that a migration has begun, or go on with one that was not finished."""
        self.journal = self._target._engine.write(lambda tx: self._begin(tx, resume=resume))
        return self.journal

    def carry(self) -> list[str]:
        """Carry everything; answers the sessions that are being changed all the time, and so could not be settled."""
        for _ in range(ROUNDS):
            if self.journal.is_alone:
                self._add_sessions()
            if self.journal.mode == "copy":
                self._copy_messages()
            changed = list(self._differences())
            if self._ahead.issuperset(changed):
                break
            self._bring(changed)
        else:
            changed = list(self._differences())
        self._carry_notes()
        return [each for each in changed if each not in self._ahead]

    def finish(self) -> None:
        """Note that all is carried: whoever begins again only adds what the target lacks."""
        self.journal = self._step(lambda tx, journal: replace(journal, finished_at=time.time()))

    def _begin(self, tx: Transaction, *, resume: bool) -> Journal:
        found = journals.look_up(tx, self._key, tx.dialect.for_update)
        if found is not None and found.finished_at is None:
            if not resume:
                raise Conflict(
                    f"a migration from {self._name} was begun and is not finished: {found.sessions:,} sessions and"
                    f" {found.messages:,} messages are carried",
                    hint="`--resume` goes on with it",
                )
            begun = replace(found, run=self._run)
        else:
            is_empty = tx.value("SELECT 1 FROM sessions LIMIT 1") is None and newest_message(tx) == 0
            begun = Journal(self._name, "copy" if is_empty else "merge", self._run, time.time())
        journals.note(tx, self._key, begun)
        return begun

    def _step(self, work: Callable[[Transaction, Journal], Journal]) -> Journal:
        """Carry something and note it, together."""

        def step(tx: Transaction) -> Journal:
            noted = work(tx, journals.hold(tx, self._key, self._run))
            journals.note(tx, self._key, noted)
            return noted

        self.journal = self._target._engine.write(step)
        if self._report is not None:
            self._report("messages", self.journal.messages, self.messages)
        return self.journal

    def _add_sessions(self) -> None:
        """Give the target the sessions that it lacks, without their messages."""
        for page in pages_of(parents_first(self.origin.families())):
            here = self._known(page)
            cargos = self.origin.cargo([each for each in page if each not in here])
            if cargos:
                self._step(partial(_with_sessions, cargos=cargos))

    def _copy_messages(self) -> None:
        """Copy messages in the order of their ids, as long as nobody else adds some to the target."""
        with ThreadPoolExecutor(1, "hermes-transfer") as ahead:
            page = self.origin.messages_after(self.journal.after)
            while page and self.journal.mode == "copy":
                # The next ones are read while these are written.
                following = ahead.submit(self.origin.messages_after, page[-1].id)
                self._copy_page(page)
                page = following.result()

    def _copy_page(self, page: Sequence[Message]) -> None:
        here = self._known([each.session_id for each in page])
        # Sessions that were begun since the others were carried.
        new = dict.fromkeys(each.session_id for each in page if each.session_id not in here)
        cargos = self.origin.cargo(list(new)) if new else []
        self._step(partial(_with_page, page=page, cargos=cargos))

    def _known(self, session_ids: Sequence[str]) -> set[str]:
        return read(self._target, lambda tx: known_sessions(tx, session_ids))

    def _differences(self) -> Iterator[str]:
        """The sessions that are not in the target as they are in the origin, or that it does not have whole."""
        for page in pages_of(parents_first(self.origin.families())):
            yield from self._changed(page) if self.journal.is_alone else self._lacking(page)

    def _changed(self, page: Sequence[str]) -> Iterator[str]:
        here = {each.id: each for each in self.destination.cargo(page)}
        for each in self.origin.cargo(page):
            if each.id not in here or here[each.id].titled_like(each).told != each.told:
                yield each.id

    def _lacking(self, page: Sequence[str]) -> Iterator[str]:
        here = self._known(page)
        wanted, found = self.origin.uids(page), self.destination.uids(page)
        return (each for each in page if each not in here or not wanted.get(each, set()) <= found.get(each, set()))

    def _bring(self, session_ids: Sequence[str]) -> None:
        for page in pages_of(session_ids):
            for some in grouped(self.origin.cargo(page)):
                self._step(partial(bring, store=self._store, origin=self.origin, cargos=some, ahead=self._ahead))

    def _carry_notes(self) -> None:
        """Give the target the notes that it lacks, but for those that a store keeps about itself."""
        rows = read(self._store, lambda tx: tx.rows(_NOTES))
        notes = {
            key: None if value is None else text_form(value)
            for key, value in rows
            if key not in OWN_KEYS and key != LAST_PRUNE and not key.startswith(OWN_PREFIX)
        }
        if notes:
            self._step(partial(_with_notes, notes=notes))


def _with_sessions(tx: Transaction, journal: Journal, cargos: Sequence[Cargo]) -> Journal:
    here = known_sessions(tx, [each.id for each in cargos])
    new = [each for each in cargos if each.id not in here]
    add_sessions(tx, new)
    return replace(journal, sessions=journal.sessions + len(new))


def _with_page(tx: Transaction, journal: Journal, page: Sequence[Message], cargos: Sequence[Cargo]) -> Journal:
    if newest_message(tx) > journal.after:
        # Somebody uses the target already, and has been given the ids that would come next.
        return replace(journal, mode="fill")
    journal = _with_sessions(tx, journal, cargos)
    here = known_sessions(tx, (each.session_id for each in page))
    # A message of no session is nobody's.
    messages = [each for each in page if each.session_id in here]
    add_messages(tx, messages)
    return replace(journal, after=page[-1].id, messages=journal.messages + len(messages))


def _with_notes(tx: Transaction, journal: Journal, notes: dict[str, str | None]) -> Journal:
    here = {key for key, _ in tx.rows(_NOTES)}
    lacking = [{"key": key, "value": value} for key, value in notes.items() if key not in here]
    tx.run_many(tx.dialect.upsert("state_meta", ["key"], ["value"]), lacking)
    return journal
