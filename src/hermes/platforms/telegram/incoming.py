"""What arrives: each update is stored before Telegram learns of it, with its file."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hermes.errors import HermesError
from hermes.gateway.engine.ports import Admission, Inbound, MaybeSent, NotSent, Receive
from hermes.log import warn
from hermes.platforms.base.admissions import NotStored, Unstored, check_stored
from hermes.platforms.telegram.updates import Received, migration_of, parse_update

if TYPE_CHECKING:
    from hermes.platforms.telegram.addressing import Addressing
    from hermes.platforms.telegram.downloads import Downloads
    from hermes.platforms.telegram.outgoing import Outgoing

_NOTICE_S = 30.0
"""A chat learns at most this often that its messages are refused."""
_MAX_REMEMBERED = 1000
_MOST_ATTEMPTS = 5
"""A message that cannot be accepted for an unknown reason is left out then, so that it does not block the others."""


class Incoming:
    """The receiving half of a bot that is connected."""

    def __init__(
        self,
        receive: Receive,
        addressing: Addressing,
        downloads: Downloads,
        outgoing: Outgoing,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._receive = receive
        self._addressing = addressing
        self._downloads = downloads
        self._outgoing = outgoing
        self._spawn = spawn
        self._told_at: OrderedDict[str, float] = OrderedDict()
        self._albums: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Albums of groups of which one message is for the bot."""
        self._attempts: Counter[str] = Counter()
        self._unstored = Unstored()
        self._is_storing = True

    def look_ahead(self, updates: Sequence[dict[str, Any]]) -> None:
        """Note which albums are for the bot: the message that says so need not be the first one."""
        for update in updates:
            message = update.get("message")
            if isinstance(message, dict) and message.get("media_group_id"):
                with contextlib.suppress(Exception):  # `handle` writes a malformed one to the log
                    self._read(update)

    async def handle(self, update: dict[str, Any]) -> bool:
        """Store an update and return whether it may be acknowledged: everything but what may work later."""
        if (moved := migration_of(update)) is not None:
            self._outgoing.note_migration(*moved)
        try:
            received = self._read(update)
        except Exception as error:  # noqa: BLE001 - a malformed update must not block those behind it
            warn(__name__, "an update of Telegram cannot be read and is left out: %s", type(error).__name__)
            return True
        if received is None or not (received.is_addressed or received.album in self._albums):
            return True
        try:
            await self._accept(received)
        except (NotStored, HermesError, OSError) as error:
            self._note_storing(error)
            return False
        except Exception as error:  # noqa: BLE001 - an unknown error may pass, but must not block the others for ever
            return await self._has_failed_often(received.inbound, error)
        return True

    def _read(self, update: dict[str, Any]) -> Received | None:
        """Return the message of an update, and remember its album if it is for the bot."""
        received = parse_update(update, self._addressing)
        if received is None or self._is_own(received.inbound):
            return None
        if received.is_addressed and received.album is not None:
            self._albums[received.album] = None
            _trim(self._albums)
        return received

    def _is_own(self, inbound: Inbound) -> bool:
        return self._outgoing.is_own(inbound.source.chat_id, inbound.message_id)

    async def _accept(self, received: Received) -> None:
        """Store a message with its file; raise `NotStored` if it must be delivered again."""
        inbound = received.inbound
        make = partial(_with_file, received, self._downloads)
        admission = await self._unstored.store(inbound.delivery_id, make, self._store)
        self._is_storing = True
        self._attempts.pop(str(inbound.delivery_id), None)
        if admission is not None and admission.state == "refused":
            self._tell_refusal(inbound, admission.message)

    async def _store(self, inbound: Inbound) -> Admission:
        admission = check_stored(await self._receive(inbound))
        if admission.state == "known" and inbound.message_id is not None:
            # Another bot of this gateway may have had a message with this number in the chat: the update decides.
            return await self._receive(replace(inbound, message_id=None))
        return admission

    def _note_storing(self, error: Exception) -> None:
        if self._is_storing:
            warn(__name__, "messages of Telegram are not stored now, and stay there: %s", type(error).__name__)
        self._is_storing = False

    async def _has_failed_often(self, inbound: Inbound, error: Exception) -> bool:
        """Count a failure and return whether the message is left out."""
        key = str(inbound.delivery_id)
        if len(self._attempts) > _MAX_REMEMBERED:
            self._attempts.clear()
        self._attempts[key] += 1
        is_last = self._attempts[key] >= _MOST_ATTEMPTS
        outcome = "is left out" if is_last else "is tried again"
        warn(__name__, "message %s of Telegram failed and %s: %s", inbound.message_id, outcome, type(error).__name__)
        if is_last:
            await self._unstored.give_up(inbound.delivery_id)
        return is_last

    def _tell_refusal(self, inbound: Inbound, message: str) -> None:
        """Say why a message was refused, not more often than a person can use."""
        source, now = inbound.source, asyncio.get_running_loop().time()
        if not message or now < self._told_at.get(source.chat_id, float("-inf")) + _NOTICE_S:
            return
        self._told_at[source.chat_id] = now
        _trim(self._told_at)
        self._spawn(self._tell(source.chat_id, source.thread_id, message))

    async def _tell(self, chat_id: str, thread_id: str | None, text: str) -> None:
        try:
            await self._outgoing.say(chat_id, thread_id, text)
        except (NotSent, MaybeSent) as error:
            warn(__name__, "a refusal was not sent: %s", error)


async def _with_file(received: Received, downloads: Downloads) -> Inbound:
    """Return a message with its file, which is stored; without it, if it cannot be had, and the text says so."""
    inbound = received.inbound
    if received.attachment is None:
        return inbound
    if not await downloads.are_wanted(inbound.source):
        return replace(inbound, text=f"{inbound.text}\n[a file that was not received]".strip())
    file = await downloads.fetch(received.attachment)
    if isinstance(file, str):
        return replace(inbound, text=f"{inbound.text}\n{file}".strip(), message_type="text")
    return replace(inbound, media=(file,))


def _trim(remembered: OrderedDict[Any, Any]) -> None:
    while len(remembered) > _MAX_REMEMBERED:
        remembered.popitem(last=False)
