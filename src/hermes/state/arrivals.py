"""Arrivals: sessions that are brought in, and what becomes of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from enum import StrEnum
from itertools import islice
from types import MappingProxyType
from typing import Literal, NamedTuple

from hermes.ids import new_session_id
from hermes.state.backlog import Unannounced
from hermes.state.bookings import book, book_missing
from hermes.state.drafts import Draft
from hermes.state.engine import Reading, Transaction
from hermes.state.imported import is_own, may_link
from hermes.state.incoming import Incoming, drafts_of, fitting_title, incoming
from hermes.state.kinds import ChildKind, is_listed, kind_from_markers, kind_from_parent
from hermes.state.messages import add_messages
from hermes.state.operations import Operations, fetch_session, hold_sessions, read
from hermes.state.outgoing import StoredMessages, choose, read_out
from hermes.state.owner import EVERYBODY
from hermes.state.sessions import insert_session, session_exists, set_chain_active, touch_chain
from hermes.state.titles import free_title

OnConflict = Literal["skip", "rename", "merge"]

SLICE = 100
"""How many messages are in memory at a time."""

MOST_GENERATIONS = 1_000
"""A family that is deeper is not linked any further: it would be walked through again for each of its members."""


class Outcome(StrEnum):
    """What became of a session that was brought in."""

    NEW = "new"
    RENAMED = "renamed"
    MERGED = "merged"
    """It was here, and got messages that it lacked."""
    SKIPPED = "skipped"
    """It was here, and stayed as it was."""
    KEPT = "kept"
    """It was made here, and stayed as it was although the file has messages that it lacks."""


class Arrival(NamedTuple):
    """What became of a session, its id here, and how many messages were added."""

    outcome: Outcome
    id: str
    messages: int


def bring_in(
    tx: Transaction, session: Incoming, on_conflict: OnConflict, now: float, renamed_to: str | None = None
) -> Arrival:
    """Insert a session with its messages, or deal with the one of its id that is here."""
    session_id, outcome = session.id, Outcome.NEW
    if session_exists(tx, session_id):
        if on_conflict == "skip":
            return Arrival(Outcome.SKIPPED, session_id, 0)
        if on_conflict == "merge":
            return _merge(tx, session, now)
        outcome = Outcome.RENAMED
        session_id = renamed_to or new_session_id(session.values["started_at"])
        if session_exists(tx, session_id):
            session_id = new_session_id(session.values["started_at"])
    insert_session(tx, {**session.values, "id": session_id, "parent_session_id": None}, EVERYBODY)
    _carry(tx, session_id, session)
    book(tx, session_id, [*session.opening, *session.usage])
    added = _add(tx, session_id, session, set(), now)
    _record_rewinds(tx, session_id, session, added.targets)
    if session.parent_id is not None:
        _link_when_possible(tx, session_id, session)
    _link_waiting(tx, session_id)
    return Arrival(outcome, session_id, added.messages)


def foresee(
    uids: Set[str], on_conflict: OnConflict, here: Set[str] | None, *, may_change: bool = True
) -> tuple[Outcome, int]:
    """What would become of a session with these messages, and how many would be added.

    `here` are the uids of the session of its id that is here, None if there is none; `may_change` says whether the file
    may add to it.
    """
    if here is None:
        return Outcome.NEW, len(uids)
    if on_conflict == "skip":
        return Outcome.SKIPPED, 0
    if on_conflict == "rename":
        return Outcome.RENAMED, len(uids)
    lacking = len(uids - here)
    if lacking and not may_change:
        return Outcome.KEPT, 0
    return (Outcome.MERGED if lacking else Outcome.SKIPPED), lacking


class Here(NamedTuple):
    """A session that is here."""

    uids: set[str]
    """Of its messages."""
    is_own: bool


def find_here(store: Operations, session_id: str) -> Here | None:
    """The session of this id that is here, None if there is none."""

    def find(tx: Reading) -> Here | None:
        row = fetch_session(tx, session_id, EVERYBODY)
        return None if row is None else Here(_known_uids(tx, session_id), is_own(row))

    return read(store, find)


def bring_in_together(
    store: Operations,
    sessions: Sequence[Incoming],
    on_conflict: OnConflict,
    now: float,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> list[Arrival]:
    """Bring in sessions, all of them or none; whoever does that has them indexed at the end (`index_backlog`).

    `renamed` are the ids that sessions get whose own are taken.
    """

    def work(tx: Transaction) -> list[Arrival]:
        quiet = Unannounced(tx)
        return [bring_in(quiet, each, on_conflict, now, renamed.get(each.id)) for each in sessions]

    return store._engine.write(work)


def sessions_of(store: Operations, now: float) -> Iterator[Incoming]:
    """The sessions of another store, as they can be brought in."""
    for chosen in choose(store):
        for head in read_out(store, [chosen.id], lambda found: [each.head for each in found]):
            # What is a title there need not be one here.
            title = fitting_title(head["title"]) if isinstance(head["title"], str) else None
            yield incoming({**head, "title": title}, now, StoredMessages(store, chosen.id))


def link_to_parent(
    tx: Transaction, child_id: str, parent_id: str, kind: str | None, *, adds_to_own: bool = False
) -> None:
    """Make a session the child of another, in its compression chain if it continues it; kind None: to be worked out.

    A session of a file that may not be the other's child stands for itself.
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
        set_chain_active(tx, child_id, child["last_active"])
        touch_chain(tx, root, child["chain_active"], EVERYBODY)


def _descends_from(tx: Transaction, session_id: str, ancestor_id: str) -> bool:
    """Whether a session is another, or stems from it: a family in which one is its own parent cannot be linked."""
    current: str | None = session_id
    seen: set[str] = set()
    while current is not None and current not in seen:
        if current == ancestor_id or len(seen) == MOST_GENERATIONS:
            return True
        seen.add(current)
        current = tx.value("SELECT parent_session_id FROM sessions WHERE id = :id", id=current)
    return False


def _link_when_possible(tx: Transaction, child_id: str, session: Incoming) -> None:
    """Link a session to its parent now, or when that is imported."""
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
    """Link the sessions that were imported before this one, their parent."""
    waiting = tx.rows("SELECT session_id, child_kind FROM pending_links WHERE parent_session_id = :id", id=parent_id)
    for child_id, kind in waiting:
        link_to_parent(tx, child_id, parent_id, kind)
    if waiting:
        tx.run("DELETE FROM pending_links WHERE parent_session_id = :id", id=parent_id)


class _Added(NamedTuple):
    messages: int
    targets: dict[str, int]
    """The ids of the messages that rewinds name."""


def _merge(tx: Transaction, session: Incoming, now: float) -> Arrival:
    """Give a session that is here the messages, the bookings and the title that it lacks; nothing of it is changed.

    One that is the user's own stays as it is, unless the file may add to it.
    """
    hold_sessions(tx, [session.id])
    here = fetch_session(tx, session.id, EVERYBODY)
    if session.latest is not None and not session.adds_to_own and here is not None and is_own(here):
        uids = {each.values["uid"] for each in drafts_of(session, now)}
        lacks = bool(uids - _known_uids(tx, session.id))
        return Arrival(Outcome.KEPT if lacks else Outcome.SKIPPED, session.id, 0)
    added = _add(tx, session.id, session, _known_uids(tx, session.id), now)
    book_missing(tx, session.id, session.usage)
    title, owner = tx.row("SELECT title, owner FROM sessions WHERE id = :id", id=session.id) or (None, None)
    if session.title is not None and title is None:
        given = free_title(tx, session.title, owner)
        tx.run("UPDATE sessions SET title = :title WHERE id = :id", id=session.id, title=given)
    return Arrival(Outcome.MERGED if added.messages else Outcome.SKIPPED, session.id, added.messages)


def _carry(tx: Transaction, session_id: str, session: Incoming) -> None:
    """Take over what a fresh session does not have: its end, marks, counters, and its title if that is free."""
    owner = session.values["owner"]
    values = {**session.carried, "title": None if session.title is None else free_title(tx, session.title, owner)}
    tx.run(
        f"UPDATE sessions SET {', '.join(f'{name} = :{name}' for name in values)} WHERE id = :id",
        id=session_id,
        **values,
    )


def _add(tx: Transaction, session_id: str, session: Incoming, known: set[str], now: float) -> _Added:
    """Insert the messages that are not known, and note each as known."""
    named = {each["target_uid"] for each in session.rewinds}
    count = 0
    targets: dict[str, int] = {}
    drafts = drafts_of(session, now)
    while some := list(islice(drafts, SLICE)):
        fresh = [each for each in some if _is_new(each, known)]
        # Each is known to be new, so nobody need look for it.
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


def _record_rewinds(tx: Transaction, session_id: str, session: Incoming, targets: Mapping[str, int]) -> None:
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
