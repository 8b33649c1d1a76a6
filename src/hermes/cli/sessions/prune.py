"""`hermes sessions prune`: deletes old sessions after a preview."""

from __future__ import annotations

import time

import click

from hermes.cli.confirm import YES, confirm
from hermes.cli.display.receipt import format_receipt, receipt_json
from hermes.cli.display.terminal import printable, write_json, write_stderr, write_stdout
from hermes.cli.display.times import ago
from hermes.cli.interrupts import delay_interrupt
from hermes.cli.options import AS_JSON, SECURE, SOURCE
from hermes.cli.progress import progress
from hermes.cli.store import open_for_change, open_for_reading, read_config, sessions_dir
from hermes.phrases import plural
from hermes.state.maintenance.receipt import Outlook, Receipt

SCHEMA = "hermes.pruned/1"
DAYS = 90.0


@click.command(
    epilog="""\b
Examples:
  hermes sessions prune --dry-run
  hermes sessions prune --older-than 30 --source telegram --yes""",
)
@click.option(
    "--older-than",
    "days",
    metavar="DAYS",
    type=click.FloatRange(min=0),
    default=DAYS,
    show_default=True,
    help="Only sessions without a message for this many days.",
)
@SOURCE
@click.option("--include-open", is_flag=True, help="Include sessions that never ended.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@YES
@SECURE
@AS_JSON
def prune(
    days: float,
    source: str | None,
    include_open: bool,
    dry_run: bool,
    is_sure: bool,
    secure: bool | None,
    as_json: bool,
) -> None:
    """Delete old, ended sessions.

    The age of a session is the age of its last message. Pinned sessions stay, and so does a conversation if any part of
    it is still in use. Ctrl-C does not stop a running deletion halfway.
    """
    config = read_config(as_json=as_json)
    is_secure = config.sessions.secure_delete if secure is None else secure
    with (open_for_reading if dry_run else open_for_change)(config) as store:
        outlook = Outlook() if store is None else store.preview_prune(days, source, include_open=include_open)
        receipt = Receipt()
        for line in () if as_json else prune_summary_lines(outlook, now=time.time()):
            write_stderr(line)
        wanted = outlook.sessions > 0 and not dry_run
        if store is not None and wanted and confirm(f"Delete {plural(outlook.sessions, 'session')}?", is_sure=is_sure):
            with progress() as report, delay_interrupt("the deletion"):
                receipt = store.prune_with_receipt(
                    days, source, sessions_dir(), include_open=include_open, secure=is_secure, report=report
                )
    if as_json:
        item = {
            "dry_run": dry_run,
            "doomed": outlook._asdict() | {"by_source": dict(outlook.by_source)},
            "deleted": receipt_json(receipt),
        }
        write_json({"schema": SCHEMA, "item": item})
    elif receipt.sessions:
        write_stdout("\n".join(format_receipt(receipt)))
    else:
        write_stderr("Nothing was deleted.")


def prune_summary_lines(outlook: Outlook, *, now: float) -> list[str]:
    """Describe the sessions that would be deleted, so that the user can decide."""
    if not outlook.sessions:
        return ["No session is old enough to prune."]
    sources = ", ".join(f"{source}: {count}" for source, count in outlook.by_source)
    lines = [f"{plural(outlook.sessions, 'session')} with {plural(outlook.messages, 'message')} ({sources})"]
    remarks = [f"{outlook.titled} with a title"] if outlook.titled else []
    remarks += [f"{outlook.archived} archived"] if outlook.archived else []
    remarks += [f"and {plural(outlook.delegates, 'subagent session')}"] if outlook.delegates else []
    if remarks:
        lines.append(", ".join(remarks))
    lines.append(f"last active between {ago(outlook.oldest, now)} and {ago(outlook.newest, now)}")
    return [printable(line) for line in lines]
