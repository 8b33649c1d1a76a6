"""`hermes chat`, which is also `hermes` alone: a conversation, new or gone on with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from hermes.cli.store import database_file, nothing_yet, open_for_change, read_config
from hermes.errors import StoreClosed, StoreReadOnly, UnknownSession

if TYPE_CHECKING:
    from hermes.cli.chat.signals import Signals
    from hermes.cli.chat.sitting import Reader, Sitting
    from hermes.config import Config
    from hermes.state.provider import SessionDBProvider


@dataclass(frozen=True, slots=True)
class Words:
    """What a command line has to say, and how stdin adds to it."""

    query: str | None
    has_lines: bool
    must_wait: bool


LATEST = "\0"
"""What no name can be: `-c` without one."""


@click.command(
    epilog="""\b
A name of several words needs no quotes: hermes -c my project
Text on stdin that is no terminal is one message, behind that of -q.

\b
Examples:
  hermes                       a new conversation
  hermes -c                    go on with the last one
  hermes -r "refactoring auth"
  hermes -Q -q "What did we say about the pool?" > answer.txt
  tail -n 200 app.log | hermes -q "What went wrong?\"""",
)
@click.option(
    "--continue",
    "-c",
    "continued",
    metavar="[NAME]",
    is_flag=False,
    flag_value=LATEST,
    help="Go on with the last session of the terminal, or with the one of this id or title.",
)
@click.option("--resume", "-r", "resumed", metavar="ID|TITLE", help="Go on with this session.")
@click.option("--query", "-q", metavar="TEXT", help="Say this, show the answer, and leave.")
@click.option("--lines", "has_lines", is_flag=True, help="Take each line of stdin as a turn of its own, or a command.")
@click.option("--stdin", "must_wait", is_flag=True, help="With -q: wait for stdin, however long it stays silent.")
@click.option("--quiet", "-Q", "is_quiet", is_flag=True, help="Write nothing but answers to stdout.")
@click.option("--model", "-m", "model_name", metavar="NAME", help="Have this model answer.")
def chat(
    continued: str | None,
    resumed: str | None,
    query: str | None,
    has_lines: bool,
    must_wait: bool,
    is_quiet: bool,
    model_name: str | None,
) -> None:
    """Talk to the agent, in a new session or in one that was left."""
    name = _named(continued, resumed)
    if query is not None and not query.strip():
        raise click.UsageError("-q needs something to say")
    if model_name is not None and not model_name.strip():
        raise click.UsageError("-m needs the name of a model")
    if is_quiet and query is None and sys.stdin.isatty():
        raise click.UsageError("-Q needs something to answer: -q TEXT, or text on stdin")
    if query is not None and has_lines:
        raise click.UsageError("--lines takes its turns from stdin, so it goes without -q")
    if query is None and must_wait:
        raise click.UsageError("--stdin is for -q, which does not wait for a silent stdin otherwise")
    words = Words(query, has_lines=has_lines, must_wait=must_wait)
    config = read_config(as_json=False)
    with _store(config, is_needed=name is not None) as store:
        session_id = None if name is None else _found(store, name)
        exit_code = _talk(config, store, session_id, words, is_quiet=is_quiet, model_name=model_name)
    if exit_code:
        raise click.exceptions.Exit(exit_code)


def _named(continued: str | None, resumed: str | None) -> str | None:
    """The session to go on with, if one was named."""
    if continued is not None and resumed is not None:
        raise click.UsageError("-c and -r both name a session; say one of them")
    for option, name in (("-c", continued), ("-r", resumed)):
        if name is not None and name != LATEST and not name.strip():
            raise click.UsageError(f"{option} needs the id or the title of a session")
    return continued if resumed is None else resumed


@contextmanager
def _store(config: Config, *, is_needed: bool) -> Iterator[SessionDBProvider]:
    """The store, made now if there is none and nothing in it is asked for."""
    if not is_needed:
        from hermes.state.provider import open_session_db

        with open_session_db(config) as store:
            yield store
        return
    with open_for_change(config) as found:
        if found is None:
            raise UnknownSession(nothing_yet(database_file(config)), hint="")
        yield found


def _found(store: SessionDBProvider, name: str) -> str:
    from hermes.cli.chat.resume import latest_session
    from hermes.state.naming import Purpose, find_session

    return latest_session(store) if name == LATEST else find_session(store, name, Purpose.RESUME)


def _talk(
    config: Config,
    store: SessionDBProvider,
    session_id: str | None,
    words: Words,
    *,
    is_quiet: bool,
    model_name: str | None,
) -> int:
    from hermes.agent.agent import Agent
    from hermes.agent.tools.toolbox import TOOLBOX
    from hermes.cli.chat.approval import Asker
    from hermes.cli.chat.models import Models
    from hermes.cli.chat.screen import Screen
    from hermes.cli.chat.signals import Signals
    from hermes.cli.chat.sitting import Sitting
    from hermes.config import load_variables
    from hermes.home import get_hermes_home
    from hermes.log import make_ready
    from hermes.state.owner import EVERYBODY

    make_ready()
    is_interactive = words.query is None and sys.stdin.isatty() and sys.stdout.isatty()
    signals, screen = Signals(), Screen(is_quiet=is_quiet, is_conversation=is_interactive)
    models = Models(config, load_variables(), model_name)
    has_person = sys.stdin.isatty() and sys.stderr.isatty() and not is_quiet
    asker = Asker(screen, signals) if has_person else None
    agent = Agent(
        store.for_owner(EVERYBODY),
        models.open(),
        tools=TOOLBOX,
        config=config,
        home=get_hermes_home(),
        database=database_file(config),
        auxiliary=models.open_auxiliary(),
        operator=None if asker is None else asker.ask_operator,
    )
    sitting = Sitting(agent, models, screen, signals, asker)
    with signals.heard():
        try:
            try:
                if is_interactive and session_id is None:
                    screen.say_dim(f"Hermes, with {models.choice().describe()}. /help shows the commands.")
                if session_id is not None:
                    sitting.resume(session_id, has_recap=is_interactive)
                _keep_order(config, store, sitting)
                if is_interactive:
                    sitting.run(_prompt(sitting, signals))
                else:
                    _say_all(sitting, signals, words)
            finally:
                sitting.end()
            if not is_quiet:
                sitting.say_farewell()
            elif sitting.conversation.is_stored:
                screen.say(f"session_id: {sitting.conversation.session_id}")
        finally:
            sitting.release_processes()
    if signals.leaving is not None:
        return 128 + signals.leaving
    return 0 if is_interactive else sitting.exit_code


def _say_all(sitting: Sitting, signals: Signals, words: Words) -> None:
    """Say what a program has to say: a question, the text on stdin, both, or line after line."""
    from hermes.cli.chat.lines import Lines
    from hermes.cli.chat.piped import PATIENCE_S

    if words.query is not None and sys.stdin.isatty():
        sitting.say(words.query)
    elif words.has_lines or sys.stdin.isatty():
        sitting.work_off(Lines(signals))
    else:
        is_patient = words.query is None or words.must_wait
        sitting.say_piped(words.query, patience_s=None if is_patient else PATIENCE_S)


def _prompt(sitting: Sitting, signals: Signals) -> Reader:
    # Loading what draws a prompt takes longer than all the rest, and only people need it.
    from hermes.cli.chat.prompt import Prompt
    from hermes.cli.chat.suggestions import suggestions_for

    return Prompt(sitting.agent.home, suggestions_for(sitting), signals)


def _keep_order(config: Config, store: SessionDBProvider, sitting: Sitting) -> None:
    """Have old sessions pruned, if that is wished for, beside the conversation."""
    if not config.sessions.auto_prune:
        return
    from hermes.agent.background import Background
    from hermes.cli.store import sessions_dir

    settings = config.sessions

    def prune() -> None:
        with suppress(StoreClosed, StoreReadOnly):  # the chat was over sooner, or nothing can be changed here
            store.maybe_auto_prune_and_vacuum(
                settings.retention_days,
                settings.min_interval_hours,
                settings.vacuum_after_prune,
                sessions_dir(),
                retention_by_source=settings.retention_by_source,
                secure=settings.secure_delete,
            )

    Background().submit(prune)
