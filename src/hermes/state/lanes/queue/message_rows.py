"""Rows of the inbox and of turns, and how their states change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from hermes.errors import InvalidValue
from hermes.state.engine import Transaction, Values
from hermes.state.lanes.identity import decode_payload
from hermes.state.lanes.types import MessageKind
from hermes.state.operations import chunks, placeholders
from hermes.state.rows import decode_text, require_integer

if TYPE_CHECKING:
    from hermes.state.lanes.types import InboxRow, TurnRow

KINDS: tuple[str, ...] = get_args(MessageKind)
MAX_ATTEMPTS = 3
"""A message whose turn failed or was lost this often, without progress, is not tried again."""
MAX_STARTS = 25
"""A message whose turns made progress but were lost this often is parked."""

_INBOX = (
    *("id", "uid", "lane_id", "session_key", "kind", "state", "reason", "attempts", "starts", "platform", "account"),
    *("chat_id", "message_ref", "message_id", "delivery_id", "turn_id", "accepted_at", "started_at", "finished_at"),
    *("payload",),
)
_TURN = (
    *("turn_id", "lane_id", "session_key", "session_id", "node", "token", "state", "reason", "progress", "note"),
    *("started_at", "progressed_at", "finished_at"),
)
INBOX = ", ".join(_INBOX)
"""The columns of `inbox_row`."""
TURN = ", ".join(_TURN)
"""The columns of `turn_row`."""
TURN_WIDTH = len(_TURN)
TURN_OF_LANE = f"""SELECT {", ".join(f"t.{name}" for name in _TURN)}, i.id, i.attempts, i.starts FROM turns t
                   LEFT JOIN inbox i ON i.lane_id = t.lane_id AND i.is_open = 1 AND i.turn_id = t.turn_id
                   WHERE t.turn_id = :turn AND t.lane_id = :locked ORDER BY i.id"""
"""A turn of the locked lane, with the ids, attempts and starts of its open messages, one in each row."""


def inbox_row(values: Values) -> InboxRow:
    """Return a message from the columns of `INBOX`."""
    row: dict[str, Any] = dict(zip(_INBOX, values, strict=True))
    _restore_names(row)
    ref = row.pop("message_ref")
    row["message_id"] = ref if row["message_id"] is None else row["message_id"]
    for name in ("platform", "account", "chat_id", "message_id", "delivery_id"):
        row[name] = decode_text(row[name])
    row["payload"] = decode_payload(row["payload"])
    return cast("InboxRow", row)


def turn_row(values: Values) -> TurnRow:
    """Return a turn from the columns of `TURN`."""
    row: dict[str, Any] = dict(zip(_TURN, values, strict=True))
    _restore_names(row)
    row["node"], row["note"] = decode_text(row["node"]), decode_payload(row["note"])
    return cast("TurnRow", row)


def end_messages(
    tx: Transaction, lane_id: str, turn_id: str, state: str, reason: str | None, now: float, *, is_kept: bool = False
) -> None:
    """Move all messages of a turn to an end state; unless it is kept for an operator, their payload is removed."""
    payload = "" if is_kept else ", payload = NULL"
    tx.send(
        f"""UPDATE inbox SET state = :state, is_open = 0, reason = :reason, finished_at = :now,
                dead_at = :dead {payload}
            WHERE lane_id = :lane AND is_open = 1 AND turn_id = :turn""",
        lane=lane_id,
        turn=turn_id,
        state=state,
        reason=reason,
        now=now,
        dead=now if is_kept else 0.0,
    )


def return_messages(tx: Transaction, message_ids: Sequence[int], reason: str | None, *, is_uncharged: bool) -> None:
    """Let running messages wait again, and count the attempt unless it is uncharged."""
    attempts = ", attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END" if is_uncharged else ""
    for some in chunks(message_ids):
        listed, values = placeholders("id", some)
        tx.send(
            f"UPDATE inbox SET state = 'accepted', reason = :reason, turn_id = NULL {attempts} WHERE id IN ({listed})",
            reason=reason,
            **values,
        )


def give_up_messages(tx: Transaction, message_ids: Sequence[int], state: str, reason: str, now: float) -> None:
    """Move messages to `dead` or `parked`, where they wait for an operator."""
    for some in chunks(message_ids):
        listed, values = placeholders("id", some)
        tx.send(
            f"""UPDATE inbox SET state = :state, is_open = 0, reason = :reason, finished_at = :now, dead_at = :now
                WHERE id IN ({listed})""",
            state=state,
            reason=reason,
            now=now,
            **values,
        )


def end_turn(tx: Transaction, lane_id: str, turn_id: str, state: str, reason: str | None, now: float) -> None:
    """Store how a turn ended, and the session that its lane uses."""
    tx.send(
        """UPDATE turns SET state = :state, reason = :reason, finished_at = :now,
               session_id = COALESCE((SELECT l.session_id FROM lanes l WHERE l.id = :lane), session_id)
           WHERE turn_id = :turn""",
        lane=lane_id,
        turn=turn_id,
        state=state,
        reason=reason,
        now=now,
    )


def require_ids(value: Any, what: str = "message_ids") -> list[int]:
    """Return ids of messages, each once."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise InvalidValue(f"{what} must be a list of ids, not {type(value).__name__}")
    return list(dict.fromkeys(require_integer(each, what) for each in value))


def kind_condition(kinds: Any) -> tuple[str, dict[str, Any]]:
    """Return a condition for messages of some kinds, and its values; None stands for all kinds."""
    if kinds is None:
        return "", {}
    if isinstance(kinds, str) or not isinstance(kinds, Collection) or not set(kinds) <= set(KINDS):
        raise InvalidValue(f"kinds must be a list of {', '.join(KINDS)}, not {kinds!r}")
    listed, values = placeholders("kind", list(kinds))
    return f"AND kind IN ({listed})", values


def _restore_names(row: dict[str, Any]) -> None:
    lane_id, key = row.pop("lane_id"), row["session_key"]
    row["session_key"] = lane_id if key is None else decode_text(key)
    row["reason"] = decode_text(row["reason"])
