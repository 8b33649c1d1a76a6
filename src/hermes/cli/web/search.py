"""`hermes web search`: searches the web with the configured backend."""

from __future__ import annotations

from dataclasses import asdict

import click

from hermes.cli.display.terminal import heading, printable, write_json, write_stderr, write_stdout
from hermes.cli.options import AS_JSON
from hermes.cli.web.open_client import open_client
from hermes.cli.web.options import BACKEND
from hermes.config import WebBackend
from hermes.phrases import plural
from hermes.web.client import MAX_RESULTS
from hermes.web.results import SearchResult

SCHEMA = "hermes.web_search/1"


@click.command(
    epilog="""\b
Examples:
  hermes web search sqlite write-ahead log
  hermes web search "python 3.13 release" --limit 3
  hermes web search sqlite --json | jq -r '.items[].url'""",
)
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--limit",
    "-n",
    metavar="N",
    type=click.IntRange(1, MAX_RESULTS),
    help=f"Show at most N results, up to {MAX_RESULTS}. Default: web.max_results.",
)
@BACKEND
@AS_JSON
def search(query: tuple[str, ...], limit: int | None, backend: WebBackend | None, as_json: bool) -> None:
    """Search the web."""
    found = open_client(as_json=as_json, backend=backend).search(" ".join(query), limit)
    if as_json:
        items = [asdict(each) for each in found.results]
        about = {"schema": SCHEMA, "backend": found.backend, "query": found.query}
        write_json({**about, "items": items, "total": len(items), "next": None})
        return
    if found.results:
        write_stdout("\n\n".join(_format(each) for each in found.results))
    write_stderr(f"{plural(len(found.results), 'result')} from {found.backend}")


def _format(found: SearchResult) -> str:
    lines = [heading(printable(found.title or "(no title)")), printable(found.url)]
    return "\n".join([*lines, printable(found.snippet)] if found.snippet else lines)
