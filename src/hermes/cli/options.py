"""Options that several commands have."""

from __future__ import annotations

import click

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Write one JSON object instead of text.")
SECURE = click.option(
    "--secure/--no-secure",
    default=None,
    help="Also erase it from the database's files, which are written anew; default: sessions.secure_delete.",
)
