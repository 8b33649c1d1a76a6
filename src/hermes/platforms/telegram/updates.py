"""What an update of Telegram means for the gateway: decided without any request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from telegram import Chat, Message, Update, User

from hermes.gateway.engine.ports import Inbound
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.platforms.telegram.addressing import Addressing, address, own_command, replied_to
from hermes.platforms.telegram.attachments import Attachment, attachment_of, other_content

GENERAL_TOPIC = "1"
UPDATES = ("message", "channel_post")
"""The kinds of updates that are read. Edits are not: what was answered is not answered again."""
_CHAT_TYPES = {Chat.PRIVATE: "dm", Chat.GROUP: "group", Chat.SUPERGROUP: "group", Chat.CHANNEL: "channel"}
_MAX_QUOTE = 4096
_MAX_NAME = 256


class Malformed(Exception):
    """An update does not have the form that Telegram documents."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message of a user, without its file."""

    inbound: Inbound
    attachment: Attachment | None = None
    is_addressed: bool = True
    """Whether it is for the bot."""
    album: tuple[str, str] | None = None
    """The chat and the group of photos or files that it belongs to; one of them may name the bot for all."""


def parse_update(data: Mapping[str, Any], addressing: Addressing) -> Received | None:
    """Return the message of an update; None if no user wrote one. Any error means that it is malformed."""
    update = Update.de_json(dict(data), None)
    message = update.message or update.channel_post
    if message is None:
        return None
    _check(update, message)
    if message.chat.type not in _CHAT_TYPES or _is_of_program(message, addressing):
        return None
    attachment = attachment_of(message)
    text = message.text or message.caption or ""
    if not text and attachment is None:
        text = other_content(message)
    if not text and attachment is None:
        return None
    is_private = message.chat.type == Chat.PRIVATE
    addressed = own_command(text, addressing)[1] if is_private else address(message, text, addressing)
    inbound = Inbound(
        (text if addressed is None else addressed).strip(),
        source_of(message),
        message_id=str(message.message_id),
        delivery_id=f"{addressing.bot_id}:{update.update_id}",
        account=addressing.account,
        message_type=attachment.kind if attachment else "text",
        reply_to_text=_quoted(message),
        is_reply=message.reply_to_message is not None,
    )
    album = (str(message.chat.id), message.media_group_id) if message.media_group_id else None
    return Received(inbound, attachment, addressed is not None, album)


def source_of(message: Message) -> SessionSource:
    """Return where a message comes from."""
    chat, user = message.chat, _user(message)
    chat_type = _CHAT_TYPES[chat.type]
    chat_as_user = None if chat_type == "group" else str(chat.id)
    name = chat.title or chat.full_name or chat.username
    return SessionSource(
        Platform.TELEGRAM,
        str(chat.id),
        chat_name=name and name[:_MAX_NAME],
        chat_type=chat_type,
        user_id=chat_as_user if user is None else str(user.id),
        user_name=None if user is None else user.full_name[:_MAX_NAME],
        thread_id=_thread(message),
        chat_topic=_topic_name(message),
        message_id=str(message.message_id),
    )


def migration_of(data: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the old and the new id of a group that has become a supergroup."""
    message = data.get("message")
    chat = message.get("chat") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(chat, dict):
        return None
    old, new = chat.get("id"), message.get("migrate_to_chat_id")
    return (old, new) if type(old) is int and type(new) is int else None


def chat_of(data: Mapping[str, Any]) -> str:
    """Return the chat of an update; those without a readable one are one chat."""
    for kind in UPDATES:
        message = data.get(kind)
        chat = message.get("chat") if isinstance(message, dict) else None
        number = chat.get("id") if isinstance(chat, dict) else None
        if isinstance(number, int):
            return str(number)
    return ""


def _check(update: Update, message: Message) -> None:
    """Raise `Malformed` for ids and texts of another type: the library does not check them."""
    numbers: list[object] = [update.update_id, message.message_id, message.chat.id]
    if message.from_user is not None:
        numbers.append(message.from_user.id)
    if message.message_thread_id is not None:
        numbers.append(message.message_thread_id)
    texts: list[object] = [message.text, message.caption, message.media_group_id, message.chat.title]
    if not all(type(each) is int for each in numbers):
        raise Malformed("an id is not a number")
    if not all(each is None or isinstance(each, str) for each in texts):
        raise Malformed("a text is not a text")


def _thread(message: Message) -> str | None:
    """Return the topic; the thread id of a plain reply is none."""
    is_forum = message.chat.is_forum and message.chat.type != Chat.PRIVATE
    if message.is_topic_message or is_forum:
        return str(message.message_thread_id) if message.message_thread_id else GENERAL_TOPIC
    return None


def _topic_name(message: Message) -> str | None:
    """Return the name of the topic; a message that answers no other one refers to the creation of its topic."""
    created = message.reply_to_message.forum_topic_created if message.reply_to_message else None
    name = created.name if created is not None else None
    return name[:_MAX_NAME] if isinstance(name, str) and name.strip() else None


def _user(message: Message) -> User | None:
    """Return the person who wrote a message; None for channels and for administrators who write as their group."""
    return None if message.sender_chat is not None else message.from_user


def _is_of_program(message: Message, addressing: Addressing) -> bool:
    """Whether no person wrote a message; Telegram shows administrators who write as their group as a bot too."""
    if message.is_automatic_forward or (message.via_bot is not None and message.via_bot.id == addressing.bot_id):
        return True
    if message.sender_chat is not None and message.sender_chat.id == message.chat.id:
        return False
    return message.sender_chat is not None or message.from_user is None or message.from_user.is_bot


def _quoted(message: Message) -> str | None:
    if message.quote is not None and message.quote.text:
        return message.quote.text[:_MAX_QUOTE]
    replied = replied_to(message)
    text = None if replied is None else replied.text or replied.caption
    return text[:_MAX_QUOTE] if isinstance(text, str) and text else None
