"""The command group `hermes web`."""

from __future__ import annotations

import click

from hermes.cli.lazy import Lazy, LazyGroup, show_help_without_command

COMMANDS = {
    "search": Lazy("hermes.cli.web.search:search", "Search the web."),
    "extract": Lazy("hermes.cli.web.extract:extract", "Read a web page as text."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, invoke_without_command=True)
@click.pass_context
def web(context: click.Context) -> None:
    """Search the web and read pages."""
    show_help_without_command(context)
