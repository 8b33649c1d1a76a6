"""The answer to the Tab key: quick, silent about every trouble, and without a trace in the store."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import click

from hermes.cli.completion.bash_line import BashLine, parse_line, quote_word
from hermes.cli.completion.cursor_context import CompletionContext, CompletionKind, find_context
from hermes.cli.display.terminal import printable, write_stdout

LIMIT_S = 2.0
"""A server that does not answer must not keep somebody from typing."""

Candidate = tuple[str, str]
"""A word, and what it means."""


def write_completions(root: click.Group, shell: str, args: Sequence[str]) -> int:
    """Write what completes the last word: a line that says what it is, then a line for each candidate.

    bash gives the line and what it takes for the current word; zsh and fish give the words.
    """
    try:
        with _time_limit():
            write_stdout("\n".join(_lines(root, shell, args)))
    except Exception:  # noqa: BLE001 - whatever it is, it must not be written into somebody's prompt
        return 1
    return 0


def _lines(root: click.Group, shell: str, args: Sequence[str]) -> list[str]:
    if shell == "bash":
        line = parse_line(args[0])
        asked = find_context(root, line.words[1:], line.current)
        words = [_quote_for_bash(word, line, asked, args[1]) for word, _ in find_candidates(asked)]
    else:
        *before, current = args
        asked = find_context(root, before, current)
        start = asked.before if shell == "fish" else ""
        words = [f"{start}{word}\t{meaning}".rstrip("\t") for word, meaning in find_candidates(asked)]
    return ["files" if asked.kind is CompletionKind.FILES else "words", *words]


def find_candidates(asked: CompletionContext) -> list[Candidate]:
    """Everything that the current word can become."""
    if asked.kind is CompletionKind.WORDS:
        return [(word, meaning) for word, meaning in asked.choices if word.startswith(asked.typed)]
    if asked.kind is CompletionKind.FILES:
        return []
    return _read_candidates(asked)


def _read_candidates(asked: CompletionContext) -> list[Candidate]:
    """What the store knows; it is only read, and not made if it is not there."""
    from hermes.cli.store import open_for_reading
    from hermes.config import load_config
    from hermes.state.sessions.suggestions import suggest_names

    with open_for_reading(load_config()) as store:
        if store is None:
            return []
        if asked.kind is CompletionKind.SOURCES:
            sources = store.count_by_source()
            found = [
                (source, f"{count} sessions") for source, count in sources.items() if source.startswith(asked.typed)
            ]
        else:
            text = f"{asked.said}{asked.typed}"
            found = [(name[len(asked.said) :], meaning) for name, meaning in suggest_names(store, text)]
    return [(word, printable(meaning)) for word, meaning in found if printable(word) == word and word[:1] != "-"]


def _quote_for_bash(word: str, line: BashLine, asked: CompletionContext, current: str) -> str:
    """A word as bash is to insert it: quoted as it was begun, from where bash thinks that the word begins.

    For bash that is behind an open quote. It also divides words at a colon and at an equals sign, and then calls the
    sign itself the current word.
    """
    if line.quote:
        return quote_word(f"{asked.before}{word}"[len(line.settled) :], line.quote)
    end = "" if current in ("=", ":") else current
    return f"{asked.before}{quote_word(word, '')}".removeprefix(line.raw[: len(line.raw) - len(end)])


@contextmanager
def _time_limit() -> Iterator[None]:
    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
