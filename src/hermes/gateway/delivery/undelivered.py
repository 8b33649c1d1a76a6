"""Notices about replies that did not reach their chat, or may not have."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

from hermes.clock import Clock, system_clock
from hermes.phrases import plural
from hermes.state.asynchronous.lanes import AsyncOutbox
from hermes.state.lanes.types import Intent, OutboxRow

KEY = "notice:undelivered:"
MOST_NOTICES = 3
"""How many replies are named one by one; the notice about the oldest of them counts the others."""
MOST_ROWS = 50
_ENDED = ("dead", "unknown", "expired")


class Undelivered:
    """Makes notices about undelivered replies, one for each."""

    def __init__(
        self,
        outbox: AsyncOutbox,
        *,
        ttl_s: float | None = None,
        zone: tzinfo | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self._outbox = outbox
        self._ttl_s = ttl_s
        self._zone = zone
        self._clock = clock

    def about(self, row: OutboxRow, *, older: int = 0, delay_s: float = 0.0) -> Intent | None:
        """Return a notice about a reply that has ended; None for a notice, and for a reply that an operator deleted."""
        payload = row["payload"]
        if row["kind"] == "notice" or payload is None or row["state"] not in _ENDED:
            return None
        chat = {name: payload.get(name) for name in ("chat_id", "thread_id", "chat_type")}
        return Intent(
            key=KEY + row["key"],
            payload={**chat, "text": undelivered_text(row, self._clock(), self._zone, older), "reply_to": None},
            platform=row["platform"],
            account=row["account"],
            session_key=row["session_key"],
            kind="notice",
            delay_seconds=delay_s,
            ttl_seconds=self._ttl_s,
        )

    async def notices(self, session_key: str) -> int:
        """Store notices about the undelivered replies of a lane that its chat does not know of; return how many."""
        rows = sorted(await self._outbox.of_lane(session_key, limit=MOST_ROWS), key=lambda row: -row["id"])
        untold: list[OutboxRow] = []
        for row in rows:
            if self.about(row) is None:
                continue
            if await self._outbox.find(KEY + row["key"]) is not None:
                break  # a notice about this reply also covered the older ones
            untold.append(row)
        named = untold[:MOST_NOTICES]
        for row in reversed(named):
            older = len(untold) - len(named) if row is named[-1] else 0
            intent = self.about(row, older=older)
            assert intent is not None
            await self._outbox.intend(intent)
        return len(named)


def undelivered_text(row: OutboxRow, now: float, zone: tzinfo | None, older: int = 0) -> str:
    """Return the sentences about a reply that did not reach its chat."""
    when = _moment(row["created_at"], now, zone)
    reason = (row["reason"] or "its time ran out before it was sent").rstrip(".")
    happened = "may not have arrived" if row["state"] == "unknown" else "could not be delivered"
    text = f"An answer of {when} {happened}: {reason}. It is in the session; ask for it and I will repeat it."
    return f"{text} The same is true of {plural(older, 'older answer')}." if older else text


def _moment(time: float, now: float, zone: tzinfo | None) -> str:
    """Return a time for people: `14:05`, `yesterday, 14:05`, or with the date."""
    then, today = datetime.fromtimestamp(time, zone), datetime.fromtimestamp(now, zone).date()
    clock = then.strftime("%H:%M")
    if then.date() == today:
        return clock
    if then.date() == today - timedelta(days=1):
        return f"yesterday, {clock}"
    return f"{then.strftime('%Y-%m-%d')}, {clock}"
