"""One connection of a client to the local socket."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from hermes.gateway.engine.ports import Delivery
from hermes.log import warn
from hermes.platforms.local.lines import LineStream
from hermes.platforms.local.wire import (
    BAD_REQUEST,
    EVERY_CHAT,
    MAX_LINE_BYTES,
    BadRequest,
    ControlRequest,
    Message,
    Received,
    Subscribe,
    parse_request,
    refused_line,
)

MAX_UNREAD_BYTES = 4 * 1024 * 1024
"""A client that has not read this much is disconnected."""
MANY_UNREAD_BYTES = 1024 * 1024
"""A client that has not read this much gets no more replies until it reads."""
PREVIEW_UNREAD_BYTES = 64 * 1024
"""A client that has not read this much gets no previews."""
MOST_CHATS = 10_000
"""So many chats a client may subscribe to; `*` stands for all."""
_FLUSH_S = 5.0
_MOST_IN_FLIGHT = 64
_LINES_AT_ONCE = 16
_BYTES_AT_ONCE = 256 * 1024
"""After so many lines or bytes, others get their turn: a client could keep the event loop busy with lines in vain."""


class Requests(Protocol):
    """Carries out the requests of a client. Its methods do not raise."""

    async def admit(self, message: Message) -> bytes:
        """Store a message and return the line about it."""

    def confirm(self, connection: Connection, delivery_id: str) -> Coroutine[Any, Any, None]:
        """Record that the client has a reply."""

    async def subscribe(self, connection: Connection, chat_id: str) -> None:
        """Send the undelivered replies of a chat to the client, and later ones."""

    async def control(self, request: ControlRequest) -> bytes:
        """Carry out an operator's request and return the line with its result."""


class Connection:
    """A client: its requests are carried out, those about one chat in order; its subscriptions are remembered."""

    def __init__(self, stream: LineStream, requests: Requests) -> None:
        self.chats: set[str] = set()
        self.epoch = 0
        """Grows with every subscription, because replies are then sent again."""
        self.position = 0
        """Replies up to this id were considered."""
        self.pushed: dict[str, tuple[int, str]] = {}
        """The undelivered replies that the client got since it subscribed, with their ids and chats."""
        self._stream = stream
        self._requests = requests
        self._in_flight: set[asyncio.Task[None]] = set()
        self._last_of_chat: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(_MOST_IN_FLIGHT)

    @property
    def unread_bytes(self) -> int:
        """How much the client has not read yet."""
        return self._stream.unread_bytes

    @property
    def taken_bytes(self) -> int:
        """How much was sent so far, without what the client has not read yet."""
        return self._stream.taken_bytes

    @property
    def is_open(self) -> bool:
        """Whether lines can be sent."""
        return self._stream.is_open

    @property
    def can_take_replies(self) -> bool:
        """Whether the client reads what it gets."""
        return self.is_open and self.unread_bytes <= MANY_UNREAD_BYTES

    def wants(self, chat_id: str) -> bool:
        """Whether the client subscribed to a chat."""
        return chat_id in self.chats or EVERY_CHAT in self.chats

    def add_chat(self, chat_id: str) -> None:
        """Remember a subscription; undelivered replies of the chat are sent again."""
        self.chats.add(chat_id)
        self.pushed = {
            key: (number, chat) for key, (number, chat) in self.pushed.items() if chat_id not in (chat, EVERY_CHAT)
        }
        self.epoch += 1
        self.position = 0

    def push(self, number: int, delivery: Delivery, line: bytes) -> None:
        """Send the line of a reply or a notice that is stored under a number."""
        self.pushed[delivery.key] = (number, delivery.chat_id)
        self.write(line)

    def write(self, line: bytes) -> None:
        """Send a line; disconnect a client that does not read."""
        self._stream.write(line)
        if self.unread_bytes > MAX_UNREAD_BYTES:
            self.abort("it does not read")

    def write_preview(self, line: bytes) -> None:
        """Send a preview, unless the client is slow: the next one has all of its text."""
        if self.unread_bytes <= PREVIEW_UNREAD_BYTES:
            self._stream.write(line)

    def abort(self, reason: str) -> None:
        """Disconnect without sending what the client has not read."""
        warn(__name__, "a client of the local socket is disconnected: %s", reason)
        self._stream.abort()

    async def serve(self) -> None:
        """Carry out requests until the client leaves, then finish those that have begun."""
        try:
            lines = size = 0
            async for line in self._stream:
                await self._handle(line)
                lines, size = lines + 1, size + len(line or b"")
                if lines >= _LINES_AT_ONCE or size >= _BYTES_AT_ONCE:
                    lines = size = 0
                    await asyncio.sleep(0)
            await self.finish(None)
        finally:
            self.chats.clear()
            self._stream.close()

    async def finish(self, timeout_s: float | None) -> None:
        """Wait for the requests that have begun, and until their results are sent."""
        if self._in_flight:
            await asyncio.wait(set(self._in_flight), timeout=timeout_s)
        await self._stream.flush(_FLUSH_S if timeout_s is None else timeout_s)

    async def close(self, timeout_s: float = 2.0) -> None:
        """End the connection from this side."""
        self._stream.end()
        await self.finish(timeout_s)
        for task in self._in_flight:
            task.cancel()
        self._stream.close()

    async def _handle(self, line: bytes | None) -> None:
        if line is None:
            message = f"the line is longer than {MAX_LINE_BYTES} bytes"
            self.write(refused_line(None, BAD_REQUEST, message))
            return
        if not line.strip():
            return
        try:
            request = parse_request(line)
        except BadRequest as error:
            self.write(refused_line(error.message_id, BAD_REQUEST, str(error)))
            return
        match request:
            case Message():
                await self._start_in_order(request)
            case Received(delivery_id):
                await self._start(self._requests.confirm(self, delivery_id))
            case Subscribe(chat_id):
                if chat_id not in self.chats and len(self.chats) >= MOST_CHATS:
                    message = f"this client has subscribed to {MOST_CHATS:,} chats; subscribe to '*' instead"
                    self.write(refused_line(None, BAD_REQUEST, message))
                    return
                await self._requests.subscribe(self, chat_id)
            case ControlRequest():
                await self._start(self._control(request))

    async def _start_in_order(self, message: Message) -> None:
        """Admit a message after the earlier ones of its chat; other chats do not wait for it."""
        chat_id = message.inbound.source.chat_id
        task = await self._start(self._admit(message, self._last_of_chat.get(chat_id)))
        self._last_of_chat[chat_id] = task
        task.add_done_callback(lambda done: self._forget(chat_id, done))

    def _forget(self, chat_id: str, task: asyncio.Task[None]) -> None:
        if self._last_of_chat.get(chat_id) is task:
            del self._last_of_chat[chat_id]

    async def _admit(self, message: Message, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait([earlier])
        self.write(await self._requests.admit(message))

    async def _control(self, request: ControlRequest) -> None:
        self.write(await self._requests.control(request))

    async def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin a request; wait first if too many of them have not ended."""
        try:
            await self._slots.acquire()
        except BaseException:
            work.close()  # it has not begun
            raise
        task = asyncio.create_task(work)
        self._in_flight.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        self._slots.release()
