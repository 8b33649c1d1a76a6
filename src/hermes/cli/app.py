"""The `hermes` command: parses the arguments, runs a command and returns its exit code."""

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
    "chat": Lazy("hermes.cli.chat.command:chat_command", "Chat with the agent, in a new session or an earlier one."),
    "completion": Lazy("hermes.cli.completion.command:completion", "Print a completion script for bash, zsh or fish."),
    "config": Lazy("hermes.cli.config.group:config", "Show and change settings."),
    "doctor": Lazy("hermes.cli.doctor:doctor", "Check the installation and the database for problems."),
    "gateway": Lazy("hermes.cli.gateway.group:gateway", "Serve chats with the agent, and look after the gateway."),
    "insights": Lazy("hermes.cli.insights.command:insights", "Show messages, tokens and costs of the last days."),
    "sessiondb": Lazy("hermes.cli.sessiondb.group:sessiondb", "Manage the database that stores the sessions."),
    "sessions": Lazy("hermes.cli.sessions.group:sessions", "List, search and manage sessions."),
    "setup": Lazy("hermes.cli.setup.command:setup", "Choose a model, test it and store its key."),
    "skills": Lazy("hermes.cli.skills.group:skills", "List and show the skills of the agent."),
    "web": Lazy("hermes.cli.web.group:web", "Search the web and read pages."),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Without a command, `hermes` runs `hermes chat` and takes its options:
-c continues the latest session, -r ID|TITLE resumes any session, and
-q TEXT sends one message.

\b
Sessions are stored in state.db in the Hermes home: the directory in the
environment variable HERMES_HOME, or ~/.hermes.

\b
Exit codes: 0 success, 1 failure, 2 usage error, 3 not found, 4 conflict,
130 interrupted.""",
)
@click.version_option(__version__, prog_name="hermes", message="%(prog)s %(version)s")
def hermes() -> None:
    """Chat with the Hermes agent in durable, searchable, resumable sessions."""


def run(args: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
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
        discard_output()  # the reader has left, as in `| head`
    except (HermesError, click.ClickException) as error:
        return report_error(error, as_json=_has_json_option(args))
    return 0


def _has_json_option(args: Sequence[str]) -> bool:
    """Whether the arguments ask for JSON; they may be invalid, because that error is reported as JSON too."""
    if "--json" not in args:
        return False
    from hermes.cli.command_line import iter_options

    return "--json" in iter_options(hermes, args)


def _log_to_file() -> None:
    from hermes.cli.log_file import log_to_file

    log_to_file()


def _is_session(name: str) -> bool:
    from hermes.cli.chat.resume import is_session

    return is_session(name)


def _complete(shell: str, args: Sequence[str]) -> int:
    from hermes.cli.completion.answer import write_completions

    return write_completions(hermes, shell, args)
