"""Split text and queries into words.

A text becomes a stream: its words in order, folded, with a space before and after each. A phrase is then simply a part
of the stream. The inner parts of words follow at the end (`user` also finds `getUserName`), behind `GAP` so that no
phrase reaches into them. Scripts without spaces become overlapping pairs of characters, plus every single character:
so a search for one character, two neighbours or a longer run works like a search for a word.
"""

from __future__ import annotations

import itertools
import re
from functools import cache, lru_cache
from itertools import islice
from unicodedata import is_normalized, normalize

from hermes.query.stems import stem_words

GAP = "¦"
"""Separates the words of a text and each group of parts; no analyzed text contains it."""

MAX_IDENTIFIERS = 10_000
"""How many different words of one text are checked for being identifiers."""
MAX_PARTS = 8
"""A word with more parts is no identifier."""

_UNITS = """
    ns us ms s sec secs min mins h hr hrs d b kb mb gb tb kib mib gib tib kbit mbit gbit kbps mbps gbps
    bit bits byte bytes hz khz mhz ghz px pt em rem dpi fps p k kw w wh kwh mah ma a mv v db mm cm m km
    in ft yd mi kg g mg lb oz l ml c f x
"""
UNITS = frozenset(_UNITS.split())
"""What follows a number as its unit."""

UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17d3\u17e0-\u17ff"  # Thai, Lao, Tibetan, Myanmar, Khmer
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u30fa\u30fc-\u318f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_MARKED = "\u0900-\u0963\u0966-\u096f\u0971-\u0dff\u1700-\u1734\u1740-\u177f\u1820-\u1cff\ua800-\uabff"
"""Scripts whose vowel signs are marks, which `\\w` does not match."""
_SYMBOLS = (
    "\u00a2-\u00a5\u00a7\u00a9\u00ac\u00ae\u00b0\u00b1\u00b6\u00d7\u00f7\u20a0-\u20cf\u2100-\u214f\u2190-\u2bff"
    "\u3012\u3013\u3030\u303d-\u303f\u3200-\u33ff\U0001f000-\U0001f3fa\U0001f400-\U0001faff\U0001fb00-\U0001fbff"
)
_IGNORED = (
    "\u00ad\u0300-\u0337\u0339-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\U0001f3fb-\U0001f3ff\U000e0000-\U000e0fff"
)
"""Accents, vowel points, variation selectors, skin tones and invisible controls."""

_LETTERS = {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ŧ": "t"}
_ASCII_BREAKS = str.maketrans({chr(code): " " for code in range(128) if not chr(code).isalnum()})
_ASCII_KINDS = bytes(
    b"a"[0] if char.islower() else b"A"[0] if char.isupper() else b"0"[0] if char.isdigit() else b" "[0]
    for char in map(chr, range(128))
).ljust(256)
"""For each ASCII character, `a` for a small letter, `A` for a capital, `0` for a digit."""
_LETTER_BORDERS = (b"aA", b"AAa")
_INNER_BORDERS = (*_LETTER_BORDERS, b"0a", b"0A", b"a0", b"A0")
"""What every identifier with parts has one of: a change between small letters, capitals and digits."""
_ASCII_FOLDED_BREAKS = _ASCII_BREAKS | {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_ASCII_FOLDED_LINE = {code: " " if chr(code).isspace() else chr(code).lower() for code in range(128)}

_language = re.compile(r"(?<=[A-Za-z])\+\+(?![A-Za-z_+#])|(?<=[A-Za-z])#(?![A-Za-z0-9_+#À-ɏ])")
_LANGUAGE_MARKS = {"++": "⧺", "#": "♯"}
SYMBOL_WORDS = frozenset(_LANGUAGE_MARKS.values())
"""The marks of `C++` and `F#`, each a word of its own."""

_moment = re.compile(r"(?<![0-9])([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?:[.,][0-9]+)?)(Z?)")
"""A date and a time of day, joined by T."""
_date_and_hour = re.compile("[0-9]-[0-9]{2}[Tt][0-9]")
"""A part of it that is found faster."""

_jamo = re.compile("([\u3131-\u318e]+)")
_part = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_identifier = re.compile("(?<![À-ɏ])[A-Za-z0-9]++(?![À-ɏ])")
_separators = re.compile(r"[^0-9A-Za-z]+")
_whole_id = re.compile("0[A-Za-z]")
"""The start of an id as one word, which is never split."""
_DIGITS = "0123456789"
_version = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]++[0-9]++(?:\.[0-9]++)+")


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return the patterns for ignored characters, pieces and unspaced runs, compiled at the first text beyond ASCII."""
    return (
        re.compile(f"[{_IGNORED}{''.join(_LETTERS)}]"),
        re.compile(f"([{UNSPACED}]+)|((?:[^\\W_{UNSPACED}{_SYMBOLS}]|[{_MARKED}])+)|([{_SYMBOLS}])"),
        re.compile(f"[{UNSPACED}]+"),
    )


@cache
def _joints() -> re.Pattern[str]:
    """White space between two characters of unspaced scripts, with the first of them."""
    return re.compile(f"([{UNSPACED}])\\s{{1,8}}(?=[{UNSPACED}])")


def replace_unindexable(text: str) -> str:
    """Replace what no index can hold: NUL characters and lone surrogates."""
    text = text.replace("\0", " ")
    return text if text.isascii() else text.encode(errors="replace").decode()


def fold(text: str) -> str:
    """Remove the differences that a search ignores: case, accents, width, invisible characters."""
    if text.isascii():
        return text.lower()
    ignored, _, _ = _patterns()
    # Remove marks first: normalizing sorts long runs of them, slowly.
    text = ignored.sub(_plain_letter, text.casefold())
    if not is_normalized("NFKD", text):
        text = "".join(map(_decompose, _jamo.split(text))) if _jamo.search(text) else _decompose(text)
    return normalize("NFC", ignored.sub(_plain_letter, text))


def fold_to_line(text: str) -> str:
    """Fold a text and replace each run of white space by one blank."""
    if not text.isascii():
        return " ".join(fold(text).split())
    line = text.translate(_ASCII_FOLDED_LINE)
    while "  " in line:
        line = line.replace("  ", " ")
    return line.strip(" ")


def stream(text: str) -> str:
    """Return the words of a text, their parts and their stems, each between two spaces."""
    found, parts = _analyze(text)
    return f" {' '.join([*found, *parts, *stem_words(found)])} "


def word_stream(text: str) -> str:
    """Return the stream of a text without stems, which most queries do not need."""
    found, parts = _analyze(text)
    return f" {' '.join([*found, *parts])} "


def stem_stream(text: str) -> str:
    """Return only the stems of a text, each between two spaces."""
    found, _ = _analyze(text)
    return f" {' '.join(stem_words(found))} "


def _analyze(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text in order, and what follows them: parts, measures, single characters."""
    separated = _separate_symbols(text)
    if separated.isascii():
        found = separated.translate(_ASCII_FOLDED_BREAKS).split()
        parts: list[str] = []
        kinds = separated.encode().translate(_ASCII_KINDS)
        has_digits = b"0" in kinds
        if names := _names(separated, kinds, _INNER_BORDERS if has_digits else _LETTER_BORDERS):
            parts = _identifier_parts(text, names)
        return found, [*parts, *_measures(found)] if has_digits else parts
    folded = fold(separated)
    found, singles = _split_pieces(folded, at_end=False)
    return found, [
        *_identifier_parts(text, _identifier.findall(text)),
        *_measures(found),
        *map(GAP.__add__, dict.fromkeys(singles)),
        *_joined_runs(folded, found),
    ]


def join_unspaced(text: str) -> str:
    """A text without the blanks and line breaks inside of runs of scripts that write none."""
    return text if text.isascii() else _joints().sub(r"\1", text)


def words(text: str, *, is_joined: bool = False) -> list[str]:
    """Return the words of a query's text in order; its last unspaced run may continue in the message.

    With `is_joined`, blanks inside of unspaced runs do not count.
    """
    separated = _separate_symbols(text)
    if separated.isascii():
        return separated.lower().translate(_ASCII_BREAKS).split()
    folded = fold(separated)
    found, _ = _split_pieces(join_unspaced(folded) if is_joined else folded, at_end=True)
    return found


def unspaced_runs(folded: str) -> list[str]:
    """Return the runs of folded text in scripts without spaces."""
    if folded.isascii():
        return []
    _, _, runs = _patterns()
    return runs.findall(folded)


def character_word(character: str) -> str:
    """The indexed word for a single character of an unspaced script, at any position."""
    return GAP + character


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that writes no spaces between words."""
    if character.isascii():
        return False
    _, _, runs = _patterns()
    return runs.match(character) is not None


def _joined_runs(folded: str, found: list[str]) -> list[str]:
    """The words of runs that blanks or line breaks interrupt, once more without these, behind a gap."""
    joined = join_unspaced(folded)
    if joined == folded:
        return []
    known = " ".join(found)
    whole: list[str] = []
    for run in unspaced_runs(joined):
        pairs = [*map("".join, itertools.pairwise(run)), run[-1]]
        if " ".join(pairs) not in known:
            whole += [GAP, *pairs]
    return whole


def _decompose(text: str) -> str:
    # Normalizing would join single Korean letters to syllables that are not in the text.
    return text if _jamo.match(text) else normalize("NFKD", normalize("NFKD", text).casefold())


def _plain_letter(found: re.Match[str]) -> str:
    return _LETTERS.get(found[0], "")


def _separate_symbols(text: str) -> str:
    """Put blanks around symbols and times that are words of their own, though letters or digits touch them."""
    if "#" in text or "++" in text:
        text = _language.sub(lambda found: f" {_LANGUAGE_MARKS[found[0]]} ", text)
    if "-" in text and ":" in text and _date_and_hour.search(text):
        text = _moment.sub(r"\1 \2 \3", text)
    return text


def _split_pieces(folded: str, *, at_end: bool) -> tuple[list[str], list[str]]:
    """Return the words of folded text and its single characters; with `at_end`, the last run gets no closing single."""
    found: list[str] = []
    singles: list[str] = []
    last = 0
    _, piece, _ = _patterns()
    for run, word, symbol in piece.findall(folded):
        if run:
            singles.extend(run)
            found.extend(map("".join, itertools.pairwise(run)))
            found.append(run[-1])
            last = len(found) if len(run) > 1 else 0
        else:
            found.append(word or symbol)
    if at_end and last and last == len(found):
        found.pop()
    return found, singles


def _names(text: str, kinds: bytes, borders: tuple[bytes, ...]) -> list[str]:
    """Return the words of an ASCII text that may be identifiers with parts, in order."""
    if len(text) > 2 * MAX_IDENTIFIERS:
        return text.translate(_ASCII_BREAKS).split()  # `_identifier_parts` counts the others too
    ends: dict[int, int] = {}
    for border in borders:
        at = kinds.find(border)
        while at >= 0:
            end = kinds.find(b" ", at)
            end = len(kinds) if end < 0 else end
            ends[kinds.rfind(b" ", 0, at) + 1] = end
            at = kinds.find(border, end)
    return [text[start : ends[start]] for start in sorted(ends)]


def _identifier_parts(text: str, cased: list[str]) -> list[str]:
    """Return the parts of identifiers and versions, each group behind a gap."""
    odd = dict.fromkeys([word for word in cased if not (word.isalpha() and word.islower())])
    groups = {word: parts for word in islice(odd, MAX_IDENTIFIERS) if (parts := _split_identifier(word))}
    if any(word[-1].isdigit() and f"{word}." in text for word in groups):
        # The numbers that follow belong to it: 1.2.3 also finds v1.2.3.
        for version in _version.findall(text):
            if version.partition(".")[0] in groups:
                groups[version] = tuple(_part.findall(version))
    return [word.lower() for parts in groups.values() for word in (GAP, *parts)]


def machine_id_word(text: str) -> str:
    """Return an id that a program made as one word, which no part of it matches."""
    return f"0{_separators.sub('', text)}"


def is_measure(word: str, *, is_prefix: bool = False) -> bool:
    """Whether a word is a number with its unit, or with the start of one; a text may write it as two words."""
    unit = word.lstrip(_DIGITS)
    if not word[0].isdigit():
        return False
    return any(each.startswith(unit) for each in UNITS) if is_prefix else unit in UNITS


def _measures(folded: list[str]) -> list[str]:
    """Numbers and the units that follow them as one word, each behind a gap: `500ms` also finds `500 ms`."""
    measures = [
        folded[at] + folded[at + 1]
        for at, word in enumerate(folded[:-1])
        if word[0] in _DIGITS and word.isdigit() and word.isascii() and folded[at + 1] in UNITS
    ]
    return [word for measure in dict.fromkeys(measures) for word in (GAP, measure)]


@lru_cache(maxsize=4_096)
def _split_identifier(word: str) -> tuple[str, ...]:
    """Return the parts of an identifier; empty for a single word, a number or a hash."""
    if not word.isascii() or (word.isalpha() and word[1:].islower()):
        return ()
    if is_measure(word.lower()):
        unit = word.lstrip(_DIGITS)
        return (word.removesuffix(unit), unit)
    parts = tuple(_part.findall(word))
    if word.isalpha():
        return parts if 1 < len(parts) <= MAX_PARTS else ()
    if _whole_id.match(word):
        return ()
    if 1 < len(parts) <= 3 and parts[0].isalpha() and (len(parts[0]) > 1 or parts[0] in "vV"):
        return parts
    return parts if 1 < len(parts) <= MAX_PARTS and _reads_like_words(parts) else ()


def _reads_like_words(parts: tuple[str, ...]) -> bool:
    """Whether a name with digits is mostly words, one of them capitalized, unlike a hash or key."""
    words = [part for part in parts if len(part) > 2 and part.isalpha()]
    return any(part.istitle() for part in words) and 2 * sum(map(len, words)) >= sum(map(len, parts))
