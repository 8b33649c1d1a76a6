"""`hermes sessions lineage`: the family of a session, as a tree."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from hermes.cli.named import SESSION, Named, named_session
from hermes.cli.options import AS_JSON
from hermes.cli.store import read_config
from hermes.cli.terminal import clip, counted, heading, printable, terminal_width, write, write_json
from hermes.cli.times import ago

if TYPE_CHECKING:
    from hermes.state.rows import Row

SCHEMA = "hermes.lineage/1"


@dataclass(slots=True)
class Branch:
    """A session with those that stem from it."""

    row: Row
    children: list[Branch] = field(default_factory=list)


@click.command()
@SESSION
@AS_JSON
def lineage(name: str, as_json: bool) -> None:
    """Show the family of a session: what it stems from, and what stems from it.

    A child is a compression (the same conversation, summarised, goes on), a branch, a reset, an import, or a delegate
    that an agent made for itself.
    """
    config = read_config(as_json=as_json)
    with named_session(config, name) as session:
        root = family_of(session)
    if as_json:
        write_json({"schema": SCHEMA, "item": plain(root)})
        return
    width = terminal_width()
    for line, is_asked in drawn(root, session.id, now=time.time()):
        write(heading(clip(line, width)) if is_asked else clip(line, width))


def family_of(session: Named) -> Branch:
    """The whole family, from its first session on."""
    first = session.store.get_ancestors(session.id)[-1]["id"]
    branches: dict[str, Branch] = {}
    for found in session.store.get_descendants(first):
        row = session.store.get_session(found["id"])
        if row is not None:
            branch = branches[row["id"]] = Branch(row)
            if row["parent_session_id"] in branches and row["id"] != first:
                branches[row["parent_session_id"]].children.append(branch)
    return branches[first]


def plain(branch: Branch) -> dict[str, Any]:
    """A family for a program."""
    kept = ("id", "title", "source", "child_kind", "started_at", "last_active", "ended_at", "message_count")
    return {name: branch.row[name] for name in kept} | {"children": [plain(child) for child in branch.children]}


def drawn(branch: Branch, asked: str, *, now: float, before: str = "", joint: str = "") -> Iterator[tuple[str, bool]]:
    """The lines of a tree, and which of them is the session that was asked for."""
    row = branch.row
    kind = f"{row['child_kind'] or 'child'}: " if joint else ""
    name = row["title"] or row["preview"] or "(no messages)"
    about = f"{row['id']}  {counted(row['message_count'], 'message')}, {ago(row['last_active'], now)}"
    yield printable(f"{before}{joint}{kind}{name}  {about}"), row["id"] == asked
    inner = before + {"├─ ": "│  ", "└─ ": "   "}.get(joint, "")
    for child in branch.children:
        yield from drawn(child, asked, now=now, before=inner, joint="└─ " if child is branch.children[-1] else "├─ ")
