"""Reporting errors to people and scripts, and the exit codes."""

from __future__ import annotations

import click

from hermes.cli.display.terminal import write_stderr, write_stderr_json
from hermes.errors import Conflict, HermesError, InvalidValue, NotFound

FAILED = 1
USAGE = 2
NOT_FOUND = 3
CONFLICT = 4
INTERRUPTED = 130


def report_error(error: HermesError | click.ClickException, *, as_json: bool) -> int:
    """Write an error to stderr and return its exit code."""
    code, message, hint = _describe(error)
    if as_json:
        write_stderr_json({"error": {"code": code, "message": message, "hint": hint}})
    else:
        write_stderr(f"Error: {message}")
        if hint:
            for line in f"Hint: {hint}".split("\n"):
                write_stderr(line)
    return exit_code_of(error)


def _describe(error: HermesError | click.ClickException) -> tuple[str, str, str]:
    """Return the code, the message and the hint of an error."""
    if isinstance(error, HermesError):
        return error.code, error.message, error.hint
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "hermes"
        return "usage", error.format_message(), f"see `{command} --help`"
    return "error", error.format_message(), ""


def exit_code_of(error: HermesError | click.ClickException) -> int:
    """Return the exit code for an error."""
    if isinstance(error, NotFound):
        return NOT_FOUND
    if isinstance(error, Conflict):
        return CONFLICT
    return USAGE if isinstance(error, InvalidValue | click.UsageError) else FAILED
