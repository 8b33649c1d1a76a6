"""What a search must find, computed in the simplest way: message by message.

Shares no code with the product.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.property.naive_words import Item, flat, fold, is_unspaced, items, join, joined_runs, measures, parts

MIN_INSIDE = 3
"""Shorter words are not searched inside words."""
SAME_START = 3
"""So many letters are the same in all forms of a word."""

_NO_PUNCTUATION = "'’‘\""


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
        self.groups = [*parts(self.text), *measures(self.items), *([run] for run in joined_runs(self.text))]
        self.flat = flat(self.text)


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
