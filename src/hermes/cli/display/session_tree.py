"""Families of sessions drawn as trees, one line per session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hermes.cli.display.terminal import clip, display_width, printable
from hermes.cli.display.times import ago
from hermes.phrases import plural

if TYPE_CHECKING:
    from hermes.state.rows import AnyRow

INNER, LAST = "├─ ", "└─ "
BELOW = {INNER: "│  ", LAST: "   ", "": ""}
"""The text below each connector, in front of the children."""
LEAST_NAME = 8
"""The minimum width of a name."""


@dataclass(slots=True)
class TreeNode:
    """A session with its children."""

    row: AnyRow
    children: list[TreeNode] = field(default_factory=list)


def build_tree(rows: Iterable[AnyRow]) -> TreeNode:
    """Build the tree of a family from rows in which every session follows its parent."""
    branches: dict[str, TreeNode] = {}
    for row in rows:
        branch = TreeNode(row)
        parent = branches.get(row["parent_session_id"])
        if parent is not None:
            parent.children.append(branch)
        branches[row["id"]] = branch
    return next(iter(branches.values()))


def draw_tree(family: TreeNode, *, now: float, width: int) -> Iterator[tuple[str, str]]:
    """Yield the lines of a tree with their session ids. In a narrow terminal, names are cut before ids."""
    waiting = [(family, "", "")]
    while waiting:
        branch, before, joint = waiting.pop()
        yield _format_line(branch.row, f"{before}{joint}", now=now, width=width), branch.row["id"]
        inner = before + BELOW[joint]
        joints = [INNER] * (len(branch.children) - 1) + [LAST]
        waiting += reversed([(child, inner, each) for child, each in zip(branch.children, joints, strict=False)])


def _format_line(row: AnyRow, before: str, *, now: float, width: int) -> str:
    head = printable(f"{before}{row['child_kind'] or 'child'}: " if before else "")
    name = printable(row["title"] or row["preview"] or "(no messages)")
    flags = "".join(f", {flag}" for flag in ("pinned", "archived") if row[flag])
    counts = f"  {plural(row['message_count'], 'message')}, {ago(row['last_active'], now)}{flags}"
    for facts in (f"  {printable(row['id'])}{counts}", f"  {printable(row['id'])}"):
        available = width - display_width(head) - display_width(facts)
        if available >= min(LEAST_NAME, display_width(name)):
            return f"{head}{clip(name, available)}{facts}"
    return clip(f"{head}{name}  {printable(row['id'])}{counts}", width)
