"""`hermes sessions lineage`: shows the family of a session as a tree."""

from __future__ import annotations

import time
from typing import Any

import click

from hermes.cli.display.session_tree import TreeNode, build_tree, draw_tree
from hermes.cli.display.terminal import heading, terminal_width, write_json, write_stdout
from hermes.cli.options import AS_JSON
from hermes.cli.session_argument import SESSION, NamedSession, open_named_session
from hermes.cli.store import read_config

SCHEMA = "hermes.lineage/1"


@click.command()
@SESSION
@AS_JSON
def lineage(name: str, as_json: bool) -> None:
    """Show the ancestors and descendants of a session.

    A child is a compression (the summarised conversation continues in it), a branch, a reset, an import, or a delegate
    (a session that an agent created for itself).
    """
    config = read_config(as_json=as_json)
    with open_named_session(config, name) as session:
        root = read_family(session)
    if as_json:
        write_json({"schema": SCHEMA, "item": family_json(root)})
        return
    for line, session_id in draw_tree(root, now=time.time(), width=terminal_width()):
        write_stdout(heading(line) if session_id == session.id else line)


def read_family(session: NamedSession) -> TreeNode:
    """Read the family of a session, starting with its first session."""
    from hermes.state.sessions.lineage.forest import family_of

    return build_tree(family_of(session.store, session.id))


def family_json(branch: TreeNode) -> dict[str, Any]:
    """Return a family for JSON output."""
    kept = ("id", "title", "source", "child_kind", "started_at", "last_active", "ended_at", "message_count")
    return {name: branch.row[name] for name in kept} | {"children": [family_json(child) for child in branch.children]}
