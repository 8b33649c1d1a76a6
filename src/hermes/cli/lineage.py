"""`hermes sessions lineage`: the family of a session, as a tree."""

from __future__ import annotations

import time
from typing import Any

import click

from hermes.cli.family import Branch, drawn, grown
from hermes.cli.named import SESSION, Named, named_session
from hermes.cli.options import AS_JSON
from hermes.cli.store import read_config
from hermes.cli.terminal import heading, terminal_width, write, write_json

SCHEMA = "hermes.lineage/1"


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
    for line, session_id in drawn(root, now=time.time(), width=terminal_width()):
        write(heading(line) if session_id == session.id else line)


def family_of(session: Named) -> Branch:
    """The whole family, from its first session on."""
    first = session.store.get_ancestors(session.id)[-1]["id"]
    rows = (session.store.get_session(found["id"]) for found in session.store.get_descendants(first))
    return grown(row for row in rows if row is not None)


def plain(branch: Branch) -> dict[str, Any]:
    """A family for a program."""
    kept = ("id", "title", "source", "child_kind", "started_at", "last_active", "ended_at", "message_count")
    return {name: branch.row[name] for name in kept} | {"children": [plain(child) for child in branch.children]}
