"""The words of a text, split in the simplest way: character by character.

Shares no code with the product. It knows the scripts that `search_corpus` writes in, and no others.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import pairwise

MAX_PARTS = 8
MAX_PARTS_WITH_DIGITS = 3
MAX_JOINT = 8
"""More white space separates even characters of scripts without spaces."""
UNITS = [
    "ns",
    "us",
    "ms",
    "s",
    "sec",
    "secs",
    "min",
    "mins",
    "h",
    "hr",
    "hrs",
    "d",
    "b",
    "kb",
    "mb",
    "gb",
    "tb",
    "kib",
    "mib",
    "gib",
    "tib",
    "kbit",
    "mbit",
    "gbit",
    "kbps",
    "mbps",
    "gbps",
    "bit",
    "bits",
    "byte",
    "bytes",
    "hz",
    "khz",
    "mhz",
    "ghz",
    "px",
    "pt",
    "em",
    "rem",
    "dpi",
    "fps",
    "p",
    "k",
    "kw",
    "w",
    "wh",
    "kwh",
    "mah",
    "ma",
    "a",
    "mv",
    "v",
    "db",
    "mm",
    "cm",
    "m",
    "km",
    "in",
    "ft",
    "yd",
    "mi",
    "kg",
    "g",
    "mg",
    "lb",
    "oz",
    "l",
    "ml",
    "c",
    "f",
    "x",
]

_DIGITS = "0123456789"
_UNSPACED = ("CJK UNIFIED", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "IDEOGRAPHIC ITERATION")
_INVISIBLE_MARKS = ("COMBINING", "HEBREW POINT", "ARABIC", "VARIATION SELECTOR", "EMOJI MODIFIER")
_PLAIN = {"ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"}

Item = tuple[str, str]
"""A kind (word, run or symbol) and its folded characters."""


def fold(text: str) -> str:
    """Remove case, accents, width and invisible characters."""
    taken_apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    kept = "".join(_PLAIN.get(character, character) for character in taken_apart if not _is_ignored(character))
    return unicodedata.normalize("NFC", kept)


@lru_cache(maxsize=4_096)
def flat(text: str) -> str:
    """Return the folded text with single blanks."""
    return " ".join(fold(text).split())


@lru_cache(maxsize=4_096)
def items(text: str, *, is_joined: bool = False) -> list[Item]:
    """Return the words, runs and symbols of a text, in order."""
    found: list[Item] = []
    open_kind = ""
    folded = fold(_with_language_marks(text))
    for character in join(folded) if is_joined else folded:
        kind = _kind(character)
        if kind in ("word", "run") and kind == open_kind:
            found[-1] = (kind, found[-1][1] + character)
        elif kind:
            found.append((kind, character))
        open_kind = kind
    return found


def join(folded: str) -> str:
    """Remove short white space between characters of scripts without spaces."""
    found = ""
    space = ""
    for character in folded:
        if character.isspace():
            space += character
            continue
        is_joint = found and len(space) <= MAX_JOINT and is_unspaced(found[-1]) and is_unspaced(character)
        found += character if is_joint else space + character
        space = ""
    return found


def joined_runs(text: str) -> list[Item]:
    """Return the runs of a text whose white space is removed."""
    return [(kind, run) for kind, run in items(text, is_joined=True) if kind == "run"]


def measures(sequence: list[Item]) -> list[list[Item]]:
    """Return numbers with the unit that follows them as one word."""
    return [
        [("word", number + unit)]
        for (kind, number), (_, unit) in pairwise(sequence)
        if kind == "word" and not number.strip(_DIGITS) and unit in UNITS
    ]


@cache
def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script without spaces."""
    name = unicodedata.name(character, "")
    return name.startswith(_UNSPACED) and "MIDDLE DOT" not in name


def parts(text: str) -> list[list[Item]]:
    """Return the inner words of identifiers and versions, a list for each."""
    tokens = {token for token in _tokens(text) if token.isascii()}
    groups = []
    for token in tokens:
        inner = _inner(token)
        number = _leading_digits(token)
        unit = token[len(number) :].lower()
        if number and unit in UNITS:
            groups.append([("word", number), ("word", unit)])
        elif len(inner) > 1 and _is_split(token, inner):
            groups.append([("word", part.lower()) for part in inner])
    return groups


def _is_split(token: str, inner: list[str]) -> bool:
    """Whether a token is an identifier or a version, and not a hash or a number."""
    if token[0] == "0" and token[1].isalpha():
        return False
    if token.isalpha() or "." in token:
        return len(inner) <= MAX_PARTS
    if len(inner) <= MAX_PARTS_WITH_DIGITS and inner[0].isalpha() and (len(inner[0]) > 1 or inner[0] in "vV"):
        return True
    words = [part for part in inner if part.isalpha() and len(part) >= 3]
    has_capital = any(part[0].isupper() and part[1:].islower() for part in words)
    return len(inner) <= MAX_PARTS and has_capital and len("".join(words)) >= len(token) / 2


def _tokens(text: str) -> Iterable[str]:
    """Yield every run of letters and digits, and versions such as v1.2.3."""
    token = ""
    tokens = []
    for character in f"{text} ":
        if _kind(character) != "word":
            tokens.append((token, character))
            token = ""
        else:
            token += character
    for number, (word, _) in enumerate(tokens):
        yield word
        letters = word.rstrip(_DIGITS)
        if not (word.isascii() and letters.isalpha() and letters != word):
            continue
        version, at = word, number
        while tokens[at][1] == "." and at + 1 < len(tokens) and tokens[at + 1][0][:1].isdigit():
            at += 1
            digits = _leading_digits(tokens[at][0])
            version += f".{digits}"
            if digits != tokens[at][0]:
                break
        if at > number:
            yield version


def _leading_digits(word: str) -> str:
    length = 0
    while length < len(word) and word[length] in _DIGITS:
        length += 1
    return word[:length]


def _inner(token: str) -> list[str]:
    """Split `getHTTPServer2` into get, HTTP, Server and 2."""
    found: list[str] = []
    for at, character in enumerate(token):
        before, after = token[at - 1 : at], token[at + 1 : at + 2]
        if not character.isalnum():
            continue
        is_new = (
            not before.isalnum()
            or character.isdigit() != before.isdigit()
            or (character.isupper() and before.islower())
            or (character.isupper() and before.isupper() and after.islower())
        )
        if is_new:
            found.append(character)
        else:
            found[-1] += character
    return found


def _with_language_marks(text: str) -> str:
    """Make the mark after the letter of C++ and F# a word."""
    found = ""
    at = 0
    while at < len(text):
        mark = next((mark for mark in ("++", "#") if text.startswith(mark, at)), "")
        after = text[at + len(mark) : at + len(mark) + 1]
        before = text[at - 1 : at] if at else ""
        is_language = mark and before.isascii() and before.isalpha() and not (after.isalnum() or after in tuple("_+#"))
        found += f" {'⧺' if mark == '++' else '♯'} " if is_language else (mark or text[at])
        at += len(mark) or 1
    return found


@cache
def _kind(character: str) -> str:
    category = unicodedata.category(character)
    if is_unspaced(character):
        return "run"
    if category[0] in "LN" or category in ("Mc", "Mn"):
        return "word"
    if category[0] == "S" and not character.isascii():
        return "symbol"
    return ""


@cache
def _is_ignored(character: str) -> bool:
    category, name = unicodedata.category(character), unicodedata.name(character, "")
    if name == "ARABIC TATWEEL" or category == "Cf":
        return True
    return category in ("Mn", "Me", "Sk") and name.startswith(_INVISIBLE_MARKS) and "SOUND MARK" not in name
