"""The adapter of the local socket."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes.clock import Clock, system_clock
from hermes.errors import HermesError
from hermes.gateway.engine.ports import Delivery, NotSent, Receipt, Receive
from hermes.log import inform, warn
from hermes.platforms.base.adapter import BaseAdapter
from hermes.platforms.local.connection import Connection
from hermes.platforms.local.descriptors import most_clients
from hermes.platforms.local.lines import LineStream
from hermes.platforms.local.pump import LOCAL, Pump
from hermes.platforms.local.socket_file import BACKLOG, SocketFile, SocketInUse
from hermes.platforms.local.wire import (
    MAX_LINE_BYTES,
    ControlRequest,
    Message,
    admission_line,
    control_line,
    delivery_line,
    refused_line,
)
from hermes.state.asynchronous.lanes import AsyncOutbox

Control = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Carries out an operator's command, given its name and the whole request."""
_CONFIRM_S = 10.0
_NOT_READY = "the gateway is starting or stopping; send the message again in a moment"


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How the local socket works."""

    poll_s: float = 0.2
    """How often replies that other nodes stored are looked for, while there are subscribers."""
    retry_s: float = 1.0
    """How often a socket is tried that another process has."""
    stall_s: float = 30.0
    """After how long a subscriber that reads nothing is disconnected, if much waits for it."""
    most_clients: int | None = None
    """So many clients may be connected at a time; None: what the limit of open files leaves."""


class LocalAdapter(BaseAdapter):
    """Serves the socket in the Hermes home; it takes its replies from the outbox itself."""

    platform = LOCAL
    delivers_itself = True
    can_edit = True

    def __init__(
        self,
        home: Path,
        outbox: AsyncOutbox,
        *,
        node: str = "",
        control: Control | None = None,
        clock: Clock = system_clock,
        settings: LocalSettings | None = None,
    ) -> None:
        super().__init__()
        self._settings = settings or LocalSettings()
        self._outbox = outbox
        self._control = control
        self._file = SocketFile(home, node)
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._pump = Pump(outbox, self._connections, clock, self._settings.poll_s, self._settings.stall_s)
        self._confirming: set[asyncio.Future[None]] = set()
        self._background: list[asyncio.Task[None]] = []
        self._obstacle = "the gateway has not started it"
        self._is_full = False
        """Whether clients are refused, because too many are connected."""
        self.confirmed = 0
        """How many replies and notices clients have confirmed."""

    @property
    def is_listening(self) -> bool:
        """Whether this process has the socket."""
        return self._server is not None

    @property
    def clients(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    @property
    def status(self) -> str:
        """What the socket does now, as a phrase."""
        return f"listening on {self._file.path}" if self.is_listening else f"not listening: {self._obstacle}"

    async def start(self, receive: Receive) -> None:
        """Listen, now or as soon as the process ends that has the socket."""
        await super().start(receive)
        await self._listen()
        self._background = [
            asyncio.create_task(self._keep_listening(), name="hermes-local-socket"),
            asyncio.create_task(self._pump.run(), name="hermes-local-replies"),
        ]

    async def stop(self) -> None:
        """Push the last replies, finish requests that have begun, and let another process have the socket."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self._background = []
        if self._server is not None:
            self._server.close()
        self._server = None
        self._file.remove()
        self._obstacle = "the gateway has stopped it"
        with contextlib.suppress(HermesError, TimeoutError):  # they stay in the outbox
            async with asyncio.timeout(2.0):
                await self._pump.push_all()
        await asyncio.gather(*(each.close() for each in list(self._connections)))
        if self._serving:
            await asyncio.wait(set(self._serving), timeout=2.0)
        await super().stop()

    def wake(self) -> None:
        """Push new replies now, because this node has stored one."""
        self._pump.wake()

    def preview(self, delivery: Delivery) -> None:
        """Show the text so far to the subscribers of a chat. It is not stored, and slow clients do not get it."""
        line = delivery_line(delivery)
        for connection in self._connections:
            if connection.wants(delivery.chat_id):
                connection.write_preview(line)

    async def send(self, delivery: Delivery) -> Receipt:
        """Show a preview; final replies reach clients through the outbox."""
        if delivery.is_final:
            self.wake()
            raise NotSent("the local socket takes its replies from the outbox")
        self.preview(delivery)
        return Receipt()

    # --- requests of clients ------------------------------------------------------------------------------------------

    async def admit(self, message: Message) -> bytes:
        """Store a message and return the line about it."""
        if self.receive is None:
            return refused_line(message.message_id, "unavailable", _NOT_READY)
        try:
            return admission_line(message.message_id, await self.receive(message.inbound))
        except HermesError as error:
            return refused_line(message.message_id, error.code, str(error))
        except Exception:  # noqa: BLE001 - one message must not end the connection
            warn(__name__, "a message of the local socket failed:\n%s", traceback.format_exc())
            return refused_line(message.message_id, "error", "the gateway failed; its log says why")

    def confirm(self, connection: Connection, delivery_id: str) -> Coroutine[Any, Any, None]:
        """Record that a client has a reply. Confirmations of unknown replies are ignored."""
        done = asyncio.get_running_loop().create_future()
        self._confirming.add(done)  # now, so that a subscription in the next line waits for it
        return self._confirm(connection, delivery_id, done)

    async def subscribe(self, connection: Connection, chat_id: str) -> None:
        """Send the undelivered replies of a chat to a client, after the confirmations that have begun."""
        if self._confirming:
            await asyncio.wait(set(self._confirming), timeout=_CONFIRM_S)
        connection.add_chat(chat_id)
        self._pump.wake()

    async def control(self, request: ControlRequest) -> bytes:
        """Carry out an operator's request and return the line with its result."""
        if self._control is None:
            return control_line(request.command, _failure("unavailable", "the gateway takes no commands here"))
        try:
            return control_line(request.command, await self._control(request.command, request.request))
        except HermesError as error:
            return control_line(request.command, _failure(error.code, str(error)))
        except Exception:  # noqa: BLE001 - one request must not end the connection
            warn(__name__, "the command %s failed:\n%s", request.command, traceback.format_exc())
            return control_line(request.command, _failure("error", "the gateway failed; its log says why"))

    # --- the socket ---------------------------------------------------------------------------------------------------

    async def _confirm(self, connection: Connection, delivery_id: str, done: asyncio.Future[None]) -> None:
        try:
            number = await self._number_of(connection, delivery_id)
            if number is not None and await self._outbox.confirm(number):
                self.confirmed += 1
        except HermesError as error:
            warn(__name__, "the confirmation of reply %s was not stored: %s", delivery_id, error)
        finally:
            self._confirming.discard(done)
            if not done.done():
                done.set_result(None)

    async def _number_of(self, connection: Connection, delivery_id: str) -> int | None:
        if (known := connection.pushed.get(delivery_id)) is not None:
            return known[0]
        row = await self._outbox.find(delivery_id)
        return row["id"] if row is not None and row["platform"] == LOCAL else None

    async def _keep_listening(self) -> None:
        """Take the socket over when it is free, and create it again if it was deleted."""
        while True:
            await asyncio.sleep(self._settings.retry_s)
            if self._server is not None and not self._file.is_present():
                warn(__name__, "%s was deleted and is created again", self._file.path)
                self._server.close()
                self._server = None
                self._file.remove()
            if self._server is None:
                await self._listen()

    async def _listen(self) -> None:
        try:
            listener = self._file.listen()
        except SocketInUse as error:
            self._note(f"{error} has the socket {self._file.path}; it is taken over when that process ends")
            return
        except (OSError, HermesError) as error:
            self._note(f"{self._file.path} cannot be used: {error}")
            return
        try:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_unix_server(self._make_stream, sock=listener, backlog=BACKLOG)
        except BaseException:
            listener.close()
            self._file.remove()
            raise
        self._obstacle = ""
        inform(__name__, "listening on %s", self._file.path)

    def _note(self, obstacle: str) -> None:
        """Write an obstacle to the log once."""
        if obstacle != self._obstacle:
            self._obstacle = obstacle
            warn(__name__, "the local socket is not available: %s", obstacle)

    def _make_stream(self) -> LineStream:
        return LineStream(MAX_LINE_BYTES, self._connect)

    def _connect(self, stream: LineStream) -> None:
        most = self._settings.most_clients or most_clients()
        if len(self._connections) >= most:
            stream.write(refused_line(None, "too_many_clients", f"{most} clients are connected already"))
            stream.close()
            self._turn_away(most)
            return
        connection = Connection(stream, self)
        task = asyncio.create_task(connection.serve(), name="hermes-local-client")
        self._connections.add(connection)
        self._serving.add(task)
        task.add_done_callback(lambda _: self._disconnect(connection, task))

    def _turn_away(self, most: int) -> None:
        """Write into the log that clients are refused, once until there is space again."""
        if not self._is_full:
            self._is_full = True
            warn(__name__, "%d clients are connected to the local socket; further ones are refused", most)

    def _disconnect(self, connection: Connection, task: asyncio.Task[None]) -> None:
        self._connections.discard(connection)
        self._serving.discard(task)
        self._is_full = False
        if not task.cancelled() and (error := task.exception()) is not None:
            warn(__name__, "a connection of the local socket failed: %r", error)


def _failure(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}
