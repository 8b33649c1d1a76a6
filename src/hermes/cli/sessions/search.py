"""`hermes sessions search`: messages by their words."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes.cli.display.search_hits import format_hits
from hermes.cli.display.terminal import terminal_width, write_json, write_stderr, write_stdout
from hermes.cli.display.times import MOMENT_FORMS, parse_moment_option
from hermes.cli.options import AS_JSON
from hermes.cli.store import database_file, no_sessions_message, open_for_reading, read_config
from hermes.errors import InvalidValue, UnknownSession
from hermes.phrases import counted
from hermes.state.search.results import SearchResults

if TYPE_CHECKING:
    from hermes.state.provider import SessionDBProvider
    from hermes.state.row_types import Sort

SCHEMA = "hermes.search/1"
BUDGET_S = 5.0
"""How long a person waits for a complete answer."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Which messages to look for."""

    query: str
    sources: tuple[str, ...] = ()
    exclude_sources: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    limit: int = 20
    offset: int = 0
    sort: Sort = "relevance"
    include_rewound: bool = False

    def conditions(self) -> str:
        """The options that leave messages out, as a remark behind the query."""
        options = {
            "--source": self.sources,
            "--exclude-source": self.exclude_sources,
            "--role": self.roles,
            "--session": self.session_ids,
            "--since": self.since,
            "--until": self.until,
        }
        given = [option for option, value in options.items() if value not in ((), None)]
        return f" (within {', '.join(given)})" if given else ""


@dataclass(frozen=True, slots=True)
class SearchPage:
    """A part of what was found, and whether there is more."""

    hits: SearchResults = field(default_factory=SearchResults)
    has_more: bool = False
    sources: dict[str, int] = field(default_factory=dict)
    """How many sessions there are from where; only asked when nothing was found."""

    def next_offset(self, request: SearchRequest) -> int | None:
        """Where the next page begins."""
        return request.offset + len(self.hits) if self.has_more else None

    def total(self, request: SearchRequest) -> int | None:
        """How many messages match, if the end has been seen."""
        is_end_seen = self.hits.complete and not self.has_more and (self.hits or not request.offset)
        return request.offset + len(self.hits) if is_end_seen else None


class SearchCommand(click.Command):
    """A command whose arguments may look like options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments; what is no option may be meant as part of the query."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(
                f"{error.format_message()} Words that begin with a minus go behind two of them:"
                f" {ctx.command_path} -- -docker deploy",
                ctx,
            ) from error


@click.command(
    cls=SearchCommand,
    epilog=f"""\b
In a query all words must match, in any order. Besides:
  '"exact phrase"'   words side by side
  docker OR podman   one of them is enough
  deploy NOT docker  without a word; -docker says the same, behind --
  deploy*  '*ploy*'  words that begin so, or have it inside

\b
Moments are {MOMENT_FORMS}.

\b
Examples:
  hermes sessions search docker deploy --since 7d
  hermes sessions search --role user -- deploy -docker
  hermes sessions search docker --json | jq -r '.items[].session_id'""",
)
@click.argument("query", nargs=-1)
@click.option("--source", "-s", "sources", metavar="NAME", multiple=True, help="Only from here; may be repeated.")
@click.option(
    "--exclude-source", "exclude_sources", metavar="NAME", multiple=True, help="Not from here; may be repeated."
)
@click.option(
    "--role", "roles", metavar="NAME", multiple=True, help="Only what a user, assistant or tool said; may be repeated."
)
@click.option("--session", "session_ids", metavar="ID", multiple=True, help="Only in this session; may be repeated.")
@click.option("--since", metavar="MOMENT", help="Only messages from then on.")
@click.option("--until", metavar="MOMENT", help="Only messages until then; a day counts to its end.")
@click.option(
    "--limit", "-n", metavar="N", type=click.IntRange(min=1), default=20, show_default=True, help="At most N messages."
)
@click.option("--offset", metavar="N", type=click.IntRange(min=0), default=0, help="Leave out the first N messages.")
@click.option(
    "--sort",
    type=click.Choice(["relevance", "newest", "oldest"]),
    default="relevance",
    show_default=True,
    help="What comes first.",
)
@click.option("--include-rewound", is_flag=True, help="Messages too that a conversation has gone back behind.")
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
    """Find messages by their words.

    What was found is shown by session, the best first. Sessions of every source are searched, archived ones too.
    """
    words = " ".join(query).strip()
    if not words:
        raise click.UsageError(f"Say what to look for, as in `{context.command_path} docker deploy`.", context)
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
    """The moments between which a message must lie."""
    start = parse_moment_option("--since", since, now)
    end = parse_moment_option("--until", until, now, is_end=True)
    if start is not None and end is not None and start > end:
        raise InvalidValue(f"--since {since} is later than --until {until}", hint="exchange them")
    return start, end


def run_search(store: SessionDBProvider, request: SearchRequest) -> SearchPage:
    """Search, and ask for one message more to know whether there is one."""
    hits = store.search_messages(
        request.query,
        source_filter=request.sources or None,
        exclude_sources=request.exclude_sources,
        role_filter=request.roles,
        session_ids=[_find_session(store, each) for each in request.session_ids] or None,
        since=request.since,
        until=request.until,
        limit=request.limit + 1,
        offset=request.offset,
        sort=request.sort,
        include_inactive=request.include_rewound,
        budget_s=BUDGET_S,
    )
    has_more = len(hits) > request.limit
    del hits[request.limit :]
    return SearchPage(hits, has_more, sources={} if hits else store.count_by_source())


def _find_session(store: SessionDBProvider, session_id: str) -> str:
    resolved = store.resolve_session_id(session_id)
    if resolved is None:
        raise UnknownSession(f"there is no session {session_id!r}, or more than one whose id begins so")
    return resolved


def search_json(found: SearchPage, request: SearchRequest) -> dict[str, Any]:
    """What was found, for a program."""
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
    """What the person should know beyond what was found."""
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
        lines.append(f"Note: no session is from {', '.join(unknown)}; there are sessions of {known}")
    lines += [f"Note: {repair}" for repair in hits.repairs]
    if hits.degraded:
        lines.append("Note: the search index is damaged or still being built; the messages themselves were read")
    if not hits.complete:
        lines.append(
            f"Note: the search stopped after {BUDGET_S:g} s, there may be more;"
            " narrow it with --since, --source or more words"
        )
    if rewound := hits.hidden.get("rewound"):
        lines.append(f"Note: {rewound} more with --include-rewound")
    return lines


def _count(found: SearchPage, request: SearchRequest) -> str:
    if found.hits:
        sessions = len({hit["session_id"] for hit in found.hits})
        return f"{counted(len(found.hits), 'message')} in {counted(sessions, 'session')}"
    if request.offset:
        return f"No messages behind the first {request.offset}."
    return f"No messages match: {request.query}{request.conditions()}"


def next_page_command(context: click.Context, offset: int) -> str:
    """The command that shows the next page: this one, from further on."""
    import shlex

    words = context.command_path.split()
    for option in context.command.params:
        name = option.name or ""
        is_given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if not is_given or not isinstance(option, click.Option) or name == "offset":
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
