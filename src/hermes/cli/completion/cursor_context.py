"""Finding out what the word at the cursor can be, from the words before it and the commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

import click

from hermes.cli.command_line import find_option, is_naming, takes_value, valid_commands

SESSION_OPTIONS = ("--continue", "--session")
SOURCE_OPTIONS = ("--source", "--exclude-source")


class CompletionKind(Enum):
    """The kind of candidates for a word."""

    WORDS = auto()
    SESSIONS = auto()
    SOURCES = auto()
    FILES = auto()


@dataclass(frozen=True, slots=True)
class CompletionContext:
    """What can complete the current word."""

    kind: CompletionKind
    typed: str
    """The part of the value that the user has typed, without `before`."""
    choices: Sequence[tuple[str, str]] = ()
    """For words: each candidate with its description."""
    before: str = ""
    """The part of the current word before the value, such as `--source=`."""
    earlier_words: str = ""
    """The earlier words of the same session name, with a space at the end."""


def find_context(root: click.Group, words: Sequence[str], current: str) -> CompletionContext:
    """Follow the words through the commands and return what can complete the current word."""
    command: click.Command = root
    context = click.Context(root, info_name="hermes")
    option: click.Option | None = None
    name: list[str] = []
    place = 0
    only_arguments = False
    for word in words:
        if option is not None and not (is_naming(option) and word.startswith("-")):
            name.append(word)
            if not is_naming(option):
                option = None
            continue
        option = None
        if word == "--" and not only_arguments:
            only_arguments = True
        elif word.startswith("-") and not only_arguments:
            found = find_option(valid_commands(command, root, context), word)
            option, name = (found, []) if found is not None and takes_value(found) and "=" not in word else (None, [])
        elif isinstance(command, click.Group) and (below := command.get_command(context, word)) is not None:
            command, place = below, 0
            context = click.Context(command, parent=context, info_name=word)
        else:
            place += 1
    if option is not None and not (is_naming(option) and current.startswith("-")):
        return _value(option, current, earlier_words=f"{' '.join(name)} " if name else "")
    if current.startswith("-") and not only_arguments:
        return _options(valid_commands(command, root, context), current)
    if isinstance(command, click.Group):
        return CompletionContext(CompletionKind.WORDS, current, _group_commands(command, context))
    argument = _argument(command, place)
    return CompletionContext(CompletionKind.WORDS, current) if argument is None else _value(argument, current)


def _options(commands: Sequence[click.Command], current: str) -> CompletionContext:
    """Return the context for an option name, or for the value after its equals sign."""
    name, sign, typed = current.partition("=")
    if sign:
        option = find_option(commands, name)
        return (
            CompletionContext(CompletionKind.WORDS, current)
            if option is None
            else _value(option, typed, before=f"{name}=")
        )
    choices = [("--help", "Show this message and exit.")]
    for command in commands:
        for each in command.params:
            if isinstance(each, click.Option) and not each.hidden:
                names = [opt for opt in (*each.opts, *each.secondary_opts) if opt.startswith("--")]
                choices += [(opt, each.help or "") for opt in names]
    return CompletionContext(CompletionKind.WORDS, current, list(dict.fromkeys(choices)))


def _argument(command: click.Command, place: int) -> click.Argument | None:
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    for argument in arguments:
        if argument.nargs == -1 or place < argument.nargs:
            return argument
        place -= argument.nargs
    return None


def _value(parameter: click.Parameter, typed: str, *, before: str = "", earlier_words: str = "") -> CompletionContext:
    metavar = parameter.metavar or ""
    choices: list[tuple[str, str]] = []
    kind = CompletionKind.WORDS
    if isinstance(parameter.type, click.Choice):
        choices = [(str(each), "") for each in parameter.type.choices]
    elif "ID|TITLE" in metavar or any(opt in SESSION_OPTIONS for opt in parameter.opts):
        kind = CompletionKind.SESSIONS
    elif any(opt in SOURCE_OPTIONS for opt in parameter.opts):
        kind = CompletionKind.SOURCES
    elif isinstance(parameter.type, click.Path | click.File) or "FILE" in metavar or "OUTPUT" in metavar:
        kind = CompletionKind.FILES
    return CompletionContext(kind, typed, choices, before, earlier_words)


def _group_commands(group: click.Group, context: click.Context) -> list[tuple[str, str]]:
    """Return the commands of a group with their summaries, without importing them."""
    summaries = {name: each.summary for name, each in getattr(group, "lazy", {}).items()}
    return [(name, summaries.get(name, "")) for name in group.list_commands(context)]
