"""`hermes sessions rename`: sets or removes the title of a session."""

from __future__ import annotations

from itertools import accumulate

import click

from hermes.cli.display.terminal import printable, write_json, write_stdout
from hermes.cli.options import AS_JSON
from hermes.cli.session_argument import SESSION, open_named_session
from hermes.cli.store import read_config
from hermes.state.sessions.lookup import refuse_unquoted_title

SCHEMA = "hermes.renamed/1"


@click.command(
    epilog="""\b
Examples:
  hermes sessions rename 20261115_190312_a1b2c3d4 debugging auth flow
  hermes sessions rename "debugging auth flow" \"\""""
)
@SESSION
@click.argument("words", metavar="TITLE...", nargs=-1, required=True)
@AS_JSON
def rename(name: str, words: tuple[str, ...], as_json: bool) -> None:
    """Set or remove the title of a session.

    An empty TITLE removes the title. A title has at most 100 characters and must be unique.
    """
    config = read_config(as_json=as_json)
    with open_named_session(config, name, for_change=True) as session:
        unquoted = list(accumulate((name, *words[:-1]), "{} {}".format))[1:]
        refuse_unquoted_title(session.store, unquoted, "put the current and the new title in quotes")
        session.store.set_session_title(session.id, " ".join(words))
        title = session.store.get_session_title(session.id)
    if as_json:
        write_json({"schema": SCHEMA, "item": {"id": session.id, "title": title}})
    else:
        write_stdout(printable(f"{session.id}  {title}" if title else f"{session.id} has no title now."))
