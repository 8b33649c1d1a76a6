"""Reordering the arguments of `hermes` before click parses them.

Chat options may come before the word `chat` or without it, and a session name may have several words without quotes.
All words up to the next option belong to the name. Only `chat` as the last word can be the command, unless a session
has that whole name. So no word of a name ever runs a command.

A word with a blank that is no command is a message, as is everything after `--`: `hermes "what is this"`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

import click

CHAT = "chat"

_OF_HERMES = ("-h", "--help", "--version")
_NAMING = {"-c": "--continue", "--continue": "--continue", "-r": "--resume", "--resume": "--resume"}
_QUERY = re.compile(r"--query\b|-Q*q")
_TAKES_VALUE = re.compile(r"--query|--model|-Q*[qm]")


def order_arguments(args: Sequence[str], is_session: Callable[[str], bool]) -> list[str]:
    """Return the arguments with the command first. `is_session` returns whether a session with a name exists."""
    options: list[str] = []
    messages: list[str] = []
    is_chat = False
    rest = list(args)
    while rest:
        word = rest.pop(0)
        if word in _NAMING:
            words = list(takewhile(lambda each: not each.startswith("-"), rest))
            del rest[: len(words)]
            if not is_chat and words[-1:] == [CHAT] and _is_command(word, words, is_session):
                words.pop()
                is_chat = True
            options.append(_join_name(_NAMING[word], words))
        elif word == "--" or _is_message(word):
            messages.append(" ".join(rest) if word == "--" else word)
            rest = [] if word == "--" else rest
        elif word.startswith("-"):
            if not options and not is_chat and word in _OF_HERMES:
                return list(args)
            options.append(word)
            if _TAKES_VALUE.fullmatch(word) and rest:
                options.append(rest.pop(0))
        elif is_chat:
            options.append(word)
        elif word == CHAT:
            is_chat = True
        elif messages:
            raise click.UsageError(f"what does {word!r} mean after the message? Put quotes around the whole message")
        elif options:
            option = options[0].partition("=")[0]
            raise click.UsageError(f"{option} is an option of `hermes chat`, not of `hermes {word}`")
        else:
            return list(args)
    if len(messages) > 1 or (messages and any(_QUERY.match(each) for each in options)):
        raise click.UsageError("there are two messages; put quotes around one message, or pass one -q TEXT")
    return [CHAT, *options, *(f"--query={each}" for each in messages)]


def _is_message(word: str) -> bool:
    """Whether a word is a message and no command or option; the names of commands and options have no blanks."""
    return not word.startswith("-") and len(word.split()) > 1


def _is_command(option: str, words: Sequence[str], is_session: Callable[[str], bool]) -> bool:
    """Whether `chat` after a name is the command and not part of the name."""
    if len(words) == 1 and _NAMING[option] == "--resume":
        return False  # --resume needs a name
    return not is_session(" ".join(words))


def _join_name(option: str, words: Sequence[str]) -> str:
    """Join an option and its name to one argument; only `--continue` may have no name."""
    return option if not words and option == "--continue" else f"{option}={' '.join(words)}"
