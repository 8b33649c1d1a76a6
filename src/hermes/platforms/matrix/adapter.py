"""The adapter of Matrix."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import traceback
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any

from hermes.errors import HermesError
from hermes.gateway.delivery.receipts import FINISHED_IDS, MESSAGE_IDS
from hermes.gateway.engine.ports import Admission, Delivery, Inbound, MaybeSent, NotSent, Receipt, Receive
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.log import warn
from hermes.platforms.base.adapter import BaseAdapter, Part
from hermes.platforms.base.admissions import NotStored, Unstored
from hermes.platforms.base.context import AdapterContext
from hermes.platforms.base.media import MAX_FILE_BYTES, MediaFile, MediaFolder
from hermes.platforms.base.splitting import split_text
from hermes.platforms.matrix.api import MatrixApi
from hermes.platforms.matrix.contents import (
    TEXT_LIMIT,
    edit_content,
    encoded_length,
    file_content,
    marked,
    message_content,
    mime_of,
    transaction_of,
)
from hermes.platforms.matrix.events import (
    ENCRYPTED,
    MESSAGE,
    ROOM,
    RoomMessage,
    as_dict,
    identifier,
    read_message,
    thread_of,
)
from hermes.platforms.matrix.invitations import Invitations
from hermes.platforms.matrix.mentions import as_command, names_bot, without_mention
from hermes.platforms.matrix.position import Position
from hermes.platforms.matrix.rooms import Room, Rooms
from hermes.platforms.matrix.settings import MatrixSettings, read_settings
from hermes.platforms.matrix.sync import POLL_S, Sync

CANNOT_DECRYPT = (
    "This room is encrypted, and this bot cannot read encrypted messages. "
    "Please write to it in a room without encryption."
)
_TYPING_S = 8.0
_SHARE_S = 3.0
_PIECE = 64 * 1024
_MAX_REMEMBERED = 5000
_MAX_QUOTED = 2000
_NOTICE_S = 30.0
_MOST_ATTEMPTS = 5
_MOST_PAGES = 3
"""How many pages of the bot's own messages are looked at for one whose receipt was lost."""


def make(context: AdapterContext) -> MatrixAdapter:
    """Return the adapter without connecting it; raise `ConfigError` if a setting is missing or wrong."""
    return MatrixAdapter(context, read_settings(context.config))


class MatrixAdapter(BaseAdapter):
    """One account on a homeserver. A repeated transaction id is one message, so that nothing is sent twice."""

    platform = str(Platform.MATRIX.value)
    can_edit = True
    needs_one_poller = True
    text_limit = TEXT_LIMIT
    length = staticmethod(encoded_length)

    def __init__(self, context: AdapterContext, settings: MatrixSettings, *, poll_s: float = POLL_S) -> None:
        super().__init__()
        self.account = settings.account
        self.reply_to_mode = settings.reply_to_mode
        self.user_id = ""
        self._context = context
        self._settings = settings
        self._poll_s = poll_s
        self._api = MatrixApi(settings.base_url, settings.token)
        self._media: MediaFolder = context.media
        self._display_name = ""
        self._accepted: OrderedDict[str, None] = OrderedDict()
        """The last accepted messages: a batch that is read again downloads no file twice."""
        self._attempts: Counter[str] = Counter()
        """How often a message could not be accepted."""
        self._unstored = Unstored()
        self._told_at: OrderedDict[str, float] = OrderedDict()
        self._polling: asyncio.Task[None] | None = None
        self._invitations: Invitations | None = None
        self._position: Position | None = None

    def describe(self) -> str:
        """Return the id of the bot, and the link to talk to it."""
        return f"{self.user_id} (https://matrix.to/#/{self.user_id})" if self.user_id else ""

    @property
    def status(self) -> str:
        """What the connection does now, as a phrase."""
        return "not connected" if self._polling is None else f"{self.user_id}: {self._sync.status}"

    async def start(self, receive: Receive) -> None:
        """Check the token, and begin to read events after the last processed ones."""
        await super().start(receive)
        self._accepted.clear()
        try:
            await self._connect()
        except (NotSent, MaybeSent) as error:
            raise HermesError(str(error)) from None

    async def _connect(self) -> None:
        self.user_id = await self._api.whoami()
        self._display_name = await self._api.display_name(self.user_id)
        self._rooms = Rooms(self._api, self.user_id)
        await self._rooms.load()
        self._position = Position(self._context.home, self._api, self.user_id, self._settings.base_url)
        self._invitations = Invitations(self._api, self._rooms, self._settings, self.user_id, self._context.may_talk)
        self._sync = Sync(
            self._api,
            self._position,
            self.user_id,
            on_room=self._process,
            on_invitations=self._invitations.note,
            on_account_data=self._rooms.note_account_data,
            backlog_limit=self._settings.backlog_limit,
            poll_s=self._poll_s,
        )
        await self._sync.begin()
        self._polling = asyncio.create_task(self._sync.run(), name="hermes-matrix-sync")

    async def stop(self) -> None:
        """Disconnect; a batch that is not complete is read again at the next start."""
        polling, self._polling = self._polling, None
        if polling is not None:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
        invitations, self._invitations = self._invitations, None
        if invitations is not None:
            await invitations.stop()
        position, self._position = self._position, None
        if polling is not None and position is not None:
            with contextlib.suppress(TimeoutError):  # without it, the next node reads some events again
                async with asyncio.timeout(_SHARE_S):
                    await position.share()
        await self._api.close()
        await super().stop()

    # --- messages to rooms --------------------------------------------------------------------------------------------

    async def send(self, delivery: Delivery) -> Receipt:
        """Send a text; if the preview that it completes was removed, as a new message."""
        preview = dict(delivery.preview or {})
        shown = preview.pop(MESSAGE_IDS, None)
        if not delivery.is_final or not shown or not await self._is_removed(delivery.chat_id, shown[0], preview):
            return await super().send(delivery)
        # The transaction of the first message is that of the removed one.
        return await super().send(replace(delivery, key=f"{delivery.key} instead of {shown[0]}", preview=preview))

    async def _is_removed(self, room_id: str, event_id: str, preview: Mapping[str, Any]) -> bool:
        """Whether a preview was removed; after a part was sent, whether that was a new message."""
        if finished := preview.get(FINISHED_IDS):
            return bool(finished[0] != event_id)
        try:
            event = await self._api.event(room_id, event_id)
        except (NotSent, MaybeSent):  # the attempt to change it says more
            return False
        return bool(event) and not event.get("content")

    async def post(self, part: Part) -> str:
        """Send a message; the same part is the same message, however often it is sent."""
        content = await asyncio.to_thread(message_content, part)
        return await self._api.send(part.delivery.chat_id, transaction_of(part.key), content)

    async def edit(self, message_id: str, part: Part) -> None:
        """Replace the text of a message."""
        version = hashlib.sha256(part.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        transaction = transaction_of(f"{part.key} {message_id} {version}")
        await self._api.send(
            part.delivery.chat_id, transaction, await asyncio.to_thread(edit_content, message_id, part)
        )

    async def find(self, delivery: Delivery) -> Receipt | None:
        """Return the receipt of a message by sending again what the room does not show.

        The homeserver recognizes a message that it has, unless the token has changed since; then its mark does.
        """
        own = await self._own_messages(delivery.chat_id)
        texts = split_text(delivery.text, self.text_limit, self.length)
        transactions = [transaction_of(Part(delivery, text, index).key) for index, text in enumerate(texts)]
        edited = len((delivery.preview or {}).get(MESSAGE_IDS) or ())
        known = list(takewhile(bool, (own.get(each, "") for each in transactions))) if not edited else []
        if not known or not delivery.is_final:
            return await self.send(delivery)
        return await self.send(replace(delivery, preview={**(delivery.preview or {}), FINISHED_IDS: known}))

    async def _own_messages(self, room_id: str) -> dict[str, str]:
        """Return the ids of the last messages of the bot in a room, by their transactions."""
        search, begin, found = {"types": [MESSAGE], "senders": [self.user_id]}, None, dict[str, str]()
        for _ in range(_MOST_PAGES):
            page = await self._api.messages(room_id, begin, None, search)
            chunk, begin = page.get("chunk"), page.get("end")
            found |= marked(chunk if isinstance(chunk, list) else [], self.user_id)
            if not isinstance(begin, str):
                break
        return found

    async def post_file(self, part: Part, file: MediaFile) -> str:
        """Upload a file and send it."""
        size = await asyncio.to_thread(lambda: file.path.stat().st_size)
        if size > MAX_FILE_BYTES:
            raise NotSent(f"the file is larger than {MAX_FILE_BYTES // 1024 // 1024} MB", is_final=True)
        try:
            url = await self._api.upload(_pieces(file, size), size, file.path.name, mime_of(file))
        except MaybeSent as error:
            raise NotSent(str(error)) from error  # an upload alone shows nothing in the room
        content = file_content(part, file, url, size)
        return await self._api.send(part.delivery.chat_id, transaction_of(f"{part.key} {file.path}"), content)

    async def delete(self, message_id: str, chat: Delivery) -> None:
        """Remove the content of a message."""
        await self._api.redact(chat.chat_id, message_id, transaction_of(f"redact {message_id}"))

    async def typing(self, chat_id: str, thread_id: str | None) -> None:
        """Show that an answer is being written."""
        await self._api.typing(chat_id, self.user_id, _TYPING_S)

    # --- messages from rooms ------------------------------------------------------------------------------------------

    async def _process(self, room_id: str, events: list[Any], changes: list[Any]) -> None:
        """Accept the messages of a room, in order; raise if one could not be stored."""
        if identifier(room_id, ROOM) is None:
            return
        self._rooms.note_changes(room_id, [*changes, *events])
        for event in events:
            if as_dict(event).get("type") == ENCRYPTED:
                await self._explain_encryption(room_id, as_dict(event))
                continue
            message = read_message(event, self.user_id)
            if message is not None and message.event_id not in self._accepted:
                await self._accept_or_skip(room_id, message)

    async def _accept_or_skip(self, room_id: str, message: RoomMessage) -> None:
        """Accept a message; one that fails again and again for an unknown reason does not block those behind it."""
        try:
            await self._accept(room_id, message)
            self._attempts.pop(message.event_id, None)
        except (NotSent, MaybeSent, NotStored, HermesError, OSError):
            self._count_attempt(message)
            raise
        except Exception:
            if self._count_attempt(message) < _MOST_ATTEMPTS:
                raise
            warn(__name__, "message %s is left out:\n%s", message.event_id, traceback.format_exc())
            await self._unstored.give_up(message.event_id)

    def _count_attempt(self, message: RoomMessage) -> int:
        if len(self._attempts) > _MAX_REMEMBERED:
            self._attempts.clear()
        self._attempts[message.event_id] += 1
        return self._attempts[message.event_id]

    async def _about(self, room_id: str, message: RoomMessage) -> tuple[Room, Mapping[str, Any]]:
        """Return the room of a message and the event that it answers; without them if they cannot be had for long."""
        try:
            room = await self._rooms.get(room_id)
            return room, await self._api.event(room_id, message.reply_to) if message.reply_to else {}
        except (NotSent, MaybeSent):
            if self._attempts[message.event_id] < _MOST_ATTEMPTS:
                raise
            return Room(), {}

    async def _accept(self, room_id: str, message: RoomMessage) -> None:
        room, answered = await self._about(room_id, message)
        if self.receive is None or not self._is_for_bot(room_id, room, message, answered):
            return
        make = partial(self._inbound, room_id, room, message, answered)
        admission = await self._unstored.store(message.event_id, make, self.receive)
        self._accepted[message.event_id] = None
        while len(self._accepted) > _MAX_REMEMBERED:
            self._accepted.popitem(last=False)
        if admission is not None and admission.state == "refused":
            await self._explain_refusal(room_id, message, admission)

    def _is_for_bot(self, room_id: str, room: Room, message: RoomMessage, answered: Mapping[str, Any]) -> bool:
        settings = self._settings
        if not settings.require_mention or room_id in settings.free_response_chats or room.members == 2:
            return True
        return names_bot(message, self.user_id, self._display_name) or answered.get("sender") == self.user_id

    async def _inbound(self, room_id: str, room: Room, message: RoomMessage, answered: Mapping[str, Any]) -> Inbound:
        is_direct = self._rooms.is_direct(room_id, room, message.sender)
        # A user who only calls the bot has written its name.
        text = without_mention(message.text, self.user_id, self._display_name) or message.text.strip()
        quoted = as_dict(answered.get("content")).get("body")
        source = SessionSource(
            Platform.MATRIX,
            room_id,
            chat_name=room.name,
            chat_type="dm" if is_direct else "group",
            user_id=message.sender,
            user_name=room.names.get(message.sender),
            thread_id=thread_of(message, self._settings.session_scope, is_direct=is_direct),
            chat_topic=room.topic,
            message_id=message.event_id,
        )
        media, note = await self._files(message, source)
        return Inbound(
            "\n".join(each for each in (as_command(text, self._settings.command_prefix), note) if each),
            source,
            message_id=message.event_id,
            delivery_id=message.event_id,
            account=self.account,
            message_type=message.kind,
            media=media,
            reply_to_text=quoted[:_MAX_QUOTED] if isinstance(quoted, str) else None,
        )

    async def _files(self, message: RoomMessage, source: SessionSource) -> tuple[list[Mapping[str, str]], str]:
        """Return the stored file of a message; if it cannot be had, a sentence for the text."""
        if message.kind == "text":
            return [], ""
        if not await self._context.wants_files_of(source):
            return [], "[a file that was not received]"
        if message.media is None:
            return [], "[a file could not be received: it is encrypted or has no address]"
        media = message.media
        try:
            async with self._api.download(media.server, media.media_id) as chunks:
                return [await self._media.save(chunks, name=media.name, mime=media.mime)], ""
        except (NotSent, MaybeSent) as error:
            warn(__name__, "a file of a message was not received: %s", error)
            return [], f"[a file could not be received: {error}]"

    async def _explain_encryption(self, room_id: str, event: Mapping[str, Any]) -> None:
        """Tell an encrypted room once that its messages cannot be read."""
        position = self._position
        if event.get("sender") == self.user_id or position is None or not await position.tell_once(room_id):
            return
        warn(__name__, "%s is encrypted; its messages are not read", room_id)
        await self._tell(room_id, f"encrypted {room_id}", CANNOT_DECRYPT)

    async def _explain_refusal(self, room_id: str, message: RoomMessage, admission: Admission) -> None:
        """Tell a room why a message was refused, but not for each of many."""
        now = asyncio.get_running_loop().time()
        if not admission.message or now < self._told_at.get(room_id, float("-inf")) + _NOTICE_S:
            return
        self._told_at[room_id] = now
        while len(self._told_at) > _MAX_REMEMBERED:
            self._told_at.popitem(last=False)
        await self._tell(room_id, f"refused {message.event_id}", admission.message, message.thread_id)

    async def _tell(self, room_id: str, key: str, text: str, thread_id: str | None = None) -> None:
        try:
            await self.post(Part(Delivery(key, room_id, text, kind="notice", thread_id=thread_id), text))
        except (NotSent, MaybeSent) as error:
            warn(__name__, "a notice was not sent to %s: %s", room_id, error)


async def _pieces(file: MediaFile, size: int) -> AsyncIterator[bytes]:
    """Yield the content of a file, not more than was measured."""
    with await asyncio.to_thread(file.path.open, "rb") as stream:
        while size > 0 and (piece := await asyncio.to_thread(stream.read, min(_PIECE, size))):
            size -= len(piece)
            yield piece
