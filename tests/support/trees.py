"""Query trees as text."""

from __future__ import annotations

from hermes.query.tree import And, Node, Not, Or, Part, Words


def tree_text(node: Node | None) -> str:
    """A tree in a short, readable form."""
    match node:
        case None:
            return ""
        case Words(words, _, prefix):
            return "_".join(words) + "*" * prefix
        case Part(text):
            return f"*{text}*"
        case Not(child):
            return f"!{tree_text(child)}"
        case And(children):
            return f"({' & '.join(map(tree_text, children))})"
        case Or(children):
            return f"({' | '.join(map(tree_text, children))})"
