"""What the bot sends, changes and deletes: each request once, and errors that say what Telegram has."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from telegram import Bot, ReplyParameters
from telegram.constants import ChatAction, ParseMode
from telegram.error import BadRequest, ChatMigrated, TelegramError

from hermes.gateway.engine.ports import NotSent
from hermes.log import inform
from hermes.platforms.telegram import failures
from hermes.platforms.telegram.formatting import fitting, sendable, to_html
from hermes.platforms.telegram.updates import GENERAL_TOPIC

if TYPE_CHECKING:
    from hermes.platforms.base import Part
    from hermes.platforms.base.media import MediaFile

T = TypeVar("T")

_MAX_CAPTION = 1024
_MAX_UPLOAD_BYTES = 50 * 1024 * 1024
_MAX_PHOTO_BYTES = 10 * 1024 * 1024
_UPLOAD_S = 120.0
_MAX_REMEMBERED = 2000


class Outgoing:
    """The sending half of a bot that is connected."""

    def __init__(self, bot: Bot, token: str) -> None:
        self._bot = bot
        self._token = token
        self._moved: OrderedDict[str, int] = OrderedDict()
        """The new ids of groups that have become supergroups."""
        self._sent: OrderedDict[tuple[str, str], None] = OrderedDict()

    def is_own(self, chat_id: str, message_id: str | None) -> bool:
        """Whether the bot has sent this message: in channels nothing else tells."""
        return (chat_id, message_id) in self._sent

    def note_migration(self, old: int, new: int) -> None:
        """Note the new id of a group; messages for the old one are sent there."""
        if self._moved.get(str(old)) == new:
            return
        self._moved[str(old)] = new
        _trim(self._moved)
        inform(__name__, "the Telegram group %s is a supergroup now, with the id %s", old, new)

    async def post(self, part: Part) -> str:
        """Send a text and return the id of its message."""
        more = {**_thread(part.delivery.thread_id), **_reply(part)}
        message = await self._formatted(self._bot.send_message, part.text, part.delivery.chat_id, **more)
        return self._note(part.delivery.chat_id, message)

    async def show_draft(self, part: Part) -> None:
        """Show a text that is being written; it disappears when the message comes, or after half a minute."""
        number = int.from_bytes(sha256(part.key.encode()).digest()[:4]) // 2 + 1
        more = {**_thread(part.delivery.thread_id), "draft_id": number}
        await self._formatted(self._bot.send_message_draft, part.text, part.delivery.chat_id, **more)

    async def say(self, chat_id: str, thread_id: str | None, text: str) -> None:
        """Send a plain text that answers nothing."""
        with self._translated():
            message = await self._call(self._bot.send_message, chat_id, text=sendable(text), **_thread(thread_id))
        self._note(chat_id, message)

    async def edit(self, message_id: str, part: Part) -> None:
        """Change the text of a message."""
        number = _number(message_id)
        await self._formatted(self._bot.edit_message_text, part.text, part.delivery.chat_id, message_id=number)

    async def delete(self, chat_id: str, message_id: str) -> None:
        """Delete a message; one that is deleted already stays so."""
        with self._translated(lambda error: failures.is_deleted(error)):
            await self._call(self._bot.delete_message, chat_id, message_id=_number(message_id))

    async def typing(self, chat_id: str, thread_id: str | None) -> None:
        """Show that an answer is being written."""
        with contextlib.suppress(TelegramError):  # it is shown for some seconds only, and shown again
            await self._call(self._bot.send_chat_action, chat_id, action=ChatAction.TYPING, **_thread(thread_id))

    async def post_file(self, part: Part, file: MediaFile) -> str:
        """Send a file and return the id of its message; a picture that Telegram cannot show is sent as a file."""
        content = await asyncio.to_thread(_read, file)
        caption = fitting(sendable(file.caption or part.text), _MAX_CAPTION)
        more = {**_thread(part.delivery.thread_id), **_reply(part), "caption": caption or None}
        send, name = self._sending(file, len(content))
        with self._translated():
            more |= {"filename": file.path.name, "write_timeout": _UPLOAD_S}
            try:
                message = await self._call(send, part.delivery.chat_id, **{name: content}, **more)
            except BadRequest as error:
                if name != "photo" or not _is_about_picture(error):
                    raise
                message = await self._call(self._bot.send_document, part.delivery.chat_id, document=content, **more)
        return self._note(part.delivery.chat_id, message)

    def _sending(self, file: MediaFile, size: int) -> tuple[Callable[..., Awaitable[Any]], str]:
        """Return the method for a file, and the name of its argument."""
        bot = self._bot
        if file.kind == "image" and size <= _MAX_PHOTO_BYTES:
            return bot.send_photo, "photo"
        if file.kind == "audio" and file.path.suffix.lower() in (".ogg", ".oga", ".opus"):
            return bot.send_voice, "voice"
        if file.kind == "audio":
            return bot.send_audio, "audio"
        return (bot.send_video, "video") if file.kind == "video" else (bot.send_document, "document")

    async def _formatted(self, call: Callable[..., Awaitable[T]], text: str, chat_id: str, **more: Any) -> T | None:
        """Send a text with its formatting, or plainly if Telegram refuses the formatting."""
        text = sendable(text)
        with self._translated(lambda error: "message_id" in more and failures.is_unchanged(error)):
            try:
                return await self._call(call, chat_id, text=to_html(text), parse_mode=ParseMode.HTML, **more)
            except BadRequest as error:
                if not failures.refuses_entities(error):
                    raise
                return await self._call(call, chat_id, text=text, **more)
        return None  # the message has this text already

    async def _call(self, call: Callable[..., Awaitable[T]], chat_id: str, **more: Any) -> T:
        """Call Telegram; a group that has become a supergroup has another id since."""
        try:
            return await call(chat_id=self._moved.get(chat_id, chat_id), **more)
        except ChatMigrated as error:
            with contextlib.suppress(ValueError):
                self.note_migration(int(chat_id), error.new_chat_id)
            return await call(chat_id=error.new_chat_id, **more)

    @contextlib.contextmanager
    def _translated(self, is_success: Callable[[BadRequest], bool] = lambda error: False) -> Any:
        try:
            yield
        except TelegramError as error:
            if isinstance(error, BadRequest) and is_success(error):
                return
            raise failures.translate(error, self._token) from None

    def _note(self, chat_id: str, message: Any) -> str:
        """Remember a message as the bot's own, and return its id."""
        message_id = str(message.message_id)
        self._sent[chat_id, message_id] = None
        _trim(self._sent)
        return message_id


def _trim(remembered: OrderedDict[Any, Any]) -> None:
    while len(remembered) > _MAX_REMEMBERED:
        remembered.popitem(last=False)


def _thread(thread_id: str | None) -> dict[str, Any]:
    """Return the argument for a topic; the general topic has a number that Telegram does not accept."""
    if not thread_id or thread_id == GENERAL_TOPIC or not _is_number(thread_id):
        return {}
    return {"message_thread_id": int(thread_id)}


def _reply(part: Part) -> dict[str, Any]:
    answered = part.reply_to
    if not answered or not _is_number(answered):
        return {}
    return {"reply_parameters": ReplyParameters(int(answered), allow_sending_without_reply=True)}


def _number(message_id: str) -> int:
    if not _is_number(message_id):
        raise failures.MessageGone("the message has no number of Telegram", is_final=True)
    return int(message_id)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20


def _is_about_picture(error: BadRequest) -> bool:
    text = str(error).lower()
    return "photo_" in text or "image_process" in text or "wrong type" in text


def _read(file: MediaFile) -> bytes:
    try:
        with file.path.open("rb") as opened:
            content = opened.read(_MAX_UPLOAD_BYTES + 1)
    except OSError as error:
        raise NotSent(f"the file cannot be read: {error.strerror}", is_final=True) from error
    if len(content) > _MAX_UPLOAD_BYTES:
        raise NotSent("the file is larger than 50 MB", is_final=True)
    return content
