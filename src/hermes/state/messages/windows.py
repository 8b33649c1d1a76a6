"""Read the messages around one message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from hermes.state.engine import Reading
from hermes.state.filters import parse_names
from hermes.state.operations import Operations, placeholders, session_owner_condition
from hermes.state.owner import Asker, OwnerName
from hermes.state.rows import Row, message_row, require_integer

if TYPE_CHECKING:
    from hermes.state.row_types import AnchoredView, MessageRow, MessagesAround


class Anchor(NamedTuple):
    """A message, and the session that it is expected in."""

    session_id: str
    message_id: int


class Windows(Operations):
    """Operations that read a part of a conversation."""

    def get_messages_around(
        self,
        session_id: str,
        around_message_id: int,
        window: int = 5,
        *,
        owner: OwnerName = None,
        include_inactive: bool = False,
    ) -> MessagesAround:
        """Return up to `window` messages on either side of one; a count below `window` means the session ends there.

        Undone messages are left out, and an undone message has no window, unless `include_inactive` is set.
        """
        asker = self._asker_for(owner)
        size = max(0, require_integer(window, "window"))
        anchor = Anchor(session_id, around_message_id)
        return self._engine.read(lambda tx: _around(tx, [anchor], size, asker, include_inactive)[0])

    def get_anchored_view(
        self,
        session_id: str,
        around_message_id: int,
        window: int = 5,
        bookend: int = 3,
        keep_roles: Sequence[str] | None = ("user", "assistant"),
        *,
        owner: OwnerName = None,
        include_inactive: bool = False,
    ) -> AnchoredView:
        """Return a window of the chosen roles, with the first and last messages of the session.

        Undone messages are left out as in `get_messages_around`.
        """
        asker = self._asker_for(owner)
        size, ends = max(0, require_integer(window, "window")), max(0, require_integer(bookend, "bookend"))
        roles = parse_names(keep_roles, "keep_roles")

        def view(tx: Reading) -> AnchoredView:
            anchor = Anchor(session_id, around_message_id)
            return anchored_views(tx, [anchor], size, ends, roles, asker, include_inactive=include_inactive)[0]

        return self._engine.read(view)


def anchored_views(
    tx: Reading,
    anchors: Sequence[Anchor],
    window: int,
    bookend: int,
    keep_roles: Sequence[str] | None,
    asker: Asker,
    *,
    include_inactive: bool = False,
) -> list[AnchoredView]:
    """Return the view around each of several messages, reading them together."""
    found = _around(tx, anchors, window, asker, include_inactive)
    queries = [
        _bookend(anchor.session_id, side, around["window"][edge]["id"], bookend, keep_roles, include_inactive)
        for anchor, around in zip(anchors, found, strict=True)
        if around["window"]
        for side, edge in (("<", 0), (">", -1))
    ]
    bookends = iter(_select(tx, queries))
    views: list[AnchoredView] = []
    for anchor, around in zip(anchors, found, strict=True):
        start, end = (next(bookends), next(bookends)[::-1]) if around["window"] else ([], [])
        kept = [
            message
            for message in around["window"]
            if keep_roles is None or message["role"] in keep_roles or message["id"] == anchor.message_id
        ]
        views.append({**around, "window": kept, "bookend_start": start, "bookend_end": end})
    return views


def _around(
    tx: Reading, anchors: Sequence[Anchor], window: int, asker: Asker, include_inactive: bool
) -> list[MessagesAround]:
    shown = f"{'' if include_inactive else 'AND active = 1'} {session_owner_condition(asker)}"
    conditions = (
        f"session_id = :id AND id = :anchor {shown}",
        f"session_id = :id AND id < :anchor {shown} ORDER BY id DESC LIMIT :limit",
        f"session_id = :id AND id > :anchor {shown} ORDER BY id LIMIT :limit",
    )
    queries: list[tuple[str, Row]] = []
    for session_id, anchor_id in anchors:
        values: Row = {"id": session_id, "anchor": anchor_id, "limit": window, "whose": asker.stored}
        queries += [(condition, values) for condition in conditions]
    rows = _select(tx, queries)
    found: list[MessagesAround] = []
    for own, before, after in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        if not own:  # there is no such message, or it is not shown
            before, after = [], []
        messages = [*reversed(before), *own, *after]
        found.append({"window": messages, "messages_before": len(before), "messages_after": len(after)})
    return found


def _bookend(
    session_id: str, side: str, edge_id: int, size: int, keep_roles: Sequence[str] | None, include_inactive: bool
) -> tuple[str, Row]:
    """Return the query for the first messages before (`<`) or the last ones after (`>`) an edge, without empty ones."""
    listed, roles = placeholders("role", keep_roles or ())
    condition = f"""session_id = :id AND id {side} :edge AND content IS NOT NULL AND content <> ''
        {"" if keep_roles is None else f"AND role IN ({listed})"} {"" if include_inactive else "AND active = 1"}
        ORDER BY id {"" if side == "<" else "DESC"} LIMIT :size"""
    return condition, {"id": session_id, "edge": edge_id, "size": size, **roles}


def _select(tx: Reading, queries: Sequence[tuple[str, Row]]) -> list[list[MessageRow]]:
    """Return the messages for each of several conditions."""
    table = tx.dialect.by_key("messages")
    found = tx.tables([(f"SELECT * FROM {table} WHERE {condition}", values) for condition, values in queries])
    return [[cast("MessageRow", message_row(columns, row)) for row in rows] for columns, rows in found]
