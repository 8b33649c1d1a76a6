"""`hermes insights`: shows tokens, costs, tools and activity of the last days."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes.cli.display.terminal import printable, terminal_width, write_json, write_stderr, write_stdout
from hermes.cli.options import AS_JSON, SOURCE
from hermes.cli.store import database_file, no_sessions_message, open_for_reading, read_config
from hermes.errors import Conflict, HermesError, InvalidValue, NotFound
from hermes.home import write_private_atomic
from hermes.phrases import plural
from hermes.state.usage.aggregates import Sums
from hermes.state.usage.insights import Insights, build_insights, read_insights
from hermes.state.usage.period import MOST_DAYS, last_days

if TYPE_CHECKING:
    from hermes.state.usage.activity import Activity
    from hermes.state.usage.insights import Overview, PlatformUse, SkillUse
    from hermes.state.usage.totals import UsageTotals

SCHEMA = "hermes.insights/1"


@click.command(
    epilog="""\b
Examples:
  hermes insights --days 7
  hermes insights --source telegram --html report.html
  hermes insights --json | jq '.item.overview.cost_usd'""",
)
@click.option(
    "--days",
    metavar="N",
    type=click.IntRange(1, MOST_DAYS),
    default=30,
    show_default=True,
    help="Report on the last N days, including today.",
)
@SOURCE
@click.option("--html", "file", metavar="FILE", type=click.Path(path_type=Path), help="Write an HTML page to FILE.")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@AS_JSON
def insights(days: int, source: str | None, file: Path | None, force: bool, as_json: bool) -> None:
    """Show messages, tokens and costs of the last days.

    Days are in local time. Continuations after a compression and subagent sessions count with their conversation.
    """
    if force and file is None:
        raise click.UsageError("--force works only with --html")
    if file is not None:
        check_target(file, overwrite=force)
    config = read_config(as_json=as_json)
    now = time.time()
    period = last_days(days, now)
    with open_for_reading(config) as store:
        found = build_insights(period, source, Sums()) if store is None else read_insights(store, period, source=source)
        sources = store.count_by_source() if store is not None and found.is_empty else {}
    if file is not None:
        write_page(file, found, now)
    if as_json:
        write_json({"schema": SCHEMA, "item": insights_json(found, now)})
    elif file is not None:
        write_stdout(printable(f"{file}: {plural(period.days, 'day')}, {period.first} to {period.last}"))
    elif not found.is_empty:
        show_report(found, now)
    if found.is_empty and not as_json:
        write_stderr(no_sessions_message(database_file(config)) if not sources else empty_message(found, sources))


def show_report(found: Insights, now: float) -> None:
    """Write the report to the terminal."""
    from hermes.cli.insights.text import TextLayout, format_report

    layout = TextLayout(terminal_width(), sys.stdout.encoding)
    write_stdout("\n".join(format_report(found, layout, now)))


def check_target(file: Path, *, overwrite: bool) -> None:
    """Raise an error if the file cannot be written, before the page is built."""
    with _report_file_errors(file):
        if file.is_dir():
            raise InvalidValue(f"{file} is a directory", hint="give a file in it")
        if not file.absolute().parent.is_dir():
            raise NotFound(f"there is no directory {file.absolute().parent}", hint="create it, or choose another file")
        if file.exists() and not overwrite:
            raise Conflict(f"{file} already exists", hint="choose another file, or pass --force to replace it")


def write_page(file: Path, found: Insights, now: float) -> None:
    """Write the HTML page atomically."""
    from hermes.cli.insights.page import render_page

    page = render_page(found, now).encode()
    with _report_file_errors(file):
        write_private_atomic(file, page)


def empty_message(found: Insights, sources: dict[str, int]) -> str:
    """The message about a period without activity."""
    period = found.period
    when = f"{plural(period.days, 'day')} from {period.first} to {period.last}"
    if found.source is not None and found.source not in sources:
        known = ", ".join(f"{source} ({count})" for source, count in sources.items())
        return f"No sessions with source={found.source}. Sources with sessions: {known}."
    where = "" if found.source is None else f" with source={found.source}"
    return f"No activity{where} in the {when}. Use --days to look further back."


def insights_json(found: Insights, generated_at: float) -> dict[str, Any]:
    """Return the insights for JSON output."""
    period = found.period
    return {
        "days": period.days,
        "first_day": f"{period.first}",
        "last_day": f"{period.last}",
        "since": period.since,
        "until": period.until,
        "timezone": time.strftime("%Z", time.localtime(generated_at)),
        "source_filter": found.source,
        "generated_at": generated_at,
        "empty": found.is_empty,
        "overview": _overview(found.overview),
        "models": [
            {"model": each.model, "conversations": each.conversations, **_usage(each.usage)} for each in found.models
        ],
        "platforms": [_platform(each) for each in found.platforms],
        "tools": [{"tool": each.tool, "calls": each.calls, "share": each.share} for each in found.tools],
        "skills": _skills(found.skills),
        "activity": _activity(found.activity),
        "top_sessions": [each._asdict() for each in found.notable],
    }


def _overview(overview: Overview) -> dict[str, Any]:
    return {
        "conversations": overview.conversations,
        "sessions": overview.sessions,
        "continuations": overview.continuations,
        "delegates": overview.delegates,
        "duration_s": overview.duration_s,
        "messages": overview.messages,
        "user_messages": overview.user_messages,
        "assistant_messages": overview.assistant_messages,
        "tool_messages": overview.tool_messages,
        "tool_calls": overview.tool_calls,
        **_usage(overview.usage),
    }


def _platform(platform: PlatformUse) -> dict[str, Any]:
    return {
        "source": platform.source,
        "conversations": platform.conversations,
        "sessions": platform.sessions,
        "messages": platform.messages,
        "tool_calls": platform.tool_calls,
        **_usage(platform.usage),
    }


def _skills(skills: Sequence[SkillUse]) -> dict[str, Any]:
    return {
        "summary": {
            "skills": len(skills),
            "loads": sum(each.loads for each in skills),
            "edits": sum(each.edits for each in skills),
        },
        "top_skills": [
            {"skill": each.skill, "loads": each.loads, "edits": each.edits, "last_used_at": each.last_used_at}
            for each in skills
        ],
    }


def _activity(activity: Activity) -> dict[str, Any]:
    return {
        "days": [
            {"date": f"{day.date}", "messages": day.messages, "tokens": day.tokens, "cost_usd": _usd(day.cost_usd)}
            for day in activity.days
        ],
        "weekdays": activity.weekdays,
        "hours": activity.hours,
        "busiest_weekday": activity.busiest_weekday,
        "busiest_hour": activity.busiest_hour,
        "active_days": activity.active_days,
        "longest_streak": activity.longest_streak,
    }


def _usage(usage: UsageTotals) -> dict[str, Any]:
    costs = {name: _usd(value) for name, value in usage._asdict().items() if name.endswith("_usd")}
    return {**usage._asdict(), **costs, "total_tokens": usage.total_tokens, "cost_status": usage.cost_status}


def _usd(amount: float) -> float:
    """Round to a billionth of a dollar, the stored precision; further digits are rounding errors of sums."""
    return round(amount, 9)


@contextmanager
def _report_file_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HermesError(f"{file} cannot be written: {error.strerror}", hint="choose another file") from error
