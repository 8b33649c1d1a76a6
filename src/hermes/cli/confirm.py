"""Confirmation before a command deletes or replaces something."""

from __future__ import annotations

import sys

import click

YES = click.option("--yes", "-y", "is_sure", is_flag=True, help="Do not ask for confirmation.")


def confirm(question: str, *, is_sure: bool) -> bool:
    """Ask the user to confirm. Raise a usage error if stdin is not a terminal and `--yes` is missing."""
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise click.UsageError("stdin is not a terminal: pass --yes to confirm")
    return click.confirm(question, default=False, err=True)
