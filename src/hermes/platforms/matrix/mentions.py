"""Whether a message in a room is for the bot, and its text without the mention; pure."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.platforms.matrix.events import RoomMessage


def names_bot(message: RoomMessage, own_id: str, display_name: str) -> bool:
    """Whether a message mentions the bot: as its program says, or by name where the program does not."""
    if message.mentions is not None:
        return own_id in message.mentions
    text = message.text.casefold()
    return own_id.casefold() in text or _begins_with_name(text, display_name.casefold())


def without_mention(text: str, own_id: str, display_name: str) -> str:
    """Return a text without the bot's name at its beginning or its id at its end."""
    rest = text.strip()
    for name in _names(own_id, display_name):
        if rest.casefold().startswith(name.casefold()) and _ends_word(rest[len(name) : len(name) + 1]):
            return rest[len(name) :].lstrip(":, \n")
    for name in (own_id, f"@{display_name}" if display_name else own_id):
        if rest.casefold().endswith(name.casefold()):
            return rest[: len(rest) - len(name)].rstrip(" ,")
    return rest


def as_command(text: str, prefix: str) -> str:
    """Return a text in which the prefix of commands is a slash, which many programs keep for themselves."""
    after = text[len(prefix) : len(prefix) + 1]
    return "/" + text[len(prefix) :] if prefix and text.startswith(prefix) and after.isalpha() else text


def _names(own_id: str, display_name: str) -> Sequence[str]:
    local = own_id.removeprefix("@").partition(":")[0]
    found = (
        [own_id, f"@{display_name}", display_name, f"@{local}", local] if display_name else [own_id, f"@{local}", local]
    )
    return [each for each in found if each.strip("@")]


def _begins_with_name(text: str, name: str) -> bool:
    rest = text.strip().removeprefix("@")
    return bool(name) and rest.startswith(name) and _ends_word(rest[len(name) : len(name) + 1])


def _ends_word(following: str) -> bool:
    return not following or not (following.isalnum() or following == "_")
