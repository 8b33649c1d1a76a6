"""Asking before something is taken away."""

from __future__ import annotations

import sys

import click

YES = click.option("--yes", "-y", "is_sure", is_flag=True, help="Do not ask.")


def confirm(question: str, *, is_sure: bool) -> bool:
    """Whether the person wants it; without somebody to ask, `--yes` has to be said."""
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise click.UsageError("there is nobody to ask whether this is meant; say --yes if it is")
    return click.confirm(question, default=False, err=True)
