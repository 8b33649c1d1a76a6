"""The `hermes` command line: arguments in, a command found and run, an exit code out."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from hermes import __version__
from hermes.cli.chat.arguments import order_arguments
from hermes.cli.display.terminal import discard_output, write_stderr
from hermes.cli.errors import INTERRUPTED, report_error
from hermes.cli.lazy import Lazy, LazyGroup
from hermes.errors import HermesError
from hermes.log import before_first

COMMANDS = {
    "chat": Lazy(
        "hermes.cli.chat.command:chat_command", "Talk to the agent, in a new session or in one that was left."
    ),
    "completion": Lazy(
        "hermes.cli.completion.command:completion",
        "Write a script for bash, zsh or fish that completes commands, options, sessions and sources.",
    ),
    "doctor": Lazy("hermes.cli.doctor:doctor", "Look for what is wrong, and say what to do about it."),
    "insights": Lazy("hermes.cli.insights.command:insights", "Show what was said, used and spent in the last days."),
    "sessiondb": Lazy(
        "hermes.cli.sessiondb.group:sessiondb", "Look after the database behind the sessions, and change to another."
    ),
    "sessions": Lazy("hermes.cli.sessions.group:sessions", "Look at the sessions there are, and keep them in order."),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Without a command it is `hermes chat`, whose options may stand before it too:
-c goes on with the last session, -r ID|TITLE with any, -q TEXT says one thing.

\b
Sessions are kept in state.db in the Hermes home: the directory in the
environment variable HERMES_HOME, or ~/.hermes.

\b
Exit codes: 0 done, 1 failed, 2 not understood, 3 not found, 4 conflict,
130 interrupted.""",
)
@click.version_option(__version__, prog_name="hermes", message="%(prog)s %(version)s")
def hermes() -> None:
    """Durable, searchable, resumable sessions of the Hermes agent."""


def run(args: Sequence[str]) -> int:
    """Run a command line and answer its exit code."""
    # Asked of the raw arguments, because those that cannot be parsed are to be reported as JSON too.
    as_json = "--json" in args
    before_first(_log_to_file)
    try:
        if "_HERMES_COMPLETE" in os.environ:
            return _complete(os.environ["_HERMES_COMPLETE"], args)
        with hermes.make_context("hermes", order_arguments(args, _is_session)) as context:
            hermes.invoke(context)
    except click.exceptions.Exit as finished:
        return finished.exit_code
    except (KeyboardInterrupt, click.Abort):
        discard_output()
        if sys.stderr.isatty():
            write_stderr("")  # the terminal has written ^C
        return INTERRUPTED
    except BrokenPipeError:
        discard_output()  # `| head` has seen enough
    except (HermesError, click.ClickException) as error:
        return report_error(error, as_json=as_json)
    return 0


def _log_to_file() -> None:
    from hermes.cli.log_file import log_to_file

    log_to_file()


def _is_session(name: str) -> bool:
    from hermes.cli.chat.resume import is_session

    return is_session(name)


def _complete(shell: str, args: Sequence[str]) -> int:
    from hermes.cli.completion.answer import write_completions

    return write_completions(hermes, shell, args)
