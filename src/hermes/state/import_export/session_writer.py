"""Writes imported sessions to the store, and returns the result for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from enum import StrEnum
from itertools import islice
from types import MappingProxyType
from typing import Literal, NamedTuple

from hermes.ids import new_session_id
from hermes.state.engine import Reading, Transaction
from hermes.state.import_export.session_checks import CheckedSession, check_session, iter_drafts, shorten_title
from hermes.state.import_export.session_reader import StoredMessages, read_sessions, select_sessions
from hermes.state.indexing.index_backlog import WithoutIndexing
from hermes.state.messages.appending import add_messages
from hermes.state.messages.drafts import Draft
from hermes.state.operations import Operations, fetch_session, lock_sessions, read
from hermes.state.owner import EVERYBODY
from hermes.state.sessions.imported import is_own, may_link
from hermes.state.sessions.lineage.kinds import ChildKind, is_listed, kind_from_markers, kind_from_parent
from hermes.state.sessions.lineage.links import ancestors
from hermes.state.sessions.records import insert_session, note_chain_activity, session_exists, set_chain_activity
from hermes.state.sessions.titles import free_title
from hermes.state.usage.events import insert_events, insert_missing_events

OnConflict = Literal["skip", "rename", "merge"]

SLICE = 100
"""How many messages are in memory at a time."""

MOST_GENERATIONS = 1_000
"""A deeper family is not linked further, since each of its members would be walked again."""


class ImportOutcome(StrEnum):
    """The result for an imported session."""

    NEW = "new"
    RENAMED = "renamed"
    MERGED = "merged"
    """It existed here and got messages that it lacked."""
    SKIPPED = "skipped"
    """It existed here and was not changed."""
    KEPT = "kept"
    """It was created here and was not changed, although the file has messages that it lacks."""


class ImportResult(NamedTuple):
    """The result for a session, its id here, and the number of added messages."""

    outcome: ImportOutcome
    id: str
    messages: int


def write_session(
    tx: Transaction, session: CheckedSession, on_conflict: OnConflict, now: float, renamed_to: str | None = None
) -> ImportResult:
    """Insert a session with its messages; `on_conflict` decides if a session with its id exists."""
    session_id, outcome = session.id, ImportOutcome.NEW
    if session_exists(tx, session_id):
        if on_conflict == "skip":
            return ImportResult(ImportOutcome.SKIPPED, session_id, 0)
        if on_conflict == "merge":
            return _merge(tx, session, now)
        outcome = ImportOutcome.RENAMED
        session_id = renamed_to or new_session_id(session.values["started_at"])
        if session_exists(tx, session_id):
            session_id = new_session_id(session.values["started_at"])
    insert_session(tx, {**session.values, "id": session_id, "parent_session_id": None}, EVERYBODY)
    _carry(tx, session_id, session)
    insert_events(tx, session_id, [*session.opening, *session.usage])
    added = _add(tx, session_id, session, set(), now)
    _record_rewinds(tx, session_id, session, added.targets)
    if session.parent_id is not None:
        _link_when_possible(tx, session_id, session)
    _link_waiting(tx, session_id)
    return ImportResult(outcome, session_id, added.messages)


def preview_import(
    uids: Set[str], on_conflict: OnConflict, here: Set[str] | None, *, may_change: bool = True
) -> tuple[ImportOutcome, int]:
    """Return the result that importing a session with these messages would have, and the number of added messages.

    `here` are the uids of the session with its id, None if there is none; `may_change` says whether the file may add to
    it.
    """
    if here is None:
        return ImportOutcome.NEW, len(uids)
    if on_conflict == "skip":
        return ImportOutcome.SKIPPED, 0
    if on_conflict == "rename":
        return ImportOutcome.RENAMED, len(uids)
    lacking = len(uids - here)
    if lacking and not may_change:
        return ImportOutcome.KEPT, 0
    return (ImportOutcome.MERGED if lacking else ImportOutcome.SKIPPED), lacking


class StoredSession(NamedTuple):
    """A session of this store."""

    uids: set[str]
    """The uids of its messages."""
    is_own: bool


def find_stored_session(store: Operations, session_id: str) -> StoredSession | None:
    """Return the stored session with this id, None if there is none."""

    def find(tx: Reading) -> StoredSession | None:
        row = fetch_session(tx, session_id, EVERYBODY)
        return None if row is None else StoredSession(_known_uids(tx, session_id), is_own(row))

    return read(store, find)


def write_sessions(
    store: Operations,
    sessions: Sequence[CheckedSession],
    on_conflict: OnConflict,
    now: float,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> list[ImportResult]:
    """Import sessions, all of them or none; the caller runs `index_backlog` after the last ones.

    `renamed` are the new ids of sessions whose own ids are taken.
    """

    def work(tx: Transaction) -> list[ImportResult]:
        quiet = WithoutIndexing(tx)
        return [write_session(quiet, each, on_conflict, now, renamed.get(each.id)) for each in sessions]

    return store._engine.write(work)


def read_checked_sessions(store: Operations, now: float) -> Iterator[CheckedSession]:
    """Yield the sessions of another store, ready to be imported."""
    for chosen in select_sessions(store):
        for head in read_sessions(store, [chosen.id], lambda found: [each.head for each in found]):
            # A title of an older program may be no valid title here.
            title = shorten_title(head["title"]) if isinstance(head["title"], str) else None
            yield check_session({**head, "title": title}, now, StoredMessages(store, chosen.id))


def link_to_parent(
    tx: Transaction, child_id: str, parent_id: str, kind: str | None, *, adds_to_own: bool = False
) -> None:
    """Make a session the child of another, in its compression chain if it continues it; `None` derives the kind.

    A session of a file that may not be the other's child stays without a parent.
    """
    parent, child = fetch_session(tx, parent_id, EVERYBODY), fetch_session(tx, child_id, EVERYBODY)
    if parent is None or child is None or _descends_from(tx, parent_id, child_id):
        return
    if kind is None:
        kind = kind_from_markers(child["model_config"], is_old=True) or kind_from_parent(parent["end_reason"])
    kind = kind or None
    if not adds_to_own and not may_link(child["imported_from"], parent, kind):
        tx.run("UPDATE sessions SET child_kind = NULL WHERE id = :id AND child_kind = 'compression'", id=child_id)
        return
    root = (parent["chain_root"] or parent_id) if kind == ChildKind.COMPRESSION else None
    tx.run(
        """UPDATE sessions SET parent_session_id = :parent, child_kind = :kind, chain_root = :root, listed = :listed
           WHERE id = :id""",
        id=child_id,
        parent=parent_id,
        kind=kind,
        root=root,
        listed=int(is_listed(parent_id, kind)),
    )
    if root is not None:
        tx.run("UPDATE sessions SET chain_root = :root WHERE chain_root = :id", root=root, id=child_id)
        set_chain_activity(tx, child_id, child["last_active"])
        note_chain_activity(tx, root, child["chain_active"], EVERYBODY)


def _descends_from(tx: Transaction, session_id: str, ancestor_id: str) -> bool:
    """Whether a session is another one or its descendant; linking these two would make a ring."""
    line = ancestors(tx, [session_id], EVERYBODY, most=MOST_GENERATIONS + 1)
    return ancestor_id in line or len(line) > MOST_GENERATIONS


def _link_when_possible(tx: Transaction, child_id: str, session: CheckedSession) -> None:
    """Link a session to its parent, or note the link until the parent is imported."""
    parent_id, kind = session.parent_id, session.kind
    if parent_id is not None and session_exists(tx, parent_id):
        link_to_parent(tx, child_id, parent_id, kind, adds_to_own=session.adds_to_own)
        return
    tx.run(
        """INSERT INTO pending_links (session_id, parent_session_id, child_kind)
           VALUES (:child, :parent, :kind)""",
        child=child_id,
        parent=parent_id,
        kind=kind,
    )


def _link_waiting(tx: Transaction, parent_id: str) -> None:
    """Link the sessions that were imported before this one, which is their parent."""
    waiting = tx.rows("SELECT session_id, child_kind FROM pending_links WHERE parent_session_id = :id", id=parent_id)
    for child_id, kind in waiting:
        link_to_parent(tx, child_id, parent_id, kind)
    if waiting:
        tx.run("DELETE FROM pending_links WHERE parent_session_id = :id", id=parent_id)


class _Added(NamedTuple):
    messages: int
    targets: dict[str, int]
    """The ids of the messages that rewinds name."""


def _merge(tx: Transaction, session: CheckedSession, now: float) -> ImportResult:
    """Add the messages, usage events and title that a stored session lacks; nothing that it has is changed.

    A session of the user's own stays as it is, unless the file may add to it.
    """
    lock_sessions(tx, [session.id])
    here = fetch_session(tx, session.id, EVERYBODY)
    if session.latest is not None and not session.adds_to_own and here is not None and is_own(here):
        uids = {each.values["uid"] for each in iter_drafts(session, now)}
        lacks = bool(uids - _known_uids(tx, session.id))
        return ImportResult(ImportOutcome.KEPT if lacks else ImportOutcome.SKIPPED, session.id, 0)
    added = _add(tx, session.id, session, _known_uids(tx, session.id), now)
    insert_missing_events(tx, session.id, session.usage)
    title, owner = tx.row("SELECT title, owner FROM sessions WHERE id = :id", id=session.id) or (None, None)
    if session.title is not None and title is None:
        given = free_title(tx, session.title, owner)
        tx.run("UPDATE sessions SET title = :title WHERE id = :id", id=session.id, title=given)
    return ImportResult(ImportOutcome.MERGED if added.messages else ImportOutcome.SKIPPED, session.id, added.messages)


def _carry(tx: Transaction, session_id: str, session: CheckedSession) -> None:
    """Set the columns that a new session does not have: its end, marks, counters, and a title that is free."""
    owner = session.values["owner"]
    values = {**session.carried, "title": None if session.title is None else free_title(tx, session.title, owner)}
    tx.run(
        f"UPDATE sessions SET {', '.join(f'{name} = :{name}' for name in values)} WHERE id = :id",
        id=session_id,
        **values,
    )


def _add(tx: Transaction, session_id: str, session: CheckedSession, known: set[str], now: float) -> _Added:
    """Insert the messages whose uids are not in `known`, and add these uids to it."""
    named = {each["target_uid"] for each in session.rewinds}
    count = 0
    targets: dict[str, int] = {}
    drafts = iter_drafts(session, now)
    while some := list(islice(drafts, SLICE)):
        fresh = [each for each in some if _is_new(each, known)]
        # Each is new, so the store need not look for its uid.
        ids = add_messages(tx, session_id, [each._replace(is_repeatable=False) for each in fresh], EVERYBODY)
        count += len(fresh)
        targets |= {
            each.values["uid"]: message_id
            for each, message_id in zip(fresh, ids, strict=True)
            if each.values["uid"] in named
        }
    return _Added(count, targets)


def _is_new(message: Draft, known: set[str]) -> bool:
    uid = message.values["uid"]
    if uid in known:
        return False
    known.add(uid)
    return True


def _known_uids(tx: Reading, session_id: str) -> set[str]:
    return {uid for (uid,) in tx.rows("SELECT uid FROM messages WHERE session_id = :id", id=session_id)}


def _record_rewinds(tx: Transaction, session_id: str, session: CheckedSession, targets: Mapping[str, int]) -> None:
    tx.run_many(
        """INSERT INTO rewinds (session_id, action, target_message_id, message_count, at)
           VALUES (:session_id, :action, :target, :message_count, :at)""",
        [
            {
                "session_id": session_id,
                "action": each["action"],
                "target": targets.get(each["target_uid"], 0),
                "message_count": each["message_count"],
                "at": each["at"],
            }
            for each in session.rewinds
        ],
    )
