"""The words of a command line, as the commands of `hermes` read them: commands, options, values of options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from hermes.cli.options import AliasedOption

CHAT = "chat"
NAMING = ("--continue", "--resume")
"""Options whose value can be several words without quotes."""


def iter_options(root: click.Group, words: Sequence[str]) -> Iterator[str]:
    """Yield the words that are options; the value of another option is not one, even if it starts with a dash."""
    command: click.Command = root
    context = click.Context(root, info_name="hermes")
    has_value_next = False
    for word in words:
        if has_value_next:
            has_value_next = False
        elif word == "--":
            return
        elif word.startswith("-"):
            yield word
            has_value_next = _needs_next_word(valid_commands(command, root, context), word)
        elif isinstance(command, click.Group) and (below := command.get_command(context, word)) is not None:
            command = below
            context = click.Context(command, parent=context, info_name=word)


def valid_commands(command: click.Command, root: click.Group, context: click.Context) -> list[click.Command]:
    """Return the commands whose options are valid here: `hermes` also takes those of `hermes chat`."""
    chat = root.get_command(context, CHAT) if command is root else None
    return [command] if chat is None else [command, chat]


def find_option(commands: Sequence[click.Command], word: str) -> click.Option | None:
    """Return the option with the name in a word such as `--limit` or `--limit=5`."""
    name = word.partition("=")[0]
    options = [each for command in commands for each in command.params if isinstance(each, click.Option)]
    return next((each for each in options if name in (*each.opts, *each.secondary_opts, *_aliases(each))), None)


def takes_value(option: click.Option) -> bool:
    """Whether an option has a value."""
    return not option.is_flag and not option.count


def is_naming(option: click.Option) -> bool:
    """Whether the value of an option can be several words, of which none starts with a dash."""
    return any(opt in NAMING for opt in option.opts)


def _needs_next_word(commands: Sequence[click.Command], word: str) -> bool:
    """Whether the word after an option is its value, whatever it looks like."""
    if word.startswith("--"):
        option = find_option(commands, word)
        return option is not None and takes_value(option) and not is_naming(option) and "=" not in word
    for place, letter in enumerate(word[1:], 1):
        option = find_option(commands, f"-{letter}")
        if option is None or takes_value(option):
            return option is not None and not is_naming(option) and place == len(word) - 1
    return False


def _aliases(option: click.Option) -> tuple[str, ...]:
    return option.aliases if isinstance(option, AliasedOption) else ()
