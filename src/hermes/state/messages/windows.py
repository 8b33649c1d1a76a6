"""Read the messages around one message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from hermes.state.engine import Reading
from hermes.state.filters import parse_names
from hermes.state.operations import Operations, placeholders, session_owner_condition
from hermes.state.owner import Asker, OwnerName
from hermes.state.rows import message_row, require_integer

if TYPE_CHECKING:
    from hermes.state.row_types import AnchoredView, MessageRow, MessagesAround


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
        return self._engine.read(lambda tx: _around(tx, session_id, around_message_id, size, asker, include_inactive))

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
            around = _around(tx, session_id, around_message_id, size, asker, include_inactive)
            window_rows = around["window"]
            if not window_rows:
                return {**around, "bookend_start": [], "bookend_end": []}
            kept = [
                message
                for message in window_rows
                if roles is None or message["role"] in roles or message["id"] == around_message_id
            ]
            return {
                **around,
                "window": kept,
                "bookend_start": _bookend(tx, session_id, "<", window_rows[0]["id"], ends, roles, include_inactive),
                "bookend_end": _bookend(tx, session_id, ">", window_rows[-1]["id"], ends, roles, include_inactive),
            }

        return self._engine.read(view)


def _around(
    tx: Reading, session_id: str, anchor_id: int, window: int, asker: Asker, include_inactive: bool
) -> MessagesAround:
    visible = "" if include_inactive else "AND active = 1"
    anchor = _select(
        tx,
        f"session_id = :id AND id = :anchor {visible} {session_owner_condition(asker)}",
        id=session_id,
        anchor=anchor_id,
        whose=asker.stored,
    )
    if not anchor:
        return {"window": [], "messages_before": 0, "messages_after": 0}
    side = {"id": session_id, "anchor": anchor_id, "limit": window}
    before = _select(tx, f"session_id = :id AND id < :anchor {visible} ORDER BY id DESC LIMIT :limit", **side)
    after = _select(tx, f"session_id = :id AND id > :anchor {visible} ORDER BY id LIMIT :limit", **side)
    return {
        "window": [*reversed(before), *anchor, *after],
        "messages_before": len(before),
        "messages_after": len(after),
    }


def _bookend(
    tx: Reading,
    session_id: str,
    side: str,
    edge_id: int,
    size: int,
    keep_roles: Sequence[str] | None,
    include_inactive: bool,
) -> list[MessageRow]:
    """Return the session's first messages before (`<`) or last messages after (`>`) an edge, without empty ones."""
    listed, roles = placeholders("role", keep_roles or ())
    found = _select(
        tx,
        f"""session_id = :id AND id {side} :edge AND content IS NOT NULL AND content <> ''
            {"" if keep_roles is None else f"AND role IN ({listed})"} {"" if include_inactive else "AND active = 1"}
            ORDER BY id {"" if side == "<" else "DESC"} LIMIT :size""",
        id=session_id,
        edge=edge_id,
        size=size,
        **roles,
    )
    return found if side == "<" else found[::-1]


def _select(tx: Reading, condition: str, **values: Any) -> list[MessageRow]:
    columns, rows = tx.table(f"SELECT * FROM {tx.dialect.by_key('messages')} WHERE {condition}", **values)
    return [cast("MessageRow", message_row(columns, row)) for row in rows]
