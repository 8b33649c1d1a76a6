"""Commands that are imported only when they run, so that each command starts fast."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click


class Lazy(NamedTuple):
    """The location of a command (`module:name`) and its line in the help of its group."""

    target: str
    summary: str

    def load(self) -> click.Command:
        """Import the command, or a group of commands. Turn the garbage collector on before a command runs."""
        module, _, name = self.target.partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        if not isinstance(command, click.Group):
            gc.freeze()  # modules stay until the end, so the collector need not look at them
            gc.enable()
        return command


class LazyGroup(click.Group):
    """A group that imports a command only to run it."""

    def __init__(self, *args: Any, lazy: Mapping[str, Lazy], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands without importing any."""
        return [*self.commands, *self.lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command by its name."""
        found = self.lazy.get(cmd_name)
        return found.load() if found else super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name; raise a usage error that suggests a similar name."""
        name = args[0]
        if name in self.lazy or name in self.commands or name.startswith("-"):
            return super().resolve_command(ctx, args)
        import shlex  # late, as the next one: only this error needs them
        from difflib import get_close_matches

        near = get_close_matches(name, self.list_commands(ctx), n=1)
        suggestion = "" if ctx.parent else f" To send it as a message: hermes -q {shlex.quote(name)}"
        if near:
            suggestion = f" Did you mean '{near[0]}'?"
        raise click.UsageError(f"No such command '{name}'.{suggestion}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their summaries without importing any."""
        summaries = {name: command.get_short_help_str(limit=100) for name, command in self.commands.items()}
        summaries |= {name: each.summary for name, each in self.lazy.items()}
        with formatter.section("Commands"):
            formatter.write_dl([(name, summaries[name]) for name in self.list_commands(ctx)])


def show_help_without_command(context: click.Context) -> None:
    """Print the help of a group that is called without a command."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
