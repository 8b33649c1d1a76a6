"""Whether a message of a group is for the bot; pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from telegram import Message, MessageEntity

from hermes.gateway.commands.parsing import parse_command

_COMMAND = re.compile(r"(/[A-Za-z0-9_]{1,64})@([A-Za-z0-9_]{1,64})(?![^\s])")
_MENTIONS = (MessageEntity.MENTION, MessageEntity.TEXT_MENTION)


@dataclass(frozen=True, slots=True)
class Addressing:
    """What decides whether a message of a group is for the bot."""

    bot_id: int
    username: str
    require_mention: bool = True
    free_response_chats: Collection[str] = ()
    account: str = ""


def address(message: Message, text: str, addressing: Addressing) -> str | None:
    """Return the text of a message in a group or channel without the bot's name; None if it is not for the bot."""
    whose, without_name = own_command(text, addressing)
    if whose:
        return without_name if whose == "own" else None
    mention = _mention(message, text, addressing)
    if mention is not None:
        return _without(text, *mention)
    if not addressing.require_mention or str(message.chat.id) in addressing.free_response_chats:
        return text
    replied = replied_to(message)
    if replied is not None and replied.from_user is not None and replied.from_user.id == addressing.bot_id:
        return text
    # Telegram shows bots only commands that may be for them, unless they may read everything.
    is_command = "@" not in text.split(maxsplit=1)[0] if text.startswith("/") else False
    return text if is_command and parse_command(text) is not None else None


def own_command(text: str, addressing: Addressing) -> tuple[str, str]:
    """Return whose `/command@name` a text is, `own`, `other` or empty, and the text without the name."""
    match = _COMMAND.match(text)
    if match is None:
        return "", text
    if match[2].casefold() != addressing.username.casefold():
        return "other", text
    return "own", match[1] + text[match.end() :]


def replied_to(message: Message) -> Message | None:
    """Return the message that this one answers; messages of a topic refer to its creation, which is no answer."""
    replied = message.reply_to_message
    return None if replied is None or replied.forum_topic_created is not None else replied


def _mention(message: Message, text: str, addressing: Addressing) -> tuple[int, int] | None:
    """Return where a text mentions the bot; Telegram counts in units of UTF-16."""
    units = text.encode("utf-16-le", "surrogatepass")
    for entity in message.entities if message.text else message.caption_entities:
        begin, length = entity.offset, entity.length
        if entity.type not in _MENTIONS or type(begin) is not int or type(length) is not int:
            continue
        if begin < 0 or length <= 0 or 2 * (begin + length) > len(units):
            continue
        named = units[2 * begin : 2 * (begin + length)].decode("utf-16-le", "replace")
        is_named = named.casefold() == f"@{addressing.username}".casefold()
        if is_named or (entity.user is not None and entity.user.id == addressing.bot_id):
            start = len(units[: 2 * begin].decode("utf-16-le", "surrogatepass"))
            return start, start + len(named)
    return None


def _without(text: str, begin: int, end: int) -> str:
    """Return a text without the mention at its beginning or end; inside a sentence it stays."""
    before, after = text[:begin].strip(), text[end:].strip()
    if not before:
        return after.lstrip(":, \n") or text[begin:end]
    return before.rstrip(" ,") if not after else text
