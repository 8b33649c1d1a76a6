"""What a search must find, computed in the simplest way: character by character, message by message.

Shares no code with the product. It knows the scripts that `search_corpus` writes in, and no others.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

MAX_PARTS = 8
MAX_PARTS_WITH_DIGITS = 3
MIN_INSIDE = 3
"""Shorter words are not searched inside words."""
SAME_START = 3
"""So many letters are the same in all forms of a word."""

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
_NO_PUNCTUATION = "'’‘\""
_UNSPACED = ("CJK UNIFIED", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "IDEOGRAPHIC ITERATION")
_INVISIBLE_MARKS = ("COMBINING", "HEBREW POINT", "ARABIC", "VARIATION SELECTOR", "EMOJI MODIFIER")
_PLAIN = {"ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"}


@dataclass(frozen=True)
class Leaf:
    """One searched word, phrase or part."""

    text: str
    """The text as a user types it, without stars and quotes."""
    kind: str = "word"
    """word, phrase, literal, prefix or part"""
    typed: str = ""
    """What is searched inside words, if it is not the text."""


@dataclass(frozen=True)
class Branch:
    """Nodes joined by and, or, not."""

    kind: str
    children: tuple[Tree, ...]


Tree = Leaf | Branch


@dataclass
class Message:
    """A message with its session and its text."""

    id: int
    session: str
    source: str
    owner: str | None
    role: str
    timestamp: float
    content: Any
    tool_name: str | None = None
    tool_calls: Any = None
    active: bool = True
    text: str = field(init=False)
    items: list[Item] = field(init=False)
    groups: list[list[Item]] = field(init=False)
    flat: str = field(init=False)

    def __post_init__(self) -> None:
        lines = [
            *_content_text(self.content),
            *([self.tool_name] if self.tool_name else []),
            *_calls_text(self.tool_calls),
        ]
        self.text = "\n".join(lines).replace("\0", " ")
        self.items = items(self.text)
        self.groups = [*parts(self.text), *_measures(self.items), *([run] for run in _joined_runs(self.text))]
        self.flat = flat(self.text)


Item = tuple[str, str]
"""A kind (word, run or symbol) and its folded characters."""


def find(
    messages: Sequence[Message], tree: Tree, admits: Callable[[Message], bool], literal: Tree | None = None
) -> set[int]:
    """Return the ids of exactly the messages that a search must find; `literal` is meant if a message has it."""
    scope = [message for message in messages if admits(message)]
    if literal is not None:
        literal = _with_ids(literal)
        if found := {message.id for message in scope if holds(literal, message)}:
            return found
    tree = _with_ids(tree)
    found = {message.id for message in scope if holds(tree, message)}
    if found:
        return found
    absent = {
        leaf
        for leaf in _wanted_leaves(tree)
        if may_be_inside(leaf) and not any(holds(leaf, message) for message in scope)
    }
    looser = _replace_leaves(tree, absent)
    return {message.id for message in scope if holds(looser, message)}


def holds(tree: Tree, message: Message) -> bool:
    """Whether a message matches the tree."""
    if isinstance(tree, Leaf):
        return _has(tree, message)
    if tree.kind == "not":
        return not holds(tree.children[0], message)
    return (all if tree.kind == "and" else any)(holds(child, message) for child in tree.children)


def may_be_inside(leaf: Leaf) -> bool:
    """Whether a leaf that no message has is searched inside words."""
    folded = flat(leaf.typed or leaf.text)
    is_word = len(folded) >= MIN_INSIDE and " " not in folded and not all(map(is_unspaced, folded))
    return leaf.kind != "part" and is_word


def _has(leaf: Leaf, message: Message) -> bool:
    if leaf.kind == "part":
        return flat(leaf.text) in message.flat
    if (leaf.kind == "literal" or _is_exact(leaf)) and flat(leaf.text) not in message.flat:
        return False
    assert items(leaf.text), f"{leaf.text!r} has no words"
    return any(
        _occurs_in(sought, sequence, leaf.kind == "prefix")
        for sought in _forms(leaf)
        for sequence in (message.items, *message.groups)
    )


def has_some(text: str, message: Message) -> bool:
    """Whether a message has a word of a text, or a word that begins like one, or two neighbours of a run."""
    words = [word for kind, word in items(message.text) if kind == "word"]
    words += [word for group in message.groups for kind, word in group if kind == "word"]
    for kind, sought in items(text):
        if kind == "run":
            pairs = [sought[at : at + 2] for at in range(len(sought) - 1)] or [sought]
            if any(pair in join(message.flat) for pair in pairs):
                return True
        elif (kind, sought) in message.items or any(word.startswith(sought[:SAME_START]) for word in words):
            return True
    return False


def is_machine_id(text: str) -> bool:
    """Whether a typed word looks like an id that a program made."""
    pieces = text.replace("-", "_").split("_")
    if not (text.isascii() and all(map(str.isalnum, pieces))):
        return False
    if not any(map(str.isdigit, text)) or not any(map(str.isalpha, text)):
        return False
    first, *others = map(len, pieces)
    if not others:
        return 9 <= first <= 64
    return 2 <= first <= 20 and len(others) <= 4 and all(2 <= length <= 64 for length in others)


def machine_word(text: str) -> str:
    """Return the one word of an id."""
    return "0" + "".join(character for character in text if character.isascii() and character.isalnum())


def _with_ids(tree: Tree) -> Tree:
    """Add to every typed id the one word that it is in a tool call."""
    if isinstance(tree, Branch):
        return Branch(tree.kind, tuple(map(_with_ids, tree.children)))
    if tree.kind not in ("word", "phrase", "prefix") or not is_machine_id(tree.text):
        return tree
    kind = "prefix" if tree.kind == "prefix" else "word"
    return Branch("or", (tree, Leaf(machine_word(tree.text).lower(), kind, tree.text)))


def _is_exact(leaf: Leaf) -> bool:
    """Whether a leaf is a phrase with punctuation."""
    return leaf.kind == "phrase" and any(map(_is_punctuation, fold(leaf.text)))


def _is_punctuation(character: str) -> bool:
    is_of_word = character.isalnum() or is_unspaced(character) or unicodedata.category(character)[0] == "M"
    return not (is_of_word or character.isspace() or character in _NO_PUNCTUATION)


def _forms(leaf: Leaf) -> list[list[Item]]:
    """The items of a leaf; in a phrase, runs are also joined, and a phrase that is one run is nothing else."""
    if leaf.kind != "phrase":
        return [items(leaf.text)]
    joined = items(leaf.text, is_joined=True)
    is_one_run = len(joined) == 1 and "".join(flat(leaf.text).split()) == joined[0][1]
    return [joined] if is_one_run else [joined, items(leaf.text)]


def _occurs_in(sought: list[Item], sequence: list[Item], is_prefix: bool) -> bool:
    return any(
        _is_at(sought, sequence[start : start + len(sought)], is_prefix)
        for start in range(len(sequence) - len(sought) + 1)
    )


def _is_at(sought: list[Item], there: list[Item], is_prefix: bool) -> bool:
    last = len(sought) - 1
    for number, ((kind, wanted), (other, actual)) in enumerate(zip(sought, there, strict=True)):
        if kind != other:
            return False
        if kind == "run":
            # A run may start earlier if nothing must precede it, and continue if nothing must follow it.
            starts, ends = actual.startswith(wanted), actual.endswith(wanted)
            if not ((number == 0 or starts) and (number == last or ends) and wanted in actual):
                return False
            if 0 < number < last and wanted != actual:
                return False
        elif not (actual.startswith(wanted) if is_prefix and number == last and kind == "word" else actual == wanted):
            return False
    return True


def _wanted_leaves(tree: Tree) -> Iterable[Leaf]:
    if isinstance(tree, Leaf):
        yield tree
    elif tree.kind != "not":
        for child in tree.children:
            yield from _wanted_leaves(child)


def _replace_leaves(tree: Tree, absent: set[Leaf]) -> Tree:
    if isinstance(tree, Leaf):
        return Leaf(tree.typed or tree.text, "part") if tree in absent else tree
    if tree.kind == "not":
        return tree
    return Branch(tree.kind, tuple(_replace_leaves(child, absent) for child in tree.children))


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


def _joined_runs(text: str) -> list[Item]:
    return [(kind, run) for kind, run in items(text, is_joined=True) if kind == "run"]


def _measures(sequence: list[Item]) -> list[list[Item]]:
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


def _content_text(content: Any) -> list[str]:
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if part["type"] == "text"]


def _calls_text(tool_calls: Any) -> list[str]:
    lines: list[str] = []
    for call in tool_calls or ():
        lines += [machine_word(call["id"]), call["function"]["name"]]
        lines += [f"{name} {value}" for name, value in json.loads(call["function"]["arguments"]).items()]
    return lines
