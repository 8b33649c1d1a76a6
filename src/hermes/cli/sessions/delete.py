"""`hermes sessions delete`: deletes sessions and prints a receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hermes.cli.confirm import YES, confirm
from hermes.cli.display.receipt import format_receipt, receipt_json
from hermes.cli.display.terminal import printable, write_json, write_stderr, write_stdout
from hermes.cli.options import AS_JSON, SECURE
from hermes.cli.store import database_file, no_sessions_message, open_for_change, read_config, sessions_dir
from hermes.errors import UnknownSession
from hermes.phrases import plural

if TYPE_CHECKING:
    from hermes.state.provider import SessionDBProvider
    from hermes.state.rows import AnyRow

SCHEMA = "hermes.deleted/1"


@click.command(
    epilog="""\b
Examples:
  hermes sessions delete 20261115_190312_a1b2c3d4
  hermes sessions delete "refactoring auth" --yes""",
)
@click.argument("names", metavar="ID|TITLE...", nargs=-1, required=True)
@YES
@SECURE
@AS_JSON
def delete(names: tuple[str, ...], is_sure: bool, secure: bool | None, as_json: bool) -> None:
    """Delete sessions with their messages and files.

    Sessions of their subagents are deleted too. Branches and continuations stay as sessions of their own. Only a backup
    can bring deleted sessions back.
    """
    config = read_config(as_json=as_json)
    is_secure = config.sessions.secure_delete if secure is None else secure
    with open_for_change(config) as store:
        if store is None:
            raise UnknownSession(no_sessions_message(database_file(config)), hint="")
        ids = find_sessions(store, names)
        for line in () if as_json else describe_sessions(store, ids):
            write_stderr(line)
        if not confirm(f"Delete {describe_extent(store, ids)}?", is_sure=is_sure):
            write_stderr("Nothing was deleted.")
            return
        receipt = store.delete_with_receipt(ids, sessions_dir(), secure=is_secure)
    if as_json:
        write_json({"schema": SCHEMA, "item": receipt_json(receipt) | {"ids": ids}})
    else:
        write_stdout("\n".join(format_receipt(receipt)))


def find_sessions(store: SessionDBProvider, names: tuple[str, ...]) -> list[str]:
    """Return the ids of the named sessions; raise an error if one is unknown or a title lacks quotes."""
    from hermes.state.sessions.lookup import Purpose, find_session, join_adjacent_words, refuse_unquoted_title

    unquoted = [text for text in join_adjacent_words(names) if text not in names]
    refuse_unquoted_title(store, unquoted, "put a title of several words in quotes, or delete the sessions one by one")
    return list(dict.fromkeys(find_session(store, name, Purpose.CHANGE) for name in names))


def describe_extent(store: SessionDBProvider, ids: list[str]) -> str:
    """Describe how many sessions, subagent sessions and messages would be deleted."""
    from hermes.state.maintenance.deletion import add_delegates
    from hermes.state.operations import read

    all_ids = read(store, lambda tx: add_delegates(tx, ids))
    delegates = len(all_ids) - len(ids)
    subagents = f" and {plural(delegates, 'subagent session')}" if delegates else ""
    messages = plural(sum(store.message_count(each) for each in all_ids), "message")
    return f"{plural(len(ids), 'session')}{subagents} with {messages}"


def describe_sessions(store: SessionDBProvider, ids: list[str]) -> list[str]:
    """Describe each session on a line, so that the user can decide."""
    lines = []
    for session_id in ids:
        row: AnyRow = store.get_session(session_id) or {}
        name = row.get("title") or row.get("preview") or "(no messages)"
        messages = plural(store.message_count(session_id), "message")
        pinned = ", pinned" if row.get("pinned") else ""
        lines.append(printable(f"{session_id}  {name}  ({row.get('source')}, {messages}{pinned})"))
    return lines
