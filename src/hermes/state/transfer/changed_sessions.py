"""Update single sessions of the target: those that changed during the copy, or that it lacks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hermes.state.engine import Transaction
from hermes.state.import_export.session_checks import CheckedSession, check_session, shorten_title
from hermes.state.import_export.session_reader import StoredMessages, read_sessions
from hermes.state.import_export.session_writer import ImportOutcome, write_session
from hermes.state.indexing.index_backlog import WithoutIndexing
from hermes.state.operations import Operations
from hermes.state.transfer.canonical_rows import Message
from hermes.state.transfer.origin import StoreReader
from hermes.state.transfer.progress import Progress
from hermes.state.transfer.session_bundle import SessionBundle
from hermes.state.transfer.target import (
    add_renumbered,
    add_sessions,
    change_session,
    known_sessions,
    recount_session,
    remove_messages,
)


class _TargetMessage(NamedTuple):
    """A message of the target."""

    id: int
    active: int


def update_sessions(
    tx: Transaction,
    progress: Progress,
    store: Operations,
    origin: StoreReader,
    bundles: Sequence[SessionBundle],
    ahead: set[str],
) -> Progress:
    """Add sessions or make them equal to the source; sessions that existed before only get what they lack.

    Sessions that have new messages in the target are added to `ahead`.
    """
    here = known_sessions(tx, [each.id for each in bundles])
    for bundle in bundles:
        if bundle.id not in here:
            add_sessions(tx, [bundle])
            progress = replace(progress, sessions=progress.sessions + 1)
        elif not progress.is_exclusive:
            progress = _merge(tx, progress, store, bundle.id)
            continue
        progress = _synchronize(tx, progress, origin, bundle, ahead)
    return progress


def _synchronize(
    tx: Transaction, progress: Progress, origin: StoreReader, bundle: SessionBundle, ahead: set[str]
) -> Progress:
    here = {
        uid: _TargetMessage(message_id, active)
        for uid, message_id, active in tx.rows(
            "SELECT uid, id, active FROM messages WHERE session_id = :id", id=bundle.id
        )
    }
    ids = {uid: each.id for uid, each in here.items()}
    unknown = dict(here)
    added = 0
    for page in origin.messages_of(bundle.id):
        for message in page:
            unknown.pop(message.uid, None)
        _set_active(tx, here, page)
        new = add_renumbered(tx, bundle.id, [each for each in page if _is_due(each, here, progress)])
        ids |= new
        added += len(new)
    # A copied message that the source no longer has was deleted there; other messages were added here.
    deleted = [each.id for each in unknown.values() if progress.is_exclusive and each.id <= progress.after]
    if deleted:
        remove_messages(tx, bundle.id, deleted)
    change_session(tx, bundle, ids)
    if len(unknown) > len(deleted):
        recount_session(tx, bundle)
        ahead.add(bundle.id)
    is_out_of_order = added and progress.mode == "copy"
    return replace(progress, messages=progress.messages + added, mode="fill" if is_out_of_order else progress.mode)


def _is_due(message: Message, here: dict[str, _TargetMessage], progress: Progress) -> bool:
    """Whether to add a message now; while messages are copied in order, newer ones come later."""
    return message.uid not in here and not (progress.mode == "copy" and message.id > progress.after)


def _set_active(tx: Transaction, here: dict[str, _TargetMessage], page: Sequence[Message]) -> None:
    changes = [
        {"id": here[each.uid].id, "active": each.active}
        for each in page
        if each.uid in here and here[each.uid].active != each.active
    ]
    if changes:
        tx.run_many("UPDATE messages SET active = :active WHERE id = :id", changes)


def _merge(tx: Transaction, progress: Progress, store: Operations, session_id: str) -> Progress:
    """Add missing messages to a session that is in use."""
    for session in _read_session(store, session_id):
        arrival = write_session(WithoutIndexing(tx), session, "merge", time.time())
        progress = replace(
            progress,
            sessions=progress.sessions + (arrival.outcome is ImportOutcome.MERGED),
            messages=progress.messages + arrival.messages,
        )
    return progress


def _read_session(store: Operations, session_id: str) -> list[CheckedSession]:
    heads = read_sessions(store, [session_id], lambda found: [each.head for each in found])
    return [
        check_session(
            # An old file may have a title that is not valid here.
            {**head, "title": shorten_title(head["title"]) if isinstance(head["title"], str) else None},
            time.time(),
            StoredMessages(store, session_id),
        )
        for head in heads
    ]
