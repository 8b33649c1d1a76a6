"""`hermes sessions search`: searches the messages of all sessions."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes.cli.display.search_hits import format_hits
from hermes.cli.display.terminal import terminal_width, write_json, write_stderr, write_stdout
from hermes.cli.display.times import MOMENT_FORMS, parse_moment_option
from hermes.cli.options import AS_JSON, AliasedOption, limit_option
from hermes.cli.store import database_file, no_sessions_message, open_for_reading, read_config
from hermes.errors import InvalidValue
from hermes.phrases import plural
from hermes.state.search.results import SearchResults

if TYPE_CHECKING:
    from hermes.state.provider import SessionDBProvider
    from hermes.state.row_types import Sort

SCHEMA = "hermes.search/1"
BUDGET_S = 5.0
"""How long a search may take."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Which messages to search for."""

    query: str
    sources: tuple[str, ...] = ()
    exclude_sources: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    """Ids, beginnings of ids, or titles."""
    since: float | None = None
    until: float | None = None
    limit: int = 20
    offset: int = 0
    sort: Sort = "relevance"
    include_undone: bool = False

    def conditions(self) -> str:
        """Return the options that narrow the search, as a remark after the query."""
        options = {
            "--source": self.sources,
            "--exclude-source": self.exclude_sources,
            "--role": self.roles,
            "--session": self.sessions,
            "--since": self.since,
            "--until": self.until,
        }
        used = [option for option, value in options.items() if value not in ((), None)]
        return f" (within {', '.join(used)})" if used else ""


@dataclass(frozen=True, slots=True)
class SearchPage:
    """A page of hits, and whether there are more."""

    hits: SearchResults = field(default_factory=SearchResults)
    has_more: bool = False
    sources: dict[str, int] = field(default_factory=dict)
    """The number of sessions by source; only read if there are no hits."""

    def next_offset(self, request: SearchRequest) -> int | None:
        """The offset of the next page, if there is one."""
        return request.offset + len(self.hits) if self.has_more else None

    def total(self, request: SearchRequest) -> int | None:
        """The number of matching messages, if this is the last page."""
        is_end_seen = self.hits.complete and not self.has_more and (self.hits or not request.offset)
        return request.offset + len(self.hits) if is_end_seen else None


class SearchCommand(click.Command):
    """A command that explains how to search for words that start with a minus sign."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an unknown option may be a word of the query."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(
                f"{error.format_message()} Put words that start with a minus sign after --:"
                f" {ctx.command_path} -- -docker deploy",
                ctx,
            ) from error


@click.command(
    cls=SearchCommand,
    epilog=f"""\b
All words of a query must match, in any order. You can also use:
  '"exact phrase"'   words next to each other
  docker OR podman   either word
  deploy NOT docker  without a word; also -docker, after --
  deploy*  '*ploy*'  words that start with or contain the letters

\b
WHEN is {MOMENT_FORMS}.

\b
Examples:
  hermes sessions search docker deploy --since 7d
  hermes sessions search --role user -- deploy -docker
  hermes sessions search docker --json | jq -r '.items[].session_id'""",
)
@click.argument("query", nargs=-1)
@click.option(
    "--source", "-s", "sources", metavar="NAME", multiple=True, help="Only sessions from this source. Repeatable."
)
@click.option(
    "--exclude-source",
    "exclude_sources",
    metavar="NAME",
    multiple=True,
    help="No sessions from this source. Repeatable.",
)
@click.option(
    "--role", "roles", metavar="NAME", multiple=True, help="Only messages of user, assistant or tool. Repeatable."
)
@click.option("--session", "sessions", metavar="ID|TITLE", multiple=True, help="Only this session. Repeatable.")
@click.option("--since", metavar="WHEN", help="Only messages since WHEN.")
@click.option("--until", metavar="WHEN", help="Only messages until WHEN; a day is included.")
@limit_option("messages")
@click.option("--offset", metavar="N", type=click.IntRange(min=0), default=0, help="Skip the first N messages.")
@click.option(
    "--sort",
    type=click.Choice(["relevance", "newest", "oldest"]),
    default="relevance",
    show_default=True,
    help="Order of the results.",
)
@click.option(
    "--include-undone", cls=AliasedOption, aliases=["--include-rewound"], is_flag=True, help="Include undone messages."
)
@AS_JSON
@click.pass_context
def search(
    context: click.Context,
    /,
    query: tuple[str, ...],
    since: str | None,
    until: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Search the messages of all sessions.

    Results are grouped by session, the best match first. Archived sessions are included.
    """
    words = " ".join(query).strip()
    if not words:
        raise click.UsageError(f"Missing search words, for example `{context.command_path} docker deploy`.", context)
    now = time.time()
    start, end = parse_period(since, until, now)
    request = SearchRequest(query=words, since=start, until=end, **options)
    config = read_config(as_json=as_json)
    with open_for_reading(config) as store:
        found = SearchPage() if store is None else run_search(store, request)
    if as_json:
        write_json(search_json(found, request))
        return
    if found.hits:
        write_stdout("\n".join(format_hits(found.hits, now=now, width=terminal_width())))
    for line in search_notes(found, request, context, database_file(config)):
        write_stderr(line)


def parse_period(since: str | None, until: str | None, now: float) -> tuple[float | None, float | None]:
    """Parse the start and the end of the period to search."""
    start = parse_moment_option("--since", since, now)
    end = parse_moment_option("--until", until, now, is_end=True)
    if start is not None and end is not None and start > end:
        raise InvalidValue(f"--since {since} is later than --until {until}", hint="swap them")
    return start, end


def run_search(store: SessionDBProvider, request: SearchRequest) -> SearchPage:
    """Search for one message more than the limit, to find out whether there are more."""
    from hermes.state.sessions.lookup import Purpose, find_session

    hits = store.search_messages(
        request.query,
        source_filter=request.sources or None,
        exclude_sources=request.exclude_sources,
        role_filter=request.roles,
        session_ids=[find_session(store, each, Purpose.READ) for each in request.sessions] or None,
        since=request.since,
        until=request.until,
        limit=request.limit + 1,
        offset=request.offset,
        sort=request.sort,
        include_inactive=request.include_undone,
        budget_s=BUDGET_S,
    )
    has_more = len(hits) > request.limit
    del hits[request.limit :]
    return SearchPage(hits, has_more, sources={} if hits else store.count_by_source())


def search_json(found: SearchPage, request: SearchRequest) -> dict[str, Any]:
    """Return the hits for JSON output."""
    hits = found.hits
    return {
        "schema": SCHEMA,
        "items": list(hits),
        "total": found.total(request),
        "next": found.next_offset(request),
        "search": {
            "path": hits.path,
            "degraded": hits.degraded,
            "complete": hits.complete,
            "repairs": list(hits.repairs),
            "hidden": hits.hidden,
        },
    }


def search_notes(found: SearchPage, request: SearchRequest, context: click.Context, path: Path) -> list[str]:
    """Return the lines about the search for stderr."""
    hits = found.hits
    if not hits and not found.sources:
        return [no_sessions_message(path)]
    lines = [_count(found, request)]
    next_offset = found.next_offset(request)
    if next_offset is not None:
        lines.append(f"More: {next_page_command(context, next_offset)}")
    unknown = [] if hits else [source for source in request.sources if source not in found.sources]
    if unknown:
        known = ", ".join(f"{source} ({count})" for source, count in found.sources.items())
        lines.append(f"Note: no sessions with source {', '.join(unknown)}; sources with sessions: {known}")
    lines += [f"Note: {repair}" for repair in hits.repairs]
    if hits.degraded:
        lines.append("Note: the search index is damaged or incomplete; the messages themselves were searched")
    if not hits.complete:
        lines.append(
            f"Note: the search stopped after {BUDGET_S:g} s; there may be more."
            " Narrow it with --since, --source or more words"
        )
    if rewound := hits.hidden.get("rewound"):
        lines.append(f"Note: {rewound} more with --include-undone")
    return lines


def _count(found: SearchPage, request: SearchRequest) -> str:
    if found.hits:
        sessions = len({hit["session_id"] for hit in found.hits})
        return f"{plural(len(found.hits), 'message')} in {plural(sessions, 'session')}"
    if request.offset:
        return f"No messages after the first {request.offset}."
    return f"No messages match: {request.query}{request.conditions()}"


def next_page_command(context: click.Context, offset: int) -> str:
    """Return the command that shows the next page."""
    import shlex

    words = context.command_path.split()
    for option in context.command.params:
        name = option.name or ""
        is_used = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if not is_used or not isinstance(option, click.Option) or name == "offset":
            continue
        value = context.params[name]
        if option.is_flag:
            words.append(option.opts[0])
        else:
            for each in value if option.multiple else (value,):
                words += [option.opts[0], str(each)]
    words += ["--offset", str(offset)]
    query = context.params["query"]
    if any(word.startswith("-") for word in query):
        words.append("--")
    return shlex.join([*words, *query])
