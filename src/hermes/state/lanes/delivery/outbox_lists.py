"""Lists of messages to platforms; they only read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from hermes.state.engine import Reading, Values
from hermes.state.lanes.delivery.due import SORTED_ID, choose, seconds_until_due
from hermes.state.lanes.delivery.intents import OUTBOX, outbox_row
from hermes.state.lanes.identity import require_name, short_form
from hermes.state.lanes.retention import require_age
from hermes.state.operations import Operations, row_limit
from hermes.state.rows import optional_integer, require_identifier, require_integer

if TYPE_CHECKING:
    from hermes.state.lanes.types import OutboxRow

_OF_LANE = f"SELECT {OUTBOX} FROM outbox WHERE lane_id = :lane AND due_at {{part}} 0 ORDER BY id DESC LIMIT :most"
_AWAITING = f"""SELECT {OUTBOX} FROM outbox WHERE due_at > 0 AND platform = :platform AND {{id}} > :after
                AND (expires_at IS NULL OR expires_at > {{now}}) ORDER BY {{id}} LIMIT :most"""
_DRAFTS = f"""SELECT {OUTBOX} FROM outbox WHERE {{of_lane}} due_at < 0 AND created_at <= {{now}} - :age
              ORDER BY {SORTED_ID}"""


class OutboxLists(Operations):
    """Operations that return messages to platforms."""

    def get(self, message_id: int) -> OutboxRow | None:
        """Return a message by its id."""
        number = require_integer(message_id, "message_id")
        return self._first(f"SELECT {OUTBOX} FROM outbox WHERE id = :id", id=number)

    def find(self, key: str) -> OutboxRow | None:
        """Return the message with an idempotency key."""
        return self._first(
            f"SELECT {OUTBOX} FROM outbox WHERE key_ref = :ref", ref=short_form(require_name(key, "key"))
        )

    def next_due(self, platforms: Sequence[str] | None = None) -> float | None:
        """Return how many seconds it takes until `sending` can take the next message, of all platforms or some.

        0 means that one can be taken now, None that there is none. A message that an earlier one of its lane holds back
        does not count.
        """
        choice = choose(platforms)
        return self._engine.read(lambda tx: seconds_until_due(tx, choice))

    def pending(self, *, after: int | None = None, limit: int | None = 100) -> list[OutboxRow]:
        """Return the messages that wait to be sent or are being sent, by id; `after` is the last one seen."""
        return self._page("due_at > 0", after, limit)

    def awaiting(self, platform: str, *, after: int | None = None, limit: int | None = 100) -> list[OutboxRow]:
        """Return the messages of a platform that are not sent yet, due or not, by id, without taking them.

        Drafts are left out, as are messages whose time has run out. `after` is the last one seen.
        """
        name, start = require_identifier(platform, "platform"), optional_integer(after, "after") or 0
        number = "id" if start else SORTED_ID
        values = {"platform": name, "after": start, "most": row_limit(limit)}
        return self._list(lambda tx: tx.rows(_AWAITING.format(now=tx.dialect.now, id=number), **values))

    def of_turn(self, turn_id: str) -> list[OutboxRow]:
        """Return the messages that a turn has intended, by id."""
        sql = f"SELECT {OUTBOX} FROM outbox WHERE turn_id = :turn ORDER BY id"
        turn = require_identifier(turn_id, "turn_id")
        return self._list(lambda tx: tx.rows(sql, turn=turn))

    def of_lane(self, key: str, *, limit: int | None = 20) -> list[OutboxRow]:
        """Return the messages of a lane, newest first."""
        lane_id, most = short_form(require_name(key, "key")), row_limit(limit)

        def work(tx: Reading) -> list[Values]:
            # The index has a lane's messages by their due time, and ended ones, whose due time is 0, by their id.
            parts = (tx.rows(_OF_LANE.format(part=part), lane=lane_id, most=most) for part in ("<", "=", ">"))
            return sorted(chain(*parts), key=lambda row: int(row[0]), reverse=True)[:most]

        return self._list(work)

    def drafts(self, older_than_s: float, *, key: str | None = None) -> list[OutboxRow]:
        """Return the drafts that were stored longer ago than this, of all lanes or one, by id.

        Their node may have died.
        """
        values = {
            "age": require_age(older_than_s),
            "lane": None if key is None else short_form(require_name(key, "key")),
        }
        of_lane = "" if key is None else "lane_id = :lane AND"
        return self._list(lambda tx: tx.rows(_DRAFTS.format(now=tx.dialect.now, of_lane=of_lane), **values))

    def dead(self, *, after: int | None = None, limit: int | None = 100) -> list[OutboxRow]:
        """Return the messages that wait for an operator: dead, expired, or not known to be sent."""
        return self._page("dead_at > 0", after, limit)

    def _first(self, sql: str, **values: Any) -> OutboxRow | None:
        row = self._engine.read(lambda tx: tx.row(sql, **values))
        return None if row is None else outbox_row(row)

    def _page(self, condition: str, after: int | None, limit: int | None) -> list[OutboxRow]:
        sql = f"SELECT {OUTBOX} FROM outbox WHERE {condition} AND id > :after ORDER BY id LIMIT :most"
        start, most = optional_integer(after, "after") or 0, row_limit(limit)
        return self._list(lambda tx: tx.rows(sql, after=start, most=most))

    def _list(self, work: Callable[[Reading], Sequence[Values]]) -> list[OutboxRow]:
        return [outbox_row(row) for row in self._engine.read(work)]
