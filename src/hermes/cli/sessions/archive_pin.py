"""`hermes sessions archive`, `unarchive`, `pin` and `unpin`: set the flags of a session."""

from __future__ import annotations

import click

from hermes.cli.display.terminal import printable, write_json, write_stdout
from hermes.cli.options import AS_JSON
from hermes.cli.session_argument import SESSION, open_named_session
from hermes.cli.store import read_config

SCHEMA = "hermes.flagged/1"


@click.command()
@SESSION
@AS_JSON
def archive(name: str, as_json: bool) -> None:
    """Hide a session from the list; it stays searchable and resumable."""
    _set_flag(name, "archived", True, as_json)


@click.command()
@SESSION
@AS_JSON
def unarchive(name: str, as_json: bool) -> None:
    """Show an archived session in the list again."""
    _set_flag(name, "archived", False, as_json)


@click.command()
@SESSION
@AS_JSON
def pin(name: str, as_json: bool) -> None:
    """Protect a session from pruning."""
    _set_flag(name, "pinned", True, as_json)


@click.command()
@SESSION
@AS_JSON
def unpin(name: str, as_json: bool) -> None:
    """Allow pruning of a pinned session again."""
    _set_flag(name, "pinned", False, as_json)


def _set_flag(name: str, flag: str, value: bool, as_json: bool) -> None:
    config = read_config(as_json=as_json)
    with open_named_session(config, name, for_change=True) as session:
        change = session.store.set_session_archived if flag == "archived" else session.store.set_session_pinned
        change(session.id, value)
    if as_json:
        write_json({"schema": SCHEMA, "item": {"id": session.id, flag: value}})
    else:
        write_stdout(printable(f"{session.id} is {'' if value else 'no longer '}{flag}."))
