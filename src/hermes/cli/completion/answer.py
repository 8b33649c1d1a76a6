"""Candidates for the Tab key, found fast, without error output and without changing the store."""

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
"""A server that does not respond must not block the user's prompt for longer."""

Candidate = tuple[str, str]
"""A word and its description."""


def write_completions(root: click.Group, shell: str, args: Sequence[str]) -> int:
    """Print the kind of completion on the first line, then one candidate per line, and return an exit code.

    bash passes the line and the current word as it sees it; zsh and fish pass the words.
    """
    try:
        with _time_limit():
            write_stdout("\n".join(_lines(root, shell, args)))
    except Exception:  # noqa: BLE001 - no error may be written into the user's prompt
        return 1
    return 0


def _lines(root: click.Group, shell: str, args: Sequence[str]) -> list[str]:
    if shell == "bash":
        line = parse_line(args[0])
        context = find_context(root, line.words[1:], line.current)
        words = [_quote_for_bash(word, line, context, args[1]) for word, _ in find_candidates(context)]
    else:
        *before, current = args
        context = find_context(root, before, current)
        start = context.before if shell == "fish" else ""
        words = [f"{start}{word}\t{meaning}".rstrip("\t") for word, meaning in find_candidates(context)]
    return ["files" if context.kind is CompletionKind.FILES else "words", *words]


def find_candidates(context: CompletionContext) -> list[Candidate]:
    """Return all candidates for the current word."""
    if context.kind is CompletionKind.WORDS:
        return [(word, meaning) for word, meaning in context.choices if word.startswith(context.typed)]
    if context.kind is CompletionKind.FILES:
        return []
    return _read_candidates(context)


def _read_candidates(context: CompletionContext) -> list[Candidate]:
    """Return sessions or sources from the store, which is never created or changed."""
    from hermes.cli.store import open_for_reading
    from hermes.config import load_config
    from hermes.state.sessions.suggestions import suggest_names

    with open_for_reading(load_config()) as store:
        if store is None:
            return []
        if context.kind is CompletionKind.SOURCES:
            sources = store.count_by_source()
            found = [
                (source, f"{count} sessions") for source, count in sources.items() if source.startswith(context.typed)
            ]
        else:
            text = f"{context.earlier_words}{context.typed}"
            found = [(name[len(context.earlier_words) :], meaning) for name, meaning in suggest_names(store, text)]
    return [(word, printable(meaning)) for word, meaning in found if printable(word) == word and word[:1] != "-"]


def _quote_for_bash(word: str, line: BashLine, context: CompletionContext, current: str) -> str:
    """Return the text that bash inserts: quoted as the user began it, from where bash starts the word.

    bash starts the word after an open quote. It also splits words at a colon and an equals sign, and then passes the
    sign itself as the current word.
    """
    if line.quote:
        return quote_word(f"{context.before}{word}"[len(line.settled) :], line.quote)
    end = "" if current in ("=", ":") else current
    return f"{context.before}{quote_word(word, '')}".removeprefix(line.raw[: len(line.raw) - len(end)])


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
