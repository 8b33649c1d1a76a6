"""docs/guide/terminal.md covers all commands, options and fields."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hermes.cli.app import hermes
from hermes.cli.sessions.list_ import FIELDS, FLAGS

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "terminal.md").read_text()


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below this one with its full name."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from commands(found, f"{name} {each}")


def spellings(parameter: click.Parameter) -> list[str]:
    """Return the spellings of a parameter on the command line."""
    if isinstance(parameter, click.Argument):
        return [parameter.make_metavar(click.Context(click.Command("any"))).strip("[].")]
    return [*parameter.opts, *parameter.secondary_opts]


COMMANDS = dict(commands(hermes, "hermes"))
OPTIONS = [
    (name, option)
    for name, command in COMMANDS.items()
    for parameter in command.params
    for option in spellings(parameter)
]


def section(command: str) -> str:
    """Return the section of the page about a command."""
    _, found, rest = PAGE.partition(f"## `{command}`\n")
    assert found, f"docs/guide/terminal.md has no section about {command}"
    return rest.partition("\n## ")[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_section(command: str) -> None:
    assert section(command)


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_every_option_is_in_the_section_of_its_command(command: str, option: str) -> None:
    assert f"`{option}" in section(command)


@pytest.mark.parametrize("field", [*FIELDS, *FLAGS, "root_id", "cursor"])
def test_every_field_of_a_listed_session_is_named(field: str) -> None:
    assert f"`{field}`" in section("hermes sessions list")
