"""`hermes sessions list`: lists conversations, the most recently active first."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hermes.cli.display.table import Column, format_table
from hermes.cli.display.terminal import heading, terminal_width, write_json, write_stderr, write_stdout
from hermes.cli.display.times import MOMENT_FORMS, ago, parse_moment_option
from hermes.cli.options import AS_JSON, SOURCE, limit_option
from hermes.cli.store import database_file, no_sessions_message, open_for_reading, read_config
from hermes.phrases import plural

if TYPE_CHECKING:
    from hermes.state.provider import SessionDBProvider
    from hermes.state.rows import AnyRow

LIST_SCHEMA = "hermes.sessions/1"

LEAST_FOR_PREVIEW = 57
"""In a narrower table the preview stands for a missing title."""
HIDDEN_SOURCES = ("tool", "subagent")
"""The sources of sessions that agents create for themselves, which are listed only on request."""

UNTITLED = "—"

FIELDS = (
    "id",
    "source",
    "title",
    "preview",
    "started_at",
    "last_active",
    "ended_at",
    "end_reason",
    "message_count",
    "tool_call_count",
    "model",
    "cwd",
    "user_id",
    "owner",
    "parent_session_id",
    "child_kind",
    "imported_from",
    "input_tokens",
    "output_tokens",
    "estimated_cost_usd",
    "actual_cost_usd",
)
"""The fields of a session in `list --json`, besides its flags; an export has prompts and configurations too."""

FLAGS = ("archived", "pinned")

_NONE: Mapping[str, int] = MappingProxyType({})


class ListQuery(NamedTuple):
    """Which sessions to list."""

    source: str | None = None
    limit: int = 20
    include_all: bool = False
    archived_only: bool = False
    by_start: bool = False
    since: float | None = None
    after: str | None = None

    @property
    def hidden_sources(self) -> tuple[str, ...]:
        """The sources to leave out: none with `--source` or `--all`."""
        return HIDDEN_SOURCES if self.source is None and not self.include_all else ()

    @property
    def has_children(self) -> bool:
        """Whether to list sessions that belong to another one: those of agents, if their source is named."""
        return self.source in HIDDEN_SOURCES


class SessionPage(NamedTuple):
    """A page of the list, and how many sessions are not on it."""

    rows: Sequence[AnyRow] = ()
    total: int = 0
    next: str | None = None
    left_out: Mapping[str, int] = _NONE
    """The number of further sessions that each option would show."""
    sources: Mapping[str, int] = _NONE


@click.command(
    "list",
    epilog="""\b
Examples:
  hermes sessions list --source telegram --limit 50
  hermes sessions list --json | jq -r '.items[].id'""",
)
@SOURCE
@limit_option("sessions")
@click.option("--all", "-a", "include_all", is_flag=True, help="Include archived sessions and those of agents.")
@click.option("--archived", "archived_only", is_flag=True, help="Only archived sessions.")
@click.option("--since", metavar="WHEN", help=f"Only sessions active since WHEN: {MOMENT_FORMS}.")
@click.option(
    "--sort",
    type=click.Choice(["active", "started"]),
    default="active",
    show_default=True,
    help="Sort by last activity or by start, newest first.",
)
@click.option("--after", metavar="CURSOR", help="Show the page after this cursor: `next` in --json, same order.")
@AS_JSON
def list_(
    source: str | None,
    limit: int,
    include_all: bool,
    archived_only: bool,
    since: str | None,
    sort: str,
    after: str | None,
    as_json: bool,
) -> None:
    """List conversations, the most recently active first.

    A compressed conversation is one row, with the id that resumes it. Sessions of the sources tool and subagent, which
    agents create for themselves, appear only with --source, or with --all if they have no parent.
    """
    now = time.time()
    moment = parse_moment_option("--since", since, now)
    query = ListQuery(source, limit, include_all, archived_only, sort == "started", moment, after)
    config = read_config(as_json=as_json)
    with open_for_reading(config) as store:
        page = SessionPage() if store is None else read_page(store, query)
    if as_json:
        items = [session_json(row) for row in page.rows]
        write_json({"schema": LIST_SCHEMA, "items": items, "total": page.total, "next": page.next})
        return
    if page.rows:
        header, *lines = format_session_table(page.rows, query, now=now, width=terminal_width())
        write_stdout("\n".join([heading(header), *lines]))
    for line in list_notes(page, query, database_file(config)):
        write_stderr(line)


def read_page(store: SessionDBProvider, query: ListQuery) -> SessionPage:
    """Read a page of the list, and count what it leaves out."""
    rows = store.list_sessions_rich(
        source=query.source,
        exclude_sources=query.hidden_sources,
        limit=query.limit + 1,
        include_children=query.has_children,
        order_by_last_active=not query.by_start,
        include_archived=query.include_all,
        archived_only=query.archived_only,
        after=query.after,
        active_since=query.since,
    )
    page = rows[: query.limit]
    # These counts use an index; counting all but the hidden sources in one query would read every session.
    hidden = {source: _count(store, query, source=source) for source in query.hidden_sources}
    left_out = {f"--source {source}": _count(store, query, source=source, exclude_children=False) for source in hidden}
    if not query.include_all and not query.archived_only:
        left_out["--archived"] = _count(store, query, archived_only=True, exclude_sources=query.hidden_sources)
    return SessionPage(
        rows=page,
        total=_count(store, query) - sum(hidden.values()),
        next=page[-1]["cursor"] if len(rows) > len(page) else None,
        left_out={option: count for option, count in left_out.items() if count},
        sources={} if page else store.count_by_source(),
    )


def session_json(row: AnyRow) -> dict[str, Any]:
    """Return a session for JSON output."""
    item = {name: row[name] for name in FIELDS} | {name: bool(row[name]) for name in FLAGS}
    return item | {"root_id": row.get("_lineage_root_id", row["id"]), "cursor": row["cursor"]}


def format_session_table(rows: Sequence[AnyRow], query: ListQuery, *, now: float, width: int) -> list[str]:
    """Format the list as a table, with titles if any session has one, else with sources."""
    moment, name = ("started_at", "Started") if query.by_start else ("last_active", "Last Active")
    has_titles = any(row["title"] for row in rows)
    previews = [str(row["preview"] or "") for row in rows]
    preview = Column("Preview", previews, is_elastic=True, dropped=1 if has_titles else 0)
    when = Column(name, [ago(row[moment], now) for row in rows], dropped=2)
    ids = Column("ID", [str(row["id"]) for row in rows])
    if has_titles:
        names = [str(row["title"] or (row["preview"] if width < LEAST_FOR_PREVIEW else "") or UNTITLED) for row in rows]
        titles = Column("Title", names, is_elastic=True)
        return format_table([titles, preview, when, ids], width)
    sources = Column("Src", [str(row["source"]) for row in rows], dropped=1)
    return format_table([preview, when, sources, ids], width)


def list_notes(page: SessionPage, query: ListQuery, path: Path) -> list[str]:
    """Return the lines about the list for stderr."""
    if page.rows:
        notes = [f"source={query.source}"] if query.source is not None else []
        notes += ["--limit for more"] if page.next else []
        notes += [f"{count} more with {option}" for option, count in page.left_out.items()]
        shown = f"{len(page.rows)} of {plural(page.total, 'session')}"
        return [f"{shown} ({'; '.join(notes)})" if notes else shown]
    if page.total:
        return [f"No sessions after this cursor, of {plural(page.total, 'session')}."]
    if page.left_out:
        options = ", ".join(f"{count} with {option}" for option, count in page.left_out.items())
        return [f"No sessions to show, but {options}."]
    if page.sources and query.source is None:
        return ["No archived sessions." if query.archived_only else "No sessions to show."]
    if page.sources:
        known = ", ".join(f"{source} ({count})" for source, count in page.sources.items())
        return [f"No sessions with source={query.source}. Sources with sessions: {known}."]
    return [no_sessions_message(path)]


def _count(store: SessionDBProvider, query: ListQuery, **changed: Any) -> int:
    wanted = {
        "source": query.source,
        "exclude_children": not query.has_children,
        "include_archived": query.include_all,
        "archived_only": query.archived_only,
        "active_since": query.since,
    }
    return store.session_count(**(wanted | changed))
