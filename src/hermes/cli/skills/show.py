"""`hermes skills show`: shows one skill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from hermes.agent.skills.files import list_files, read_skill_file
from hermes.agent.skills.skill import SKILL_FILE, Skill
from hermes.agent.skills.texts import body_of
from hermes.cli.display.terminal import heading, printable, printable_lines, write_json, write_stdout
from hermes.cli.options import AS_JSON
from hermes.cli.skills.states import SOURCE, describe, skills_of
from hermes.cli.store import read_config

SCHEMA = "hermes.skill/1"

_CONDITIONS = {
    "Needs toolsets": "requires_toolsets",
    "Needs tools": "requires_tools",
    "Replaces toolsets": "fallback_for_toolsets",
    "Replaces tools": "fallback_for_tools",
}


@click.command(
    epilog="""\b
Examples:
  hermes skills show weekly-report
  hermes skills show weekly-report --source telegram --json"""
)
@click.argument("name")
@SOURCE
@AS_JSON
def show(name: str, source: str, as_json: bool) -> None:
    """Show a skill: its conditions, variables, files and text.

    The exit code is 3 if there is no such skill. Values of variables are never shown.
    """
    skills = skills_of(read_config(as_json=as_json), source)
    found = skills.library.get(name)
    item = describe(skills, found)
    if isinstance(found, Skill):
        item |= {"files": list_files(found.directory), "text": body_of(read_skill_file(found.directory, SKILL_FILE))}
    if as_json:
        write_json({"schema": SCHEMA, "source": source, "item": item})
        return
    write_stdout("\n".join(format_skill(item)))


def format_skill(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines about a skill."""
    yield heading(printable(item["name"]))
    if item.get("description"):
        yield printable(item["description"])
    yield ""
    yield _fact("State", f"{item['state']}{': ' + item['why'] if item['why'] else ''}")
    yield _fact("Directory", item["directory"])
    for label, key in _CONDITIONS.items():
        if item.get(key):
            yield _fact(label, ", ".join(item[key]))
    for each in item.get("required_environment_variables", ()):
        state = "set" if each["is_set"] else "not set"
        about = f"; {each['help']}" if each["help"] else ""
        yield _fact("Variable", f"{each['name']} ({state}{', optional' if each['is_optional'] else ''}{about})")
    if "files" in item:
        yield _fact("Files", ", ".join(item["files"]))
        yield ""
        yield printable_lines(item["text"])


def _fact(label: str, text: str) -> str:
    return printable(f"{label + ':':18} {text}")
