"""The tree of a query: conditions on the text of a message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """These words, adjacent and in this order."""

    words: tuple[str, ...]
    text: str
    """The typed text, folded: used for highlighting, and for a substring search if no message has the words."""
    prefix: bool = False
    """Whether the last word matches as a prefix."""
    is_literal: bool = False
    """Whether the text itself must occur, with its punctuation."""


@dataclass(frozen=True, slots=True)
class Part:
    """This folded text at any position."""

    text: str


@dataclass(frozen=True, slots=True)
class Not:
    """Not this."""

    child: Node


@dataclass(frozen=True, slots=True)
class And:
    """All of these."""

    children: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One of these."""

    children: tuple[Node, ...]


Leaf = Words | Part
Node = Leaf | Not | And | Or


def wanted_leaves(node: Node) -> Iterator[Leaf]:
    """Yield the leaves that a message must or may contain, in order, without those under NOT."""
    if isinstance(node, Words | Part):
        yield node
    elif not isinstance(node, Not):
        for child in node.children:
            yield from wanted_leaves(child)


def all_leaves(node: Node) -> Iterator[Leaf]:
    """Yield all leaves."""
    if isinstance(node, Words | Part):
        yield node
    elif isinstance(node, Not):
        yield from all_leaves(node.child)
    else:
        for child in node.children:
            yield from all_leaves(child)


def replace_leaves(node: Node, with_: dict[Leaf, Leaf]) -> Node:
    """Return the tree with some of its wanted leaves replaced."""
    if isinstance(node, Words | Part):
        return with_.get(node, node)
    if isinstance(node, Not):
        return node
    return type(node)(tuple(replace_leaves(child, with_) for child in node.children))


def has_alternatives(node: Node) -> bool:
    """Whether the tree contains an OR outside NOT."""
    match node:
        case Or():
            return True
        case And(children):
            return any(map(has_alternatives, children))
        case _:
            return False
