"""A connection to the gateway that survives its restarts: messages are sent once, replies are shown once."""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from hermes.errors import NotFound
from hermes.platforms.local.client import LocalClient, LocalMessage, Said

RETRY_S = 0.3
UNAVAILABLE = "unavailable"
"""The code with which a gateway refuses messages while it starts or stops."""
MOST_REMEMBERED = 1000


class TalkEvents(Protocol):
    """What happens in a conversation."""

    def received(self, message: LocalMessage) -> None:
        """Show a reply, a preview of it, or a notice."""

    def refused(self, message_id: str, said: Said) -> None:
        """Show that a message was not accepted."""

    def connection_changed(self, *, is_connected: bool) -> None:
        """Show that the gateway is away, or back."""


class TalkClient:
    """Sends messages to a chat and receives its replies."""

    def __init__(self, home: Path, chat_id: str, user_id: str) -> None:
        self.chat_id = chat_id
        self.user_id = user_id
        self._home = home
        self._outgoing: deque[tuple[str, str]] = deque()
        self._has_outgoing = asyncio.Event()
        self._shown: deque[str] = deque(maxlen=MOST_REMEMBERED)

    def say(self, text: str) -> str:
        """Send a message as soon as there is a connection, and return its id."""
        message_id = uuid.uuid4().hex
        self._outgoing.append((message_id, text))
        self._has_outgoing.set()
        return message_id

    async def run(self, events: TalkEvents, on_connect: Callable[[], None]) -> None:
        """Talk until the task is cancelled; raise `NotFound` if no gateway listens at the start."""
        is_first, is_away = True, False
        while True:
            try:
                client = await LocalClient.connect(self._home)
            except ConnectionError as error:
                if is_first:
                    raise NotFound(str(error), hint="start one with `hermes gateway run`") from error
                if not is_away:
                    events.connection_changed(is_connected=False)
                is_away = True
                await asyncio.sleep(RETRY_S)
                continue
            if is_first:
                on_connect()
            elif is_away:
                events.connection_changed(is_connected=True)
            is_first = is_away = False
            await self._use(client, events)

    async def _use(self, client: LocalClient, events: TalkEvents) -> None:
        """Send and receive until the connection ends."""
        async with client:
            try:
                await client.subscribe(self.chat_id)
                async with asyncio.TaskGroup() as group:
                    sending = group.create_task(self._send(client, events))
                    async for message in client:
                        self._receive(message, events)
                    sending.cancel()
            except* ConnectionError:
                pass  # the caller connects again

    async def _send(self, client: LocalClient, events: TalkEvents) -> None:
        """Send messages in order; one whose fate is unknown is sent again with its id, which the gateway recognizes."""
        while True:
            while not self._outgoing:
                self._has_outgoing.clear()
                await self._has_outgoing.wait()
            message_id, text = self._outgoing[0]
            said = await client.say(text, self.chat_id, self.user_id, message_id=message_id)
            if said.state == "refused" and said.code == UNAVAILABLE:
                await asyncio.sleep(RETRY_S)
                continue
            self._outgoing.popleft()
            if said.state == "refused":
                events.refused(message_id, said)

    def _receive(self, message: LocalMessage, events: TalkEvents) -> None:
        if message.final:
            if message.delivery_id in self._shown:
                return  # its confirmation was lost
            self._shown.append(message.delivery_id)
        elif message.delivery_id in self._shown:
            return
        events.received(message)
