"""The owner of a session, and the asker of an operation: two types, so that a missing owner never means "everybody"."""

from __future__ import annotations

import re
import unicodedata
from enum import Enum
from typing import Final, NoReturn, final

from hermes.errors import InvalidValue
from hermes.state.json_text import is_unicode

TERMINAL_SOURCES: Final = ("cli", "tui")
"""The sources of the terminal's sessions; no chat platform can use these names."""

MAX_SOURCE_CHARACTERS: Final = 64
MAX_USER_CHARACTERS: Final = 255

_TERMINAL_NAMES = frozenset({*TERMINAL_SOURCES, "terminal", "everybody"})
_ROOM_PREFIX = "agent"
_ROOM_PARTS = 5
"""`agent:<name>:<platform>:<kind of chat>:<chat>`; a key without a chat would be shared by strangers."""

_WHATSAPP = "whatsapp"
_SEPARATORS = r"[\s().+/-]+"
_WHATSAPP_NUMBER = r"([\d\s().+/-]{1,64})(?:_\d{1,8})?(?::\d{1,8})?(?:@([A-Za-z.]{0,64}))?"
_WHATSAPP_NUMBERS, _WHATSAPP_LINKED = ("", "s.whatsapp.net", "c.us"), "lid"
"""The servers after `@` of a phone number, and of an id that hides the number: equal digits are different people."""
_WHATSAPP_ROOMS = ("@g.us", "@broadcast", "@newsletter")

# Unicode calls these letters and symbols, but fonts show nothing.
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_INVISIBLE_CATEGORIES = ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp")


class Everybody(Enum):
    """The asker who sees the sessions of all owners: the operator."""

    EVERYBODY = "everybody"

    @property
    def stored(self) -> None:
        """No single owner."""
        return None


EVERYBODY: Final = Everybody.EVERYBODY


@final
class Owner:
    """One person, or all people of a shared room; made only by `owner_of` and `owner_of_room`, besides `TERMINAL`."""

    __slots__ = ("_stored",)
    _stored: str | None

    def __init__(self, *_: object) -> None:
        raise TypeError("use owner_of(), owner_of_room() or TERMINAL")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("an owner cannot be changed")

    @property
    def stored(self) -> str | None:
        """The value of the `owner` column; None for the terminal."""
        return self._stored

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Owner) and self._stored == other._stored

    def __hash__(self) -> int:
        return hash((Owner, self._stored))

    def __repr__(self) -> str:
        return "TERMINAL" if self._stored is None else f"<owner {self._stored!r}>"


Asker = Owner | Everybody
"""The owner, or everybody, for whom an operation reads and writes."""

OwnerName = str | Asker | None
"""How callers of the documented operations name an asker; None is everybody."""


def _make_owner(stored: str | None) -> Owner:
    owner = object.__new__(Owner)
    object.__setattr__(owner, "_stored", stored)
    return owner


TERMINAL: Final = _make_owner(None)
"""The terminal's user as an owner of sessions, notes and permissions."""


def is_terminal_source(source: str) -> bool:
    """Whether sessions of a source belong to the terminal."""
    return source in TERMINAL_SOURCES


def owner_of(source: str, user_id: str | None) -> Owner:
    """Return the owner for a user of a chat platform.

    Raise `InvalidValue` without a user, for any spelling of the terminal's names, and for an id that belongs to a
    group, is too long, or has invisible characters.
    """
    platform = _check_name(source, "the name of a platform", MAX_SOURCE_CHARACTERS)
    if unicodedata.normalize("NFKC", platform).casefold().strip() in _TERMINAL_NAMES:
        raise InvalidValue(
            f"{source!r} is a name of the terminal; a chat platform cannot use it",
            hint="give the platform another name",
        )
    user = _check_name(user_id, "a user id", MAX_USER_CHARACTERS)
    return _make_owner(f"{_encode_source(platform)}:{_canonical_user(platform, user)}")


def owner_of_room(session_key: str) -> Owner:
    """Return the owner for all people of a shared lane, from the lane's session key."""
    key = _check_name(session_key, "a session key", MAX_SOURCE_CHARACTERS + 2 * MAX_USER_CHARACTERS)
    parts = key.split(":")
    if parts[0] != _ROOM_PREFIX or len(parts) < _ROOM_PARTS or not all(part.strip() for part in parts[:_ROOM_PARTS]):
        raise InvalidValue(
            f"{session_key!r} is not the key of a shared lane",
            hint="a key has the form agent:main:<platform>:<kind of chat>:<chat>",
        )
    if unicodedata.normalize("NFKC", parts[2]).casefold().strip() in _TERMINAL_NAMES:
        raise InvalidValue(f"{session_key!r} is not the key of a shared lane: the terminal has none")
    return _make_owner(key)


def owner_from_column(stored: str | None) -> Owner:
    """Return the owner from the `owner` column of a session."""
    return TERMINAL if stored is None else _make_owner(stored)


def owner_column(source: str, user_id: str | None) -> str | None:
    """Return the `owner` column of a session whose creator names no owner.

    It is None (the terminal) without a user and for a terminal's source. A user id that `owner_of` rejects gives an
    owner that no asker can be.
    """
    if not user_id or is_terminal_source(source):
        return None
    try:
        return owner_of(source, user_id).stored
    except InvalidValue:
        return f"{_encode_source(source)}:{user_id}"


def parse_asker(owner: OwnerName) -> Asker:
    """Return the asker for the `owner` argument of an operation; None means everybody."""
    if owner is None:
        return EVERYBODY
    if isinstance(owner, str):
        return _make_owner(owner)
    if not isinstance(owner, Owner | Everybody):
        raise InvalidValue(f"owner must be a string or None, not {type(owner).__name__}")
    return owner


def _encode_source(source: str) -> str:
    """Encode a platform's name without a colon, so that the first colon of an owner ends it, and never as `agent`."""
    encoded = source.replace("%", "%25").replace(":", "%3A")
    return "%61gent" if encoded == _ROOM_PREFIX else encoded


def whatsapp_digits(user_id: str) -> tuple[str, bool] | None:
    """Return the digits of a WhatsApp user id, and whether they hide the number (`@lid`); None for other ids."""
    match = re.fullmatch(_WHATSAPP_NUMBER, user_id)
    server = (match[2] or "").lower() if match else ""
    if match is None or server not in (*_WHATSAPP_NUMBERS, _WHATSAPP_LINKED):
        return None
    digits = "".join(str(unicodedata.digit(each)) for each in re.sub(_SEPARATORS, "", match[1]))
    return digits, server == _WHATSAPP_LINKED


def is_whatsapp_room(identifier: str) -> bool:
    """Whether a WhatsApp id is that of a group, a broadcast list or a channel."""
    return identifier.lower().endswith(_WHATSAPP_ROOMS)


def _canonical_user(platform: str, user_id: str) -> str:
    """Return one spelling for each user: digits for a WhatsApp number, the unchanged id for other platforms."""
    if platform != _WHATSAPP:
        return user_id
    if is_whatsapp_room(user_id):
        raise InvalidValue(f"{user_id!r} is a group, not a person", hint="name the sender, or use owner_of_room")
    number = whatsapp_digits(user_id)
    if number is None:
        if not user_id.split("@")[0].split(":")[0].strip(" +"):
            raise _missing_user("a user id")
        return user_id
    digits, hides_number = number
    if not digits:
        raise _missing_user("a user id")
    return f"{digits}@{_WHATSAPP_LINKED}" if hides_number else digits


def _check_name(value: str | None, what: str, most: int) -> str:
    """Return a name without surrounding blanks; raise if it is empty or has invisible characters."""
    if value is not None and not isinstance(value, str):
        raise InvalidValue(f"{what} must be a string, not {type(value).__name__}")
    text = (value or "").strip()
    if len(text) > most:
        raise InvalidValue(f"{what} has at most {most} characters, not {len(text)}")
    if all(_is_invisible(each) or each.isspace() for each in text):
        raise _missing_user(what)
    if not is_unicode(text) or any(map(_is_invisible, text)):
        raise InvalidValue(f"{what} must not have invisible characters: {value!a}")
    return text


def _is_invisible(character: str) -> bool:
    return (
        character in _BLANKS
        or unicodedata.category(character) in _INVISIBLE_CATEGORIES
        or "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
    )


def _missing_user(what: str) -> InvalidValue:
    return InvalidValue(
        f"{what} is missing, so this user cannot be identified",
        hint="a chat needs a user; for a shared room use owner_of_room",
    )
