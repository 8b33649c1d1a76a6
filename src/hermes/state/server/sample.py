"""Some of the messages that may match, read to tell how frequent matches are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.query.match import Document, matches
from hermes.query.tree import Node
from hermes.state.engine import Values
from hermes.state.operations import placeholders
from hermes.state.searchtext import search_text

SAMPLE, FREQUENT = 128, 3
"""If so many of so many messages match, reading them is the faster way to find some."""


def is_frequent(query: Node, ids: Sequence[int], ask: Callable[..., list[Values]]) -> bool:
    """Whether so many of the newest messages that may match do so that reading them finds some soon."""
    listed, values = placeholders("id", ids)
    rows = ask(f"SELECT role, content, tool_name, tool_calls FROM messages WHERE id IN ({listed})", **values)
    return sum(matches(query, Document(search_text(*row))) for row in rows) >= FREQUENT
