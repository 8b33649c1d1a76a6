"""What an update of Telegram means for the gateway: decided without any request."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from telegram import Chat, Message, MessageEntity, Update, User

from hermes.gateway.engine.ports import Inbound
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource

GENERAL_TOPIC = "1"
_CHAT_TYPES = {"group": "group", "supergroup": "group", "channel": "channel"}
_MAX_QUOTE = 4096


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message, which is still at Telegram."""

    file_id: str
    kind: str
    name: str
    mime: str
    size: int


@dataclass(frozen=True, slots=True)
class Received:
    """A message for the bot, without its file."""

    inbound: Inbound
    attachment: Attachment | None = None


@dataclass(frozen=True, slots=True)
class Addressing:
    """What decides whether a message of a group is for the bot."""

    bot_id: int
    username: str
    require_mention: bool = True
    free_response_chats: Collection[str] = ()


def parse_update(data: Mapping[str, Any], addressing: Addressing) -> Received | None:
    """Return the message of an update; None if it is not for the bot. Any error means that it is malformed."""
    update = Update.de_json(dict(data), None)
    message = update.message or update.channel_post
    if message is None or _is_of_bot(message):
        return None
    attachment = _attachment(message)
    text = message.text or message.caption or ""
    if not text and attachment is None:
        text = _other_content(message)
    if not text and attachment is None:
        return None
    if message.chat.type != Chat.PRIVATE:
        addressed, text = _address(message, text, addressing)
        if not addressed:
            return None
    else:
        _, text = _own_command(text, addressing.username)
    inbound = Inbound(
        text.strip() if attachment else text,
        source_of(message),
        message_id=str(message.message_id),
        delivery_id=str(update.update_id),
        message_type=attachment.kind if attachment else "text",
        reply_to_text=_quoted(message),
    )
    return Received(inbound, attachment)


def source_of(message: Message) -> SessionSource:
    """Return where a message comes from."""
    chat, user = message.chat, _user(message)
    chat_type = _CHAT_TYPES.get(chat.type, "dm")
    is_anonymous = user is None
    fallback = str(chat.id) if chat_type != "group" else None
    return SessionSource(
        Platform.TELEGRAM,
        str(chat.id),
        chat_name=chat.title or chat.full_name or chat.username,
        chat_type=chat_type,
        user_id=fallback if is_anonymous or user is None else str(user.id),
        user_name=None if user is None else user.full_name,
        thread_id=_thread(message),
        message_id=str(message.message_id),
    )


def _thread(message: Message) -> str | None:
    """Return the topic; the thread id of a plain reply is none."""
    if message.is_topic_message or message.chat.is_forum:
        return str(message.message_thread_id) if message.message_thread_id else GENERAL_TOPIC
    return None


def _user(message: Message) -> User | None:
    """Return the person who wrote a message; None for channels and for administrators who write as their group."""
    return None if message.sender_chat is not None else message.from_user


def _is_of_bot(message: Message) -> bool:
    """Whether a bot wrote a message; Telegram shows anonymous administrators as a bot too."""
    if message.sender_chat is not None and message.sender_chat.id == message.chat.id:
        return False
    return message.from_user is not None and message.from_user.is_bot


def _quoted(message: Message) -> str | None:
    if message.quote is not None and message.quote.text:
        return message.quote.text[:_MAX_QUOTE]
    replied = _replied_to(message)
    text = None if replied is None else replied.text or replied.caption
    return text[:_MAX_QUOTE] if text else None


def _replied_to(message: Message) -> Message | None:
    """Return the message that this one answers; messages of a topic refer to its creation, which is no answer."""
    replied = message.reply_to_message
    return None if replied is None or replied.forum_topic_created is not None else replied


# --- groups -----------------------------------------------------------------------------------------------------------


def _address(message: Message, text: str, addressing: Addressing) -> tuple[bool, str]:
    """Return whether a message of a group is for the bot, and its text without the mention."""
    target, text_of_command = _own_command(text, addressing.username)
    if target == "other":
        return False, text
    if target == "own":
        return True, text_of_command
    mention = _mention(message, addressing)
    replied = _replied_to(message)
    is_reply = replied is not None and replied.from_user is not None and replied.from_user.id == addressing.bot_id
    if mention:
        text = text.replace(mention, "", 1).strip()
        return True, text or mention
    is_free = not addressing.require_mention or str(message.chat.id) in addressing.free_response_chats
    return is_reply or is_free, text


def _own_command(text: str, username: str) -> tuple[str, str]:
    """Return whose `/command@name` a text is, `own`, `other` or empty, and the text without the name."""
    first, blank, rest = text.partition(" ")
    command, at, name = first.partition("@")
    if not command.startswith("/") or not at:
        return "", text
    if name.casefold() != username.casefold():
        return "other", text
    return "own", f"{command}{blank}{rest}"


def _mention(message: Message, addressing: Addressing) -> str:
    """Return the text that mentions the bot."""
    wanted = f"@{addressing.username}".casefold()
    kinds: list[str | None] = [MessageEntity.MENTION, MessageEntity.TEXT_MENTION]
    found = {**message.parse_entities(kinds), **message.parse_caption_entities(kinds)}
    for entity, text in found.items():
        if text.casefold() == wanted or (entity.user is not None and entity.user.id == addressing.bot_id):
            return text
    return ""


# --- files ------------------------------------------------------------------------------------------------------------


def _attachment(message: Message) -> Attachment | None:
    if message.photo:
        photo = max(message.photo, key=lambda each: each.width * each.height)
        return Attachment(photo.file_id, "image", "photo.jpg", "image/jpeg", photo.file_size or 0)
    kinds: list[tuple[str, Any, str, str]] = [
        ("audio", message.voice, "voice.ogg", "audio/ogg"),
        ("audio", message.audio, "audio.mp3", "audio/mpeg"),
        ("video", message.video, "video.mp4", "video/mp4"),
        ("video", message.video_note, "video.mp4", "video/mp4"),
        ("video", message.animation, "animation.mp4", "video/mp4"),
        ("file", message.document, "file", "application/octet-stream"),
    ]
    for kind, file, name, mime in kinds:
        if file is not None:
            own_name = str(getattr(file, "file_name", None) or name)[:200]
            own_mime = str(getattr(file, "mime_type", None) or mime)[:100]
            return Attachment(file.file_id, kind, own_name, own_mime, file.file_size or 0)
    return None


def _other_content(message: Message) -> str:
    """Return a line about content that is neither text nor a file."""
    if message.sticker is not None:
        return f"[sticker {message.sticker.emoji or ''}]".replace(" ]", "]")
    if message.location is not None:
        return f"[location {message.location.latitude}, {message.location.longitude}]"
    if message.contact is not None:
        return f"[contact {message.contact.first_name} {message.contact.phone_number}]"
    return ""
