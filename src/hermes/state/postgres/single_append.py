"""The statement that stores one message as a whole transaction, in one round trip.

It fits most messages: those of a session that has messages already, that is not a later part of a compression chain,
and that was not active after the message. For others it changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from hermes.state.engine import Transaction, Values

_TYPES = {"timestamp": "double precision", "token_count": "bigint", "observed": "bigint"}
"""The types of columns that are no text."""


@lru_cache(maxsize=256)
def append_statement(columns: Sequence[str], owner_condition: str) -> str:
    """Return the statement for a message with these columns; it returns the id, or no row if it does not fit.

    The update locks the session before the message gets its id: ids of a session are in the order of its commits.
    """
    values = ", ".join(f"CAST(:{each} AS {_TYPES.get(each, 'text')})" for each in columns)
    return f"""
        WITH session AS (
            UPDATE sessions
            SET message_count = message_count + 1, preview = COALESCE(preview, :preview), last_active = :timestamp,
                chain_active = GREATEST(chain_active, :timestamp), active_tick = GREATEST(active_tick, :tick)
            WHERE id = :session_id AND message_count > 0 AND chain_root IS NULL AND last_active <= :timestamp
                {owner_condition}
            RETURNING id)
        INSERT INTO messages (id, session_id, {", ".join(columns)})
        SELECT nextval('messages_id_seq'), session.id, {values} FROM session
        RETURNING id"""


def find_message(tx: Transaction, session_id: str, uid: str) -> list[Values]:
    """Return the id of a message in a row, after any transaction that may be adding it has ended."""
    tx.rows(f"SELECT 1 FROM sessions WHERE id = :id {tx.dialect.for_update}", id=session_id)
    return tx.rows("SELECT id FROM messages WHERE session_id = :id AND uid = :uid", id=session_id, uid=uid)
