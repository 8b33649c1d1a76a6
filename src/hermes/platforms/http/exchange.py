"""One message and its answer: stored like every message of a platform, and awaited by the request."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermes.gateway.engine.ports import Delivery, Inbound, Receipt
from hermes.gateway.engine.texts import too_long
from hermes.platforms.base.adapter import BaseAdapter
from hermes.platforms.http.conversations import Conversation, missing_response
from hermes.platforms.http.errors import ApiError, too_late
from hermes.platforms.http.principals import PLATFORM, owner_of_principal

if TYPE_CHECKING:
    from hermes.state.asynchronous.session_db import AsyncSessionDB
    from hermes.state.lanes.types import InboxRow, LaneRow, OutboxRow

LOOK_S = 0.05
POLL_S = 1.0
"""How often an answer is looked for that another node may have stored."""
ANSWER_S = 1800.0
MOST_REPLIES = 100
_STATUS = {"queue_full": 429, "too_long": 400, "empty": 400, "invalid_value": 400, "unauthorized": 403}
_OVER = ("done", "failed", "discarded", "parked", "dead")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a message, and the tokens that it has used."""

    text: str
    session_id: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


class ApiAdapter(BaseAdapter):
    """Delivers answers to the requests that wait for them; those that no request waits for stay in the store."""

    platform = PLATFORM

    def __init__(self, db: AsyncSessionDB, text_so_far: Callable[[str, str], str], most_characters: int) -> None:
        """Create it; `text_so_far` returns what the turn of a lane has written that answers a message."""
        super().__init__()
        self.db = db
        self._most_characters = most_characters
        self._text_so_far = text_so_far
        self._waiting: dict[str, set[asyncio.Event]] = {}

    async def send(self, delivery: Delivery) -> Receipt:
        """Wake the requests that wait in the conversation; the receipt keeps the answer, so that it can be fetched."""
        for event in self._waiting.get(delivery.chat_id, ()):
            event.set()
        return _receipt(delivery)

    async def find(self, delivery: Delivery) -> Receipt | None:
        """Return the receipt: an answer in the outbox can always be fetched."""
        return _receipt(delivery)

    def check_text(self, text: str) -> None:
        """Raise `ApiError` for a text that the gateway refuses, before anything is stored for it."""
        if len(text) > self._most_characters:
            raise ApiError(400, "too_long", too_long(len(text), self._most_characters))

    async def say(self, conversation: Conversation, message_id: str, text: str, mark: str) -> None:
        """Store a message with what recognizes its text; raise `ApiError` if it is refused."""
        if self.receive is None:
            raise ApiError(503, "unavailable", "the gateway is starting or stopping", {"Retry-After": "2"})
        delivery_id = f"{conversation.digits}:{message_id}:{mark}"
        inbound = Inbound(text=text, source=conversation.source, message_id=message_id, delivery_id=delivery_id)
        admission = await self.receive(inbound)
        if admission.state == "refused":
            raise ApiError(_STATUS.get(admission.code, 503), admission.code or "refused", admission.message)

    async def answer(self, conversation: Conversation, message_id: str, before: LaneRow | None) -> Answer:
        """Wait for the answer to a stored message; raise `ApiError` if the turn failed or takes too long."""
        answer: Answer | None = None
        async for part in self.parts(conversation, message_id, before):
            answer = part if isinstance(part, Answer) else answer
        if answer is None:
            raise too_late()
        return answer

    async def parts(
        self, conversation: Conversation, message_id: str, before: LaneRow | None
    ) -> AsyncIterator[str | Answer]:
        """Yield the text so far whenever it grows, and then the answer."""
        event, chat, last = asyncio.Event(), conversation.source.chat_id, ""
        self._waiting.setdefault(chat, set()).add(event)
        loop = asyncio.get_running_loop()
        late_at, look_at = loop.time() + ANSWER_S, 0.0
        try:
            while loop.time() < late_at:
                if event.is_set() or loop.time() >= look_at:
                    event.clear()
                    look_at = loop.time() + POLL_S
                    if (found := await self.find_answer(conversation, message_id, before)) is not None:
                        yield found
                        return
                text = self._text_so_far(conversation.key, message_id)
                if text != last:
                    last = text
                    yield text
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await event.wait()
        finally:
            self._waiting[chat].discard(event)
            if not self._waiting[chat]:
                del self._waiting[chat]

    async def find_answer(
        self, conversation: Conversation, message_id: str, before: LaneRow | None = None
    ) -> Answer | None:
        """Return the stored answer to a message, or None if there is none yet; raise `ApiError` if the turn failed."""
        row = await self.message(conversation, message_id)
        if row is None:
            raise missing_response()
        if row["state"] not in _OVER:
            return None
        text = await self._reply(conversation.key, row)
        if row["state"] != "done":
            raise ApiError(502, "turn_failed", text or "the message was not answered")
        lane = await self.db.lanes.get(conversation.key)
        turn = None if row["turn_id"] is None else await self.db.turns.get(row["turn_id"])
        holder = turn or lane
        session_id = "" if holder is None else holder["session_id"] or ""
        view = self.db.for_owner(owner_of_principal(conversation.principal))
        if session_id and await view.get_session(session_id) is None:
            raise ApiError(404, "not_found", "the session of this response was deleted")
        used = [_grown(lane, before, name) for name in ("input_tokens", "output_tokens")]
        return Answer(text, session_id, *used)

    async def message(self, conversation: Conversation, message_id: str) -> InboxRow | None:
        """Return a stored message of a conversation."""
        rows = await self.db.inbox.find(message_id, platform=PLATFORM, chat_id=conversation.source.chat_id)
        return rows[0] if rows else None

    async def _reply(self, key: str, message: InboxRow) -> str:
        """Return the text that answers a message: that of its turn, or of its command."""
        turn_id, message_id = message["turn_id"], message["message_id"]
        rows = [] if turn_id is None else await self.db.outbox.of_turn(turn_id)
        if not any(_is_answer(each, message_id) for each in rows):
            rows = await self.db.outbox.of_lane(key, limit=MOST_REPLIES)
        return next((_text(each) for each in rows if _is_answer(each, message_id)), "")


def _content(row: OutboxRow) -> dict[str, Any]:
    return row["payload"] or (row["receipt"] or {}).get("extra") or {}


def _is_answer(row: OutboxRow, message_id: str | None) -> bool:
    return row["kind"] == "reply" and message_id in (_content(row).get("answers") or ())


def _text(row: OutboxRow) -> str:
    return str(_content(row).get("text") or "")


def _receipt(delivery: Delivery) -> Receipt:
    return Receipt([delivery.key], {"text": delivery.text, "answers": list(delivery.answers)})


def _grown(lane: LaneRow | None, before: LaneRow | None, name: str) -> int:
    """Return by how much a figure of a session has grown; all of it if the session is another one."""
    if lane is None:
        return 0
    now = int(lane[name])  # type: ignore[literal-required]
    if before is None or before["session_id"] != lane["session_id"]:
        return now
    return max(0, now - int(before[name]))  # type: ignore[literal-required]
