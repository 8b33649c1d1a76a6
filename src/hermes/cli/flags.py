"""`hermes sessions archive`, `unarchive`, `pin` and `unpin`: what is set aside, and what is kept."""

from __future__ import annotations

import click

from hermes.cli.named import SESSION, named_session
from hermes.cli.options import AS_JSON
from hermes.cli.store import read_config
from hermes.cli.terminal import printable, write, write_json

SCHEMA = "hermes.flagged/1"


@click.command()
@SESSION
@AS_JSON
def archive(name: str, as_json: bool) -> None:
    """Leave a session out of the list; it stays searchable and can be resumed."""
    _set(name, "archived", True, as_json)


@click.command()
@SESSION
@AS_JSON
def unarchive(name: str, as_json: bool) -> None:
    """Bring an archived session back into the list."""
    _set(name, "archived", False, as_json)


@click.command()
@SESSION
@AS_JSON
def pin(name: str, as_json: bool) -> None:
    """Keep a session from being pruned."""
    _set(name, "pinned", True, as_json)


@click.command()
@SESSION
@AS_JSON
def unpin(name: str, as_json: bool) -> None:
    """Let a pinned session be pruned again when it is old."""
    _set(name, "pinned", False, as_json)


def _set(name: str, flag: str, value: bool, as_json: bool) -> None:
    config = read_config(as_json=as_json)
    with named_session(config, name, for_change=True) as session:
        change = session.store.set_session_archived if flag == "archived" else session.store.set_session_pinned
        change(session.id, value)
    if as_json:
        write_json({"schema": SCHEMA, "item": {"id": session.id, flag: value}})
    else:
        write(printable(f"{session.id} is {'' if value else 'no longer '}{flag}."))
