"""The command `hermes chat`, which `hermes` alone also runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from hermes.cli.store import database_file, no_sessions_message, open_for_change, read_config
from hermes.errors import StoreClosed, StoreReadOnly, UnknownSession

if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.agent.models.selection import Models
    from hermes.cli.chat.chat_loop import Chat, Reader
    from hermes.cli.chat.terminal.approval import ApprovalPrompt
    from hermes.cli.chat.terminal.signals import Signals
    from hermes.config import Config
    from hermes.state.provider import SessionDBProvider


@dataclass(frozen=True, slots=True)
class ChatInput:
    """The message of the command line, and how stdin is read."""

    query: str | None
    has_lines: bool
    must_wait: bool
    as_json: bool = False
    """Whether the answer is written as JSON, at the end."""


LATEST = "\0"
"""The value of `-c` without a name; no session can have this name."""


@click.command(
    "chat",
    epilog="""\b
A name of several words needs no quotes: hermes -c my project
Piped text is appended to the message, or sent as the message.

\b
Examples:
  hermes                       start a new session
  hermes -c                    continue the latest session
  hermes -r "refactoring auth"
  hermes -Q -q "What did we say about the pool?" > answer.txt
  hermes "What is in this directory?"
  tail -n 200 app.log | hermes -q "What went wrong?"
  hermes -q "Summarise @file:notes.md" --json | jq -r .item.answer""",
)
@click.option(
    "--continue",
    "-c",
    "continued",
    metavar="[NAME]",
    is_flag=False,
    flag_value=LATEST,
    help="Continue the latest terminal session, or the one with this id or title.",
)
@click.option("--resume", "-r", "resumed", metavar="ID|TITLE", help="Resume the session with this id or title.")
@click.option("--query", "-q", metavar="TEXT", help="Send one message, print the answer and exit.")
@click.option(
    "--lines", "has_lines", is_flag=True, help="Send each line of stdin as a message, or run it as a command."
)
@click.option("--stdin", "must_wait", is_flag=True, help="With -q, wait for stdin without a time limit.")
@click.option("--quiet", "-Q", "is_quiet", is_flag=True, help="Print only the answers, without status messages.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer, the session and its costs as one JSON object.")
@click.option("--model", "-m", "model_name", metavar="NAME", help="Use this model.")
def chat_command(
    continued: str | None,
    resumed: str | None,
    query: str | None,
    has_lines: bool,
    must_wait: bool,
    is_quiet: bool,
    as_json: bool,
    model_name: str | None,
) -> None:
    """Chat with the agent, in a new session or an earlier one."""
    name = _session_name(continued, resumed)
    if query is not None and not query.strip():
        raise click.UsageError("-q needs a message")
    if model_name is not None and not model_name.strip():
        raise click.UsageError("-m needs a model name")
    if is_quiet and query is None and sys.stdin.isatty():
        raise click.UsageError("-Q needs a message: pass -q TEXT, or text on stdin")
    if query is not None and has_lines:
        raise click.UsageError("--lines and -q cannot be combined")
    if query is None and must_wait:
        raise click.UsageError("--stdin requires -q")
    if as_json and (has_lines or (query is None and sys.stdin.isatty())):
        raise click.UsageError("--json needs one message: pass -q TEXT, or text on stdin without --lines")
    chat_input = ChatInput(query, has_lines=has_lines, must_wait=must_wait, as_json=as_json)
    config = read_config(as_json=as_json)
    with _open_store(config, is_needed=name is not None) as store:
        session_id = None if name is None else _find_session(store, name)
        exit_code = _run_chat(config, store, session_id, chat_input, is_quiet=is_quiet, model_name=model_name)
    if exit_code:
        raise click.exceptions.Exit(exit_code)


def _session_name(continued: str | None, resumed: str | None) -> str | None:
    """Return the name of the session to resume, if one was given."""
    if continued is not None and resumed is not None:
        raise click.UsageError("-c and -r cannot be combined")
    for option, name in (("-c", continued), ("-r", resumed)):
        if name is not None and name != LATEST and not name.strip():
            raise click.UsageError(f"{option} needs a session id or title")
    return continued if resumed is None else resumed


@contextmanager
def _open_store(config: Config, *, is_needed: bool) -> Iterator[SessionDBProvider]:
    """Open the store. A missing database is created, unless the user named a session in it."""
    if not is_needed:
        from hermes.state.provider import open_session_db

        with open_session_db(config) as store:
            yield store
        return
    with open_for_change(config) as found:
        if found is None:
            raise UnknownSession(no_sessions_message(database_file(config)), hint="")
        yield found


def _find_session(store: SessionDBProvider, name: str) -> str:
    from hermes.cli.chat.resume import latest_session
    from hermes.state.sessions.lookup import Purpose, find_session

    return latest_session(store) if name == LATEST else find_session(store, name, Purpose.RESUME)


def _run_chat(
    config: Config,
    store: SessionDBProvider,
    session_id: str | None,
    chat_input: ChatInput,
    *,
    is_quiet: bool,
    model_name: str | None,
) -> int:
    from hermes.agent.models.selection import Models
    from hermes.agent.safety.environment import hide_own_secrets
    from hermes.cli.chat.chat_loop import Chat
    from hermes.cli.chat.instructions import show_instructions
    from hermes.cli.chat.json_answer import JsonScreen, write_json_answer
    from hermes.cli.chat.terminal.approval import ApprovalPrompt
    from hermes.cli.chat.terminal.screen import Screen
    from hermes.cli.chat.terminal.signals import Signals
    from hermes.config import load_variables
    from hermes.log import make_ready

    make_ready()
    is_interactive = chat_input.query is None and not chat_input.as_json and sys.stdin.isatty() and sys.stdout.isatty()
    signals = Signals()
    screen = JsonScreen() if chat_input.as_json else Screen(is_quiet=is_quiet, is_conversation=is_interactive)
    models = Models(config, load_variables(), model_name)
    hide_own_secrets()
    has_person = sys.stdin.isatty() and sys.stderr.isatty() and not is_quiet and not chat_input.as_json
    asker = ApprovalPrompt(screen, signals) if has_person else None
    chat = Chat(_make_agent(config, store, models, asker), models, screen, signals, asker)
    with signals.handle():
        try:
            try:
                if is_interactive and session_id is None:
                    screen.print_dim(f"Hermes, with {models.choice().describe()}. See /help.")
                if session_id is not None:
                    chat.resume(session_id, has_recap=is_interactive)
                else:
                    show_instructions(chat.conversation.session, screen)
                _prune_in_background(config, store, chat)
                if is_interactive:
                    chat.run_prompt(_make_prompt(chat, signals))
                else:
                    _send_input(chat, signals, chat_input)
            finally:
                chat.end_session()
            if chat_input.as_json:
                write_json_answer(chat)
            elif not is_quiet:
                chat.show_exit_summary()
            elif chat.conversation.is_stored:
                screen.print_text(f"session_id: {chat.conversation.session_id}")
        finally:
            chat.release_processes()
    if signals.leaving is not None:
        return 128 + signals.leaving
    return 0 if is_interactive else chat.exit_code


def _make_agent(config: Config, store: SessionDBProvider, models: Models, asker: ApprovalPrompt | None) -> Agent:
    """Return an agent with all tools that sees every session and asks the user for permissions, if there is one."""
    from hermes.agent.agent import Agent
    from hermes.agent.tools.toolbox import TOOLBOX
    from hermes.home import get_hermes_home
    from hermes.state.owner import EVERYBODY

    return Agent(
        store.for_owner(EVERYBODY),
        models.open(),
        tools=TOOLBOX,
        config=config,
        home=get_hermes_home(),
        database=database_file(config),
        auxiliary=models.open_auxiliary(),
        operator=None if asker is None else asker.ask_operator,
        ask_secret=None if asker is None else asker.ask_secret,
    )


def _send_input(chat: Chat, signals: Signals, chat_input: ChatInput) -> None:
    """Send the message of the command line, the text on stdin, both, or each line of stdin."""
    from hermes.cli.chat.keyboard.piped_text import PATIENCE_S
    from hermes.cli.chat.keyboard.stdin_lines import StdinLines

    if chat_input.query is not None and sys.stdin.isatty():
        chat.send(chat_input.query)
    elif chat_input.has_lines or sys.stdin.isatty():
        chat.run_lines(StdinLines(signals))
    else:
        is_patient = chat_input.query is None or chat_input.must_wait
        chat.send_piped(chat_input.query, patience_s=None if is_patient else PATIENCE_S)


def _make_prompt(chat: Chat, signals: Signals) -> Reader:
    from hermes.cli.chat.terminal.style import can_move

    if not can_move(sys.stdout):
        from hermes.cli.chat.prompt.plain import PlainPrompt

        return PlainPrompt(signals)
    # Importing the prompt takes longer than everything else, and pipes do not need it.
    from hermes.cli.chat.prompt.prompt import Prompt
    from hermes.cli.chat.prompt.status_line import StatusLine
    from hermes.cli.chat.prompt.suggestions import make_suggestions

    display = chat.agent.config.display
    return Prompt(
        chat.agent.home,
        make_suggestions(chat),
        signals,
        status=StatusLine(chat),
        editing_mode=display.editing_mode,
    )


def _prune_in_background(config: Config, store: SessionDBProvider, chat: Chat) -> None:
    """Prune old sessions on a background thread, if configured."""
    if not config.sessions.auto_prune:
        return
    from hermes.agent.background import BackgroundTasks
    from hermes.cli.store import sessions_dir

    settings = config.sessions

    def prune() -> None:
        with suppress(StoreClosed, StoreReadOnly):  # the chat ended first, or the store is read-only
            store.maybe_auto_prune_and_vacuum(
                settings.retention_days,
                settings.min_interval_hours,
                settings.vacuum_after_prune,
                sessions_dir(),
                retention_by_source=settings.retention_by_source,
                secure=settings.secure_delete,
            )

    BackgroundTasks().submit(prune)
