"""A client of the local socket."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from hermes.home import get_hermes_home
from hermes.platforms.local.lines import LineStream
from hermes.platforms.local.socket_file import SOCKET_NAME, address_of
from hermes.platforms.local.wire import EVERY_CHAT, encode

_MAX_LINE_BYTES = 64 * 1024 * 1024
_FLUSH_S = 5.0
_ENDED = "the gateway closed the connection"


@dataclass(frozen=True, slots=True)
class Said:
    """What became of a message."""

    message_id: str
    state: Literal["accepted", "known", "refused"]
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class LocalMessage:
    """A reply, a preview of it (`final` is False), or a notice."""

    type: Literal["reply", "notice"]
    delivery_id: str
    chat_id: str
    text: str
    final: bool = True
    thread_id: str | None = None
    reply_to: str | None = None
    answers: Sequence[str] = ()


class LocalClient:
    """A connection to the gateway of a Hermes home. Iterating over it yields replies and notices until it ends."""

    def __init__(self, stream: LineStream, *, confirm: bool = True) -> None:
        self._stream = stream
        self._confirm = confirm
        self._replies: deque[LocalMessage] = deque()
        self._arrived = asyncio.Event()
        self._said: dict[str, asyncio.Future[Said]] = {}
        self._results: dict[str, deque[asyncio.Future[dict[str, Any]]]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, home: Path | None = None, *, confirm: bool = True, timeout_s: float = 5.0) -> Self:
        """Connect to the gateway of a home; raise ConnectionError if none listens.

        With `confirm`, a reply counts as delivered when the caller gets it. Otherwise the caller calls `received`.
        """
        path = (home or get_hermes_home()) / SOCKET_NAME
        try:
            async with asyncio.timeout(timeout_s):
                with address_of(path) as address:
                    loop = asyncio.get_running_loop()
                    _, stream = await loop.create_unix_connection(lambda: LineStream(_MAX_LINE_BYTES), address)
        except (OSError, TimeoutError) as error:
            raise ConnectionError(f"no gateway listens on {path}") from error
        return cls(stream, confirm=confirm)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; confirmations that were sent still arrive."""
        await self._stream.flush(_FLUSH_S)
        self._stream.close()
        self._reading.cancel()
        await asyncio.wait([self._reading])

    async def subscribe(self, chat_id: str = EVERY_CHAT) -> None:
        """Get the replies of a chat, or of every chat; undelivered ones first."""
        await self.send_line({"type": "subscribe", "chat_id": chat_id})

    async def say(
        self,
        text: str,
        chat_id: str,
        user_id: str | None = None,
        *,
        message_id: str | None = None,
        user_name: str | None = None,
        chat_type: str | None = None,
        thread_id: str | None = None,
        chat_name: str | None = None,
    ) -> Said:
        """Send a message and return what became of it. A message with the id of an earlier one is `known`."""
        number = message_id or uuid.uuid4().hex
        optional = {
            "user_id": user_id,
            "user_name": user_name,
            "chat_type": chat_type,
            "thread_id": thread_id,
            "chat_name": chat_name,
        }
        line = {"type": "message", "message_id": number, "chat_id": chat_id, "text": text}
        waiting = self._said.get(number)
        if waiting is None:
            waiting = self._said[number] = asyncio.get_running_loop().create_future()
        await self.send_line({**line, **{name: value for name, value in optional.items() if value is not None}})
        return await waiting

    async def control(self, command: str, **fields: Any) -> dict[str, Any]:
        """Send an operator's command and return its result."""
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._results.setdefault(command, deque()).append(future)
        await self.send_line({**fields, "type": "control", "command": command})
        return await future

    async def received(self, delivery_id: str) -> None:
        """Confirm a reply or a notice."""
        await self.send_line({"type": "received", "delivery_id": delivery_id})

    async def send_line(self, request: Mapping[str, Any]) -> None:
        """Send any request."""
        if self._reading.done():
            raise ConnectionError(_ENDED)
        self._stream.write(encode(request))
        await self._stream.flush(_FLUSH_S)

    async def next(self, timeout_s: float | None = None) -> LocalMessage:
        """Wait for the next reply, preview or notice; raise TimeoutError, or ConnectionError when there is none."""
        async with asyncio.timeout(timeout_s):
            try:
                return await anext(self)
            except StopAsyncIteration:
                raise ConnectionError(_ENDED) from None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LocalMessage:
        while not self._replies:
            if self._reading.done():
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        message = self._replies.popleft()
        if self._confirm and message.final and not self._reading.done():
            await self.received(message.delivery_id)
        return message

    async def _read(self) -> None:
        try:
            async for line in self._stream:
                if line is not None:
                    self._take(json.loads(line))
        finally:
            for said in self._said.values():
                _give_up(said)
            for waiting in self._results.values():
                for result in waiting:
                    _give_up(result)
            self._arrived.set()

    def _take(self, data: Mapping[str, Any]) -> None:
        match data.get("type"):
            case "accepted" | "refused" as kind:
                number = str(data.get("message_id"))
                state: Literal["accepted", "known", "refused"] = "refused" if kind == "refused" else data["state"]
                future = self._said.pop(number, None)
                if future is not None and not future.done():
                    future.set_result(Said(number, state, data.get("code", ""), data.get("message", "")))
            case "control":
                waiting = self._results.get(data.get("command", ""))
                result = waiting.popleft() if waiting else None
                if result is not None and not result.done():
                    result.set_result(dict(data.get("result") or {}))
            case "reply" | "notice" as kind:
                self._add(_message_of(kind, data))

    def _add(self, message: LocalMessage) -> None:
        """Keep a reply for the caller; a newer preview replaces one that the caller has not taken."""
        last = self._replies[-1] if self._replies else None
        if last is not None and not last.final and last.delivery_id == message.delivery_id:
            self._replies.pop()
        self._replies.append(message)
        self._arrived.set()


def _give_up(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_exception(ConnectionError(_ENDED))
        future.exception()  # its caller may have left


def _message_of(kind: Literal["reply", "notice"], data: Mapping[str, Any]) -> LocalMessage:
    return LocalMessage(
        type=kind,
        delivery_id=data["delivery_id"],
        chat_id=data["chat_id"],
        text=data["text"],
        final=bool(data.get("final", True)),
        thread_id=data.get("thread_id"),
        reply_to=data.get("reply_to"),
        answers=tuple(data.get("answers") or ()),
    )
