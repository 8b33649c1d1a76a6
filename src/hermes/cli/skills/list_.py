"""`hermes skills list`: lists the skills, and why some are hidden."""

from __future__ import annotations

import click

from hermes.cli.display.table import Column, format_table
from hermes.cli.display.terminal import terminal_width, write_json, write_stderr, write_stdout
from hermes.cli.options import AS_JSON
from hermes.cli.skills.states import SOURCE, describe, skills_of
from hermes.cli.store import read_config

SCHEMA = "hermes.skills/1"


@click.command(
    "list",
    epilog="""\b
Examples:
  hermes skills list
  hermes skills list --source telegram --json""",
)
@SOURCE
@AS_JSON
def list_(source: str, as_json: bool) -> None:
    """List the skills, and why some are hidden.

    A skill is visible if its conditions hold for the tools of a conversation. An invalid one has a mistake, or belongs
    to another user.
    """
    skills = skills_of(read_config(as_json=as_json), source)
    items = [describe(skills, each) for each in skills.library.all()]
    if as_json:
        write_json({"schema": SCHEMA, "source": source, "items": items})
        return
    if not items:
        write_stderr(f"No skills in {skills.library.directory}.")
        return
    columns = [
        Column("Name", [each["name"] for each in items], is_elastic=True),
        Column("State", [each["state"] for each in items]),
        Column("Description, or why it is not visible", [each["why"] or each["description"] for each in items]),
    ]
    write_stdout("\n".join(line.rstrip() for line in format_table(columns, terminal_width())))
