"""Pure rules for titles: cleaning and numbering."""

from __future__ import annotations

import re

from hermes.errors import InvalidTitle

MAX_TITLE_LENGTH = 100

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_JOINING = "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff"
"""Arabic, Persian, Indic, Burmese and Khmer letters, between which a joiner changes the spelling of a word."""
_PICTURES = "\u2190-\u2bff\U0001f000-\U0001faff"
_INVISIBLE = (  # not compiled here, because that takes longer than most titles
    f"(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])|(?<=[{_PICTURES}\ufe0f])\u200d(?=[{_PICTURES}])"
    "|([\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffc\ufff9-\ufffb])"
)
"""Invisible characters are in the group; a joiner between two letters or pictures is not."""
_NUMBERED = re.compile(r"^(.+) #([0-9]{1,9})$", re.DOTALL)
_SUFFIXED = re.compile(r"^(.+) \(([0-9]{1,9})\)$", re.DOTALL)


def sanitize(title: str | None) -> str | None:
    """Return a title in its stored form: no control or invisible characters, single spaces, at most 100 characters.

    Joiners stay where they matter: in emoji families, and in words of scripts that need them.
    """
    if title is not None and not isinstance(title, str):
        raise InvalidTitle(f"a title must be a string, not {type(title).__name__}")
    if not title:
        return None
    cleaned = " ".join(re.sub(_INVISIBLE, lambda found: "" if found[1] else found[0], _CONTROLS.sub("", title)).split())
    if len(cleaned) > MAX_TITLE_LENGTH:
        raise InvalidTitle(
            f"title too long: {len(cleaned)} characters, at most {MAX_TITLE_LENGTH} are allowed",
            hint="shorten it",
        )
    if not cleaned.isascii() and any("\ud800" <= character <= "\udfff" for character in cleaned):
        raise InvalidTitle("a title must be valid text")
    return cleaned or None


def split_number(title: str) -> tuple[str, int]:
    """`("Docker", 3)` for `Docker #3`, and number 1 for a title without one."""
    match = _NUMBERED.match(title)
    return (match[1], int(match[2])) if match else (title, 1)


def add_number(base: str, number: int) -> str:
    """`base #number`, with a shortened base if it would be too long."""
    return _append_within_limit(base, f" #{number}")


def add_suffix(title: str, number: int) -> str:
    """`title (number)`, to distinguish two sessions with one title; unlike ` #number` it joins no lineage."""
    return _append_within_limit(title, f" ({number})")


def strip_suffix(title: str) -> str:
    """Return a title without its ` (2)` and without the number of its lineage."""
    match = _SUFFIXED.match(title)
    return split_number(match[1] if match else title)[0]


def is_variant(base: str, title: str) -> bool:
    """Whether a title is the base itself or the base with a number."""
    return title == base or (title.startswith(base + " #") and split_number(title)[0] == base)


def next_number(base: str, titles: list[str]) -> int | None:
    """Return the number of the next title of a lineage, or None if no session has the base yet."""
    taken = [split_number(title)[1] for title in titles if is_variant(base, title)]
    return max(taken) + 1 if taken else None


def _append_within_limit(title: str, suffix: str) -> str:
    return title[: MAX_TITLE_LENGTH - len(suffix)].rstrip() + suffix
