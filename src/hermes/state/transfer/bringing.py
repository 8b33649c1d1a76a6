"""Single sessions brought to the target: those that were changed while all were copied, or that it lacks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hermes.state.arrivals import Outcome, bring_in
from hermes.state.backlog import Unannounced
from hermes.state.engine import Transaction
from hermes.state.incoming import Incoming, fitting_title, incoming
from hermes.state.operations import Operations
from hermes.state.outgoing import StoredMessages, read_out
from hermes.state.transfer.cargo import Cargo
from hermes.state.transfer.form import Message
from hermes.state.transfer.journal import Journal
from hermes.state.transfer.loading import (
    add_renumbered,
    add_sessions,
    change_session,
    count_anew,
    known_sessions,
    remove_messages,
)
from hermes.state.transfer.reading import Origin


class _Here(NamedTuple):
    """A message of the target."""

    id: int
    active: int


def bring(
    tx: Transaction, journal: Journal, store: Operations, origin: Origin, cargos: Sequence[Cargo], ahead: set[str]
) -> Journal:
    """Bring sessions; what the target has of them is made the same, or stays if it is not this migration's.

    Those in which somebody has said something here already are put into `ahead`.
    """
    here = known_sessions(tx, [each.id for each in cargos])
    for cargo in cargos:
        if cargo.id not in here:
            add_sessions(tx, [cargo])
            journal = replace(journal, sessions=journal.sessions + 1)
        elif not journal.is_alone:
            journal = _merge(tx, journal, store, cargo.id)
            continue
        journal = _make_same(tx, journal, origin, cargo, ahead)
    return journal


def _make_same(tx: Transaction, journal: Journal, origin: Origin, cargo: Cargo, ahead: set[str]) -> Journal:
    here = {
        uid: _Here(message_id, active)
        for uid, message_id, active in tx.rows(
            "SELECT uid, id, active FROM messages WHERE session_id = :id", id=cargo.id
        )
    }
    ids = {uid: each.id for uid, each in here.items()}
    unknown = dict(here)
    added = 0
    for page in origin.messages_of(cargo.id):
        for message in page:
            unknown.pop(message.uid, None)
        _set_active(tx, here, page)
        new = add_renumbered(tx, cargo.id, [each for each in page if _is_due(each, here, journal)])
        ids |= new
        added += len(new)
    # What was copied and is there no more was deleted there; everything else was said here.
    gone = [each.id for each in unknown.values() if journal.is_alone and each.id <= journal.after]
    if gone:
        remove_messages(tx, cargo.id, gone)
    change_session(tx, cargo, ids)
    if len(unknown) > len(gone):
        count_anew(tx, cargo)
        ahead.add(cargo.id)
    is_out_of_order = added and journal.mode == "copy"
    return replace(journal, messages=journal.messages + added, mode="fill" if is_out_of_order else journal.mode)


def _is_due(message: Message, here: dict[str, _Here], journal: Journal) -> bool:
    """Whether a message is to be added now; as long as messages are copied in order, new ones come in their turn."""
    return message.uid not in here and not (journal.mode == "copy" and message.id > journal.after)


def _set_active(tx: Transaction, here: dict[str, _Here], page: Sequence[Message]) -> None:
    changes = [
        {"id": here[each.uid].id, "active": each.active}
        for each in page
        if each.uid in here and here[each.uid].active != each.active
    ]
    if changes:
        tx.run_many("UPDATE messages SET active = :active WHERE id = :id", changes)


def _merge(tx: Transaction, journal: Journal, store: Operations, session_id: str) -> Journal:
    """Add to a session that somebody uses what it lacks."""
    for session in _incoming(store, session_id):
        arrival = bring_in(Unannounced(tx), session, "merge", time.time())
        journal = replace(
            journal,
            sessions=journal.sessions + (arrival.outcome is Outcome.MERGED),
            messages=journal.messages + arrival.messages,
        )
    return journal


def _incoming(store: Operations, session_id: str) -> list[Incoming]:
    heads = read_out(store, [session_id], lambda found: [each.head for each in found])
    return [
        incoming(
            # What is a title there need not be one here.
            {**head, "title": fitting_title(head["title"]) if isinstance(head["title"], str) else None},
            time.time(),
            StoredMessages(store, session_id),
        )
        for head in heads
    ]
