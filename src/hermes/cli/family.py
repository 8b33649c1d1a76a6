"""Families of sessions as they are drawn: a tree, a line for each session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hermes.cli.terminal import printable
from hermes.cli.times import ago
from hermes.phrases import counted

if TYPE_CHECKING:
    from hermes.state.rows import Row

INNER, LAST = "├─ ", "└─ "
BELOW = {INNER: "│  ", LAST: "   ", "": ""}
"""What stands below a joint, before the children of what it joins."""


@dataclass(slots=True)
class Branch:
    """A session with those that stem from it."""

    row: Row
    children: list[Branch] = field(default_factory=list)


def grown(rows: Iterable[Row]) -> Branch:
    """A family of which the first session comes first, and every other behind the one that it stems from."""
    branches: dict[str, Branch] = {}
    for row in rows:
        branch = Branch(row)
        parent = branches.get(row["parent_session_id"])
        if parent is not None:
            parent.children.append(branch)
        branches[row["id"]] = branch
    return next(iter(branches.values()))


def drawn(family: Branch, *, now: float) -> Iterator[tuple[str, str]]:
    """The lines of a tree, each with the id of its session."""
    waiting = [(family, "", "")]
    while waiting:
        branch, before, joint = waiting.pop()
        yield printable(f"{before}{joint}{_described(branch.row, is_child=bool(joint), now=now)}"), branch.row["id"]
        inner = before + BELOW[joint]
        joints = [INNER] * (len(branch.children) - 1) + [LAST]
        waiting += reversed([(child, inner, each) for child, each in zip(branch.children, joints, strict=False)])


def _described(row: Row, *, is_child: bool, now: float) -> str:
    kind = f"{row['child_kind'] or 'child'}: " if is_child else ""
    name = row["title"] or row["preview"] or "(no messages)"
    flags = "".join(f", {flag}" for flag in ("pinned", "archived") if row[flag])
    return (
        f"{kind}{name}  {row['id']}  {counted(row['message_count'], 'message')}, {ago(row['last_active'], now)}{flags}"
    )
