"""`hermes gateway approvals`, `approve` and `deny`: decide what agents in chats may do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, get_args

import click

from hermes.cli.display.terminal import heading, printable, printable_lines, write_json, write_stderr, write_stdout
from hermes.cli.display.times import ago
from hermes.cli.gateway.wording import clock_time
from hermes.cli.options import AS_JSON, limit_option
from hermes.cli.store import open_for_change, open_for_reading, read_config
from hermes.errors import Conflict, NotFound
from hermes.gateway.commands.approvals import continuation_of
from hermes.gateway.commands.texts import already_decided
from hermes.phrases import plural
from hermes.state.lanes.approvals import ApprovalScope

if TYPE_CHECKING:
    from hermes.state.lanes.approvals import ApprovalRow
    from hermes.state.provider import SessionDBProvider

SCHEMA = "hermes.gateway.approvals/1"
OPERATOR = "the operator"
"""Who has decided, as the chat and the database show it."""

_FIELDS = (
    *("id", "session_key", "session_id", "platform", "tool", "arguments", "directory", "subject", "summary"),
    *("detail", "risk", "state", "asked_at", "expires_at"),
)

REQUEST = click.argument("request_id", metavar="ID")


@click.command()
@limit_option("requests")
@click.option("--after", metavar="N", type=click.IntRange(min=0), default=0, help="Skip so many: `next` in --json.")
@AS_JSON
def approvals(limit: int, after: int, as_json: bool) -> None:
    """List the requests of permission that wait, the oldest first."""
    with open_for_reading(read_config(as_json=as_json)) as store:
        waiting = [] if store is None else store.approvals.pending(limit=None)
    rows = waiting[after : after + limit]
    has_more = len(waiting) > after + limit
    if as_json:
        items: list[dict[str, Any]] = [{name: row[name] for name in _FIELDS} for row in rows]  # type: ignore[literal-required]
        page = {"items": items, "total": len(waiting), "next": str(after + limit) if has_more else None}
        write_json({"schema": SCHEMA, **page})
        return
    if not rows:
        write_stderr("No request waits.")
        return
    now = time.time()
    write_stdout("\n\n".join("\n".join(_format(row, now)) for row in rows))
    if has_more:
        write_stderr(f"Only {plural(len(rows), 'request')} of {len(waiting)} are shown; raise --limit for more.")
    write_stderr("`hermes gateway approve ID` allows one of them once, `hermes gateway deny ID` refuses it.")


@click.command()
@REQUEST
@click.option(
    "--scope",
    type=click.Choice(get_args(ApprovalScope)),
    default="once",
    show_default=True,
    help="For this call only, for the rest of its session, or for ever.",
)
def approve(request_id: str, scope: ApprovalScope) -> None:
    """Allow what an agent asks for.

    The call runs exactly as requested, in its chat. The exit code is 3 if the request is unknown, and 4 if it was
    decided before.
    """
    row = _decide(request_id, scope, is_approved=True)
    write_stdout(f"Request {row['id']} is approved; {row['tool']} runs as soon as a gateway works on its chat.")


@click.command()
@REQUEST
def deny(request_id: str) -> None:
    """Refuse what an agent asks for."""
    row = _decide(request_id, "once", is_approved=False)
    write_stdout(f"Request {row['id']} is denied. Nothing is run.")


def _decide(request_id: str, scope: ApprovalScope, *, is_approved: bool) -> ApprovalRow:
    unknown = NotFound(f"there is no request {request_id!r}", hint="see `hermes gateway approvals`")
    if not request_id.strip():
        raise unknown
    with open_for_change(read_config(as_json=False)) as store:
        known = None if store is None else store.approvals.get(request_id)
        if store is None or known is None:
            raise unknown
        row = store.approvals.decide(request_id, is_approved, OPERATOR, scope)
        if row is None:
            if _is_of_operator(known, is_approved=is_approved):
                _continue_lane(store, known)  # a repeated command finishes one that was killed
            raise Conflict(already_decided(known["id"], known["state"]).rstrip("."), hint="")
        if not _continue_lane(store, row):
            write_stderr("The chat of this request does not exist any more, so nothing follows from it.")
    return row


def _is_of_operator(row: ApprovalRow, *, is_approved: bool) -> bool:
    return row["decided_by"] == OPERATOR and row["state"] == ("approved" if is_approved else "denied")


def _continue_lane(store: SessionDBProvider, row: ApprovalRow) -> bool:
    """Let the lane of a request continue with the decision; False if it does not exist any more."""
    lane = store.lanes.get(row["session_key"])
    last = store.outbox.of_lane(row["session_key"], limit=1)  # the account that the chat knows
    message = None if lane is None else continuation_of(row, lane, account=last[0]["account"] if last else "")
    if message is None:
        return False
    store.inbox.accept(
        message.session_key,
        dict(message.payload),
        platform=message.platform,
        account=message.account,
        delivery_id=message.delivery_id,
        kind=message.kind,
    )
    return True


def _format(row: ApprovalRow, now: float) -> list[str]:
    detail = row["detail"] or row["arguments"]
    place = f" in {row['directory']}" if row["directory"] and row["directory"] not in detail else ""
    lines = [
        heading(f"Request {row['id']}, {ago(row['asked_at'], now)}"),
        f"  Chat:      {row['session_key']}",
        f"  Tool:      {row['tool']}{place}",
        f"  Risk:      {row['risk'] or 'unknown'}",
        f"  Expires:   {clock_time(row['expires_at'])}",
    ]
    shown = printable_lines(detail).splitlines()
    return [lines[0], *(printable(line) for line in lines[1:]), *(f"    {line}".rstrip() for line in shown)]
