"""Options of the commands of `hermes web`."""

from __future__ import annotations

from typing import get_args

import click

from hermes.config import WebBackend

NAMES = get_args(WebBackend)

BACKEND = click.option(
    "--backend",
    metavar="NAME",
    type=click.Choice(NAMES),
    help=f"Use this backend instead of web.backend: {', '.join(NAMES)}.",
)
