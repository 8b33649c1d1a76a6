"""What was asked for, as a tree of what must stand in a message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """These words, next to each other in this order."""

    words: tuple[str, ...]
    text: str
    """What was typed, folded: how it is highlighted, and looked for when no message has the words."""
    prefix: bool = False
    """The last word may go on."""


@dataclass(frozen=True, slots=True)
class Part:
    """This folded text, anywhere."""

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
    """The leaves that a message is found for, in order; not those that it must lack."""
    if isinstance(node, Words | Part):
        yield node
    elif not isinstance(node, Not):
        for child in node.children:
            yield from wanted_leaves(child)


def all_leaves(node: Node) -> Iterator[Leaf]:
    """All leaves."""
    if isinstance(node, Words | Part):
        yield node
    elif isinstance(node, Not):
        yield from all_leaves(node.child)
    else:
        for child in node.children:
            yield from all_leaves(child)


def replace_leaves(node: Node, with_: dict[Leaf, Leaf]) -> Node:
    """The same tree with some of its wanted leaves replaced."""
    if isinstance(node, Words | Part):
        return with_.get(node, node)
    if isinstance(node, Not):
        return node
    return type(node)(tuple(replace_leaves(child, with_) for child in node.children))


def has_alternatives(node: Node) -> bool:
    """Whether there are alternatives in it."""
    match node:
        case Or():
            return True
        case And(children):
            return any(map(has_alternatives, children))
        case _:
            return False
