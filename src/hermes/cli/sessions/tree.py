"""`hermes sessions tree`: shows families of sessions as trees."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from hermes.cli.display.session_tree import TreeNode, build_tree, draw_tree
from hermes.cli.display.terminal import heading, terminal_width, write_json, write_stderr, write_stdout
from hermes.cli.options import AS_JSON, limit_option
from hermes.cli.sessions.list_ import HIDDEN_SOURCES
from hermes.cli.store import database_file, no_sessions_message, open_for_reading, read_config
from hermes.errors import NotFound, UnknownSession

if TYPE_CHECKING:
    from hermes.config import Config
    from hermes.state.provider import SessionDBProvider
    from hermes.state.rows import AnyRow
    from hermes.state.sessions.lineage.forest import FamilyTree

SCHEMA = "hermes.tree/1"
FIELDS = ("id", "parent_session_id", "child_kind", "title", "source", "started_at", "last_active", "ended_at")
FLAGS = ("archived", "pinned")


@dataclass(frozen=True, slots=True)
class FamilyPage:
    """A page of families, and the number of all."""

    families: Sequence[Sequence[AnyRow]] = ()
    total: int = 0
    next: str | None = None


@click.command(
    epilog="""\b
Examples:
  hermes sessions tree
  hermes sessions tree "refactoring auth" --all
  hermes sessions tree --json | jq '.items[] | .sessions | length'""",
)
@click.argument("name", metavar="[ID|TITLE]", required=False)
@limit_option("families")
@click.option("--after", metavar="ID", help="Show the page after this family: `next` in --json.")
@click.option("--all", "-a", "include_all", is_flag=True, help="Include archived families and sessions of agents.")
@AS_JSON
def tree(name: str | None, limit: int, after: str | None, include_all: bool, as_json: bool) -> None:
    """Show how sessions relate: branches, continuations, resets.

    Without a name, this shows all families of more than one session, the most recently active first. A child is a
    compression (the summarised conversation continues in it), a branch, a reset or an import; with --all also a
    delegate (a session that an agent created for itself).
    """
    config = read_config(as_json=as_json)
    with open_for_reading(config) as store:
        page = read_page(store, config, name, limit=limit, after=after, include_all=include_all)
    if as_json:
        items = [family_json(family) for family in page.families]
        write_json({"schema": SCHEMA, "items": items, "total": page.total, "next": page.next})
        return
    width, now = terminal_width(), time.time()
    for family in page.families:
        for line in format_family(build_tree(family), now=now, width=width):
            write_stdout(line)
    if name is None:
        write_stderr(page_note(page, config, is_empty=store is None))


def read_page(
    store: SessionDBProvider | None,
    config: Config,
    name: str | None,
    *,
    limit: int,
    after: str | None,
    include_all: bool,
) -> FamilyPage:
    """Read a page of families with all their sessions."""
    if store is None:
        if name is None:
            return FamilyPage()
        raise UnknownSession(no_sessions_message(database_file(config)), hint="")
    from hermes.state.sessions.lineage.forest import list_families, sessions_by_id

    if name is not None:
        return FamilyPage([read_family(store, name, include_all=include_all)], 1)
    found = list_families(store, hidden_sources=HIDDEN_SOURCES, include_all=include_all)
    start = 0 if after is None else 1 + _index_of(found, after)
    page = found[start : start + limit]
    rows = sessions_by_id(store, [member for each in page for member in each.member_ids])
    families = [[rows[member] for member in each.member_ids if member in rows] for each in page]
    is_end = start + limit >= len(found)
    return FamilyPage([family for family in families if family], len(found), None if is_end else page[-1].root_id)


def read_family(store: SessionDBProvider, name: str, *, include_all: bool) -> list[AnyRow]:
    """Read the family of a session, starting with its first session."""
    from hermes.state.sessions.lineage.forest import family_of
    from hermes.state.sessions.lookup import Purpose, find_session

    session_id = find_session(store, name, Purpose.READ)
    family = family_of(store, session_id)
    kept: dict[str, AnyRow] = {}
    for row in family:
        is_visible = include_all or (row["child_kind"] != "delegate" and row["source"] not in HIDDEN_SOURCES)
        if row["id"] in (family[0]["id"], session_id) or (is_visible and row["parent_session_id"] in kept):
            kept[row["id"]] = row
    return list(kept.values())


def family_json(family: Sequence[AnyRow]) -> dict[str, Any]:
    """Return a family for JSON output: a flat list in which every session follows its parent."""
    sessions = [
        {name: row[name] for name in FIELDS}
        | {"message_count": row["message_count"]}
        | {name: bool(row[name]) for name in FLAGS}
        for row in family
    ]
    return {"id": family[0]["id"], "sessions": sessions}


def format_family(family: TreeNode, *, now: float, width: int) -> list[str]:
    """Draw a family with its first session in bold."""
    first, *others = (line for line, _ in draw_tree(family, now=now, width=width))
    return [heading(first), *others]


def page_note(page: FamilyPage, config: Config, *, is_empty: bool) -> str:
    """Describe how many families there are, and how to see the others."""
    if is_empty:
        return no_sessions_message(database_file(config))
    if not page.total:
        return "No related sessions. `hermes sessions list` shows all sessions."
    families = "1 family" if page.total == 1 else f"{page.total} families"
    more = f" (--limit for more, or --after {page.next})" if page.next else ""
    return f"{len(page.families)} of {families}{more}"


def _index_of(found: Sequence[FamilyTree], after: str) -> int:
    for place, each in enumerate(found):
        if each.root_id == after:
            return place
    raise NotFound(f"there is no family that starts with session {after!r}", hint="pass the `next` of --json")
