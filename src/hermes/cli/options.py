"""Options that several commands have."""

from __future__ import annotations

import click

AS_JSON = click.option("--json", "as_json", is_flag=True, help="Write one JSON object instead of text.")
