"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
SOURCE = click.option("--source", "-s", metavar="NAME", help="Only sessions from this source, such as cli or telegram.")
SECURE = click.option(
    "--secure/--no-secure",
    default=None,
    help="Also rewrite the database files so that no trace remains. Default: sessions.secure_delete.",
)


class AliasedOption(click.Option):
    """An option that also accepts earlier spellings, which `--help` does not show."""

    def __init__(self, *args: Any, aliases: Sequence[str] = (), **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.aliases = tuple(aliases)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Register the option under its names and its aliases."""
        names, self.opts = self.opts, [*self.opts, *self.aliases]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = names


def limit_option(things: str, default: int = 20) -> Callable[[Any], Any]:
    """Return the option `--limit` of a command that lists `things`."""
    return click.option(
        "--limit",
        "-n",
        metavar="N",
        type=click.IntRange(min=1),
        default=default,
        show_default=True,
        help=f"Show at most N {things}.",
    )
