"""Browsing: pages of conversations in several orders, narrowed by words of their titles and beginnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hermes.state.engine import Reading
from hermes.state.operations import LIKE_ESCAPES, UNLIMITED, Operations, chunks, placeholders, read
from hermes.state.rows import Row, session_row

LOWER_ASCII = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class Order(StrEnum):
    """What comes first."""

    ACTIVE = "active"
    STARTED = "started"
    MESSAGES = "messages"
    TITLE = "title"


@dataclass(frozen=True, slots=True)
class BrowseFilter:
    """Which conversations to show, and in which order."""

    words: str = ""
    """Each of them stands in the title, the beginning, the id or the source, in capitals or not."""
    order: Order = Order.ACTIVE
    source: str | None = None
    hidden_sources: tuple[str, ...] = ()
    archived_only: bool = False


@dataclass(frozen=True, slots=True)
class ListedConversation:
    """A conversation as it stands in a list: one that was compressed by its newest session."""

    id: str
    root_id: str
    """Its first session; the same unless it was compressed."""
    title: str | None
    preview: str
    source: str
    started_at: float
    last_active: float
    message_count: int
    is_archived: bool
    is_pinned: bool
    cursor: tuple[Any, ...] = ()
    """Where it stands in the order in which it was asked for."""


# The newest session of a chain is its tip; one that was never compressed has none.
_SOURCE = """sessions r LEFT JOIN sessions t ON t.id = (
    SELECT c.id FROM sessions c WHERE c.chain_root = r.id AND c.child_kind = 'compression'
    ORDER BY c.started_at DESC, c.id DESC LIMIT 1)"""
_TITLE = "CASE WHEN t.id IS NULL THEN r.title ELSE t.title END"
_MESSAGES = "COALESCE(t.message_count, r.message_count, 0)"
_SHOWN = f"""COALESCE(t.id, r.id) AS id, r.id AS root_id, {_TITLE} AS title,
    CASE WHEN t.id IS NULL THEN r.preview ELSE t.preview END AS preview, r.source AS source,
    r.started_at AS started_at, COALESCE(t.last_active, r.last_active, r.started_at) AS last_active,
    {_MESSAGES} AS message_count, r.archived AS archived, r.pinned AS pinned"""
_KEYS = {
    Order.ACTIVE: ("r.active_tick", "r.chain_active", "r.started_at", "r.id"),
    Order.STARTED: ("r.started_at", "r.id"),
    Order.MESSAGES: (_MESSAGES, "r.started_at", "r.id"),
    Order.TITLE: (f"CASE WHEN {_TITLE} IS NULL THEN 1 ELSE 0 END", f"LOWER(COALESCE({_TITLE}, ''))", "r.id"),
}
_NAMES = (
    "LOWER(concat_ws(' ', r.title, r.preview, r.id, r.source))",
    "LOWER(concat_ws(' ', t.title, t.preview, t.id))",
)


def list_conversations(
    store: Operations,
    wanted: BrowseFilter,
    limit: int,
    after: ListedConversation | None = None,
    *,
    owner: str | None = None,
) -> list[ListedConversation]:
    """The next conversations behind one, or the first; by activity and by start this is a walk along an index."""
    conditions, values = _conditions(wanted, owner)
    keys = _KEYS[wanted.order]
    direction = "" if wanted.order is Order.TITLE else "DESC"
    if after is not None:
        edge, bound = placeholders("edge", after.cursor)
        conditions.append(f"({', '.join(keys)}) {'<' if direction else '>'} ({edge})")
        values |= bound
    elif wanted.order is Order.ACTIVE:
        # Says nothing but which index to walk.
        conditions.append("r.active_tick <= :newest_tick")
        values["newest_tick"] = UNLIMITED
    named = ", ".join(f"{key} AS key{number}" for number, key in enumerate(keys))
    sql = f"""SELECT {_SHOWN}, {named} FROM {_SOURCE} WHERE {" AND ".join(conditions)}
              ORDER BY {", ".join(f"{key} {direction}" for key in keys)} LIMIT :size"""
    columns, rows = read(store, lambda tx: tx.table(sql, size=limit, **values))
    return [_conversation(session_row(columns, row)) for row in rows]


def find_conversations(
    store: Operations, session_ids: Sequence[str], *, owner: str | None = None
) -> dict[str, ListedConversation]:
    """The conversation that each session is a part of; a session that is not there has none."""
    return read(store, lambda tx: _conversations_with(tx, session_ids, owner))


def conversation_session_ids(store: Operations, conversation: ListedConversation) -> list[str]:
    """Every session of a conversation, the first before those in which it goes on."""
    rows = read(
        store,
        lambda tx: tx.rows(
            """SELECT id FROM sessions WHERE id = :root OR chain_root = :root
               ORDER BY CASE WHEN id = :root THEN 0 ELSE 1 END, started_at, id""",
            root=conversation.root_id,
        ),
    )
    return [row[0] for row in rows]


def _conversations_with(tx: Reading, session_ids: Sequence[str], owner: str | None) -> dict[str, ListedConversation]:
    found: dict[str, ListedConversation] = {}
    scope = "" if owner is None else "AND r.owner = :owner"
    for some in chunks(session_ids):
        listed, values = placeholders("id", some)
        roots: dict[str, str] = dict(
            tx.rows(f"SELECT id, COALESCE(chain_root, id) FROM sessions WHERE id IN ({listed})", **values)
        )
        listed, values = placeholders("root", list(dict.fromkeys(roots.values())))
        columns, rows = tx.table(
            f"SELECT {_SHOWN} FROM {_SOURCE} WHERE r.id IN ({listed}) {scope}", owner=owner, **values
        )
        by_root = {each.root_id: each for each in (_conversation(session_row(columns, row)) for row in rows)}
        found |= {each: by_root[root] for each, root in roots.items() if root in by_root}
    return found


def _conditions(wanted: BrowseFilter, owner: str | None) -> tuple[list[str], Row]:
    conditions = [f"r.listed = 1 AND r.archived = {int(wanted.archived_only)}"]
    values: Row = {}
    if wanted.source is not None:
        conditions.append("r.source = :source")
        values["source"] = wanted.source
    if wanted.hidden_sources:
        listed, bound = placeholders("hidden", wanted.hidden_sources)
        conditions.append(f"r.source NOT IN ({listed})")
        values |= bound
    if owner is not None:
        conditions.append("r.owner = :owner")
        values["owner"] = owner
    patterns = 0
    for word in wanted.words.split():
        alternatives = []
        for form in _forms(word):
            values[f"word{patterns}"] = "%" + form.translate(LIKE_ESCAPES) + "%"
            alternatives += [f"{name} LIKE :word{patterns} ESCAPE '!'" for name in _NAMES]
            patterns += 1
        conditions.append(f"({' OR '.join(alternatives)})")
    return conditions, values


def _forms(word: str) -> list[str]:
    """A word as it may stand in a text that LOWER was asked to put into small letters, which not every engine can."""
    forms = (word.lower(), word, word.upper(), word.title())
    return list(dict.fromkeys(form.translate(LOWER_ASCII) for form in forms))


def _conversation(row: Row) -> ListedConversation:
    keys = [name for name in row if name.startswith("key")]
    return ListedConversation(
        id=row["id"],
        root_id=row["root_id"],
        title=row["title"],
        preview=row["preview"] or "",
        source=row["source"],
        started_at=row["started_at"],
        last_active=row["last_active"],
        message_count=row["message_count"],
        is_archived=bool(row["archived"]),
        is_pinned=bool(row["pinned"]),
        cursor=tuple(row[name] for name in keys),
    )
