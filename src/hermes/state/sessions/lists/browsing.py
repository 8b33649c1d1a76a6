"""Browsing: pages of the list in several orders, filtered by words of titles and first messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hermes.state.engine import Reading
from hermes.state.operations import (
    Operations,
    can_see_owner,
    chunks,
    fetch_sessions,
    owner_condition,
    placeholders,
    read,
    read_for,
)
from hermes.state.owner import Asker, OwnerName
from hermes.state.rows import Row
from hermes.state.sessions.lists.listing import add_words, make_filter, show_as_tips, walk_list
from hermes.state.sessions.lists.order import BY_ACTIVITY, BY_MESSAGES, BY_START, BY_TITLE

_COLUMNS = (
    *("id", "parent_session_id", "chain_root", "title", "preview", "source", "started_at", "last_active"),
    *("message_count", "archived", "pinned", "model", "estimated_cost_usd", "actual_cost_usd"),
)


class Order(StrEnum):
    """What comes first."""

    ACTIVE = "active"
    STARTED = "started"
    MESSAGES = "messages"
    TITLE = "title"


_ORDERS = {
    Order.ACTIVE: BY_ACTIVITY,
    Order.STARTED: BY_START,
    Order.MESSAGES: BY_MESSAGES,
    Order.TITLE: BY_TITLE,
}


@dataclass(frozen=True, slots=True)
class BrowseFilter:
    """Which conversations to show, and in which order."""

    words: str = ""
    """Each is in a title, a first message, an id or the source of the conversation; upper or lower case."""
    order: Order = Order.ACTIVE
    source: str | None = None
    hidden_sources: tuple[str, ...] = ()
    archived_only: bool = False


@dataclass(frozen=True, slots=True)
class ListedConversation:
    """A conversation as a list shows it: a compressed one as its tip."""

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
    model: str | None = None
    cost_usd: float | None = None
    """Of all its sessions; None if unknown."""
    cursor: tuple[Any, ...] = ()
    """Its place in the order of the list that it is from."""


def list_conversations(
    store: Operations,
    wanted: BrowseFilter,
    limit: int,
    after: ListedConversation | None = None,
    *,
    owner: OwnerName = None,
) -> list[ListedConversation]:
    """Return the next conversations after one, or the first; by activity and by start this is a walk along an index."""
    order = _ORDERS[wanted.order]
    columns = ", ".join(dict.fromkeys((*_COLUMNS, *order.columns)))
    ranges = {f"listed = 1 AND archived = {int(wanted.archived_only)}": order}
    edge = None if after is None else after.cursor

    def page(tx: Reading, asker: Asker) -> list[ListedConversation]:
        conditions = make_filter(wanted.source, wanted.hidden_sources, 0, asker)
        add_words(conditions, wanted.words)
        rows = walk_list(tx, conditions, ranges, order, limit, edge=edge, columns=columns)
        shown = show_as_tips(tx, rows, asker, ", ".join(_COLUMNS))
        costs = _costs_of_chains(tx, shown)
        return [_conversation(each, costs, order.edge_of(row)) for row, each in zip(rows, shown, strict=True)]

    return read_for(store, owner, page)


def find_conversations(
    store: Operations, session_ids: Sequence[str], *, owner: OwnerName = None
) -> dict[str, ListedConversation]:
    """Return the conversation that each session belongs to; a session that does not exist has none."""
    return read_for(store, owner, lambda tx, asker: _conversations_with(tx, session_ids, asker))


def conversation_session_ids(store: Operations, conversation: ListedConversation) -> list[str]:
    """Return every session of a conversation, the first before its continuations."""
    rows = read(
        store,
        lambda tx: tx.rows(
            """SELECT id FROM sessions WHERE id = :root OR chain_root = :root
               ORDER BY CASE WHEN id = :root THEN 0 ELSE 1 END, started_at, id""",
            root=conversation.root_id,
        ),
    )
    return [row[0] for row in rows]


def _conversations_with(tx: Reading, session_ids: Sequence[str], asker: Asker) -> dict[str, ListedConversation]:
    roots: dict[str, str] = {}
    for some in chunks(session_ids):
        listed, values = placeholders("id", some)
        sql = f"SELECT id, COALESCE(chain_root, id) FROM sessions WHERE id IN ({listed}) {owner_condition(asker)}"
        roots.update(tx.rows(sql, whose=asker.stored, **values))
    columns = ", ".join((*_COLUMNS, "owner"))
    first = fetch_sessions(tx, list(dict.fromkeys(roots.values())), columns)
    rows = [{**row} for row in first.values() if can_see_owner(asker, row["owner"])]
    shown = {row["id"]: each for row, each in zip(rows, show_as_tips(tx, rows, asker, columns), strict=True)}
    costs = _costs_of_chains(tx, shown.values())
    return {each: _conversation(shown[root], costs) for each, root in roots.items() if root in shown}


def _costs_of_chains(tx: Reading, rows: Iterable[Row]) -> dict[str, float]:
    """Return the known costs of compressed conversations, by their first session; the rows are their tips."""
    costs: dict[str, float] = {}
    for some in chunks([row["_lineage_root_id"] for row in rows if "_lineage_root_id" in row]):
        listed, values = placeholders("root", some)
        sql = f"""SELECT COALESCE(chain_root, id), COALESCE(actual_cost_usd, estimated_cost_usd)
                  FROM sessions WHERE chain_root IN ({listed}) OR id IN ({listed})"""
        for root, cost in tx.rows(sql, **values):
            if cost is not None:
                costs[root] = costs.get(root, 0.0) + float(cost)
    return costs


def _own_cost(row: Row) -> float | None:
    cost = row["estimated_cost_usd"] if row["actual_cost_usd"] is None else row["actual_cost_usd"]
    return None if cost is None else float(cost)


def _conversation(row: Row, costs: Mapping[str, float], cursor: tuple[Any, ...] = ()) -> ListedConversation:
    is_compressed = "_lineage_root_id" in row
    return ListedConversation(
        id=row["id"],
        root_id=row["_lineage_root_id"] if is_compressed else row["id"],
        title=row["title"],
        preview=row["preview"] or "",
        source=row["source"],
        started_at=row["started_at"],
        last_active=row["last_active"] or row["started_at"],
        message_count=row["message_count"] or 0,
        is_archived=bool(row["archived"]),
        is_pinned=bool(row["pinned"]),
        model=row["model"],
        cost_usd=costs.get(row["_lineage_root_id"]) if is_compressed else _own_cost(row),
        cursor=cursor,
    )
