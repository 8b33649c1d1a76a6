"""Commands of those who may approve: /approve and /deny.

For all other users no request exists, whatever id they send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes.errors import InvalidValue
from hermes.gateway.commands import texts
from hermes.gateway.commands.result import CommandResult, OtherMessage
from hermes.gateway.commands.switching import strip_brackets
from hermes.gateway.people.times import ago
from hermes.gateway.platform import Platform

if TYPE_CHECKING:
    from hermes.gateway.commands.context import CommandContext
    from hermes.state.lanes.approvals import ApprovalRow, ApprovalScope
    from hermes.state.lanes.types import LaneRow

MOST_LISTED = 20
_SCOPES = ("once", "session", "always")
_MAX_ID = 40


async def approve(context: CommandContext) -> CommandResult:
    """Approve a request, or list those that wait."""
    if not context.services.access.may_approve(context.source):
        return CommandResult(texts.UNKNOWN_REQUEST)
    words = context.args.split()
    if not words:
        return await _list(context)
    scope = words[1].lower() if len(words) > 1 else "once"
    if scope not in _SCOPES or len(words) > 2:
        return CommandResult(texts.APPROVE_USAGE)
    return await _decide(context, words[0], cast("ApprovalScope", scope), is_approved=True)


async def deny(context: CommandContext) -> CommandResult:
    """Deny a request."""
    if not context.services.access.may_approve(context.source):
        return CommandResult(texts.UNKNOWN_REQUEST)
    words = context.args.split()
    if not words:
        return CommandResult(texts.DENY_USAGE)
    return await _decide(context, words[0], "once", is_approved=False)


async def _list(context: CommandContext) -> CommandResult:
    now = context.services.now()
    rows = await context.services.db.approvals.pending(limit=MOST_LISTED)
    if not rows:
        return CommandResult(texts.NO_REQUESTS)
    entries = [texts.listed_request(row["id"], ago(row["asked_at"], now), _details(context, row)) for row in rows]
    return CommandResult(texts.requests_list(entries))


async def _decide(context: CommandContext, given_id: str, scope: ApprovalScope, *, is_approved: bool) -> CommandResult:
    """Decide a request, and let its lane continue with the decision."""
    approvals = context.services.db.approvals
    by = context.services.access.approver_name(context.source)
    approval_id = strip_brackets(given_id)
    if not 0 < len(approval_id) <= _MAX_ID:
        return CommandResult(texts.UNKNOWN_REQUEST)
    try:
        row = await approvals.decide(approval_id, is_approved, by, scope)
        row = row or await _decided_by_this(context, approval_id, by, is_approved=is_approved)
        known = row or await approvals.get(approval_id)
    except InvalidValue:
        known = row = None
    if known is None:
        return CommandResult(texts.UNKNOWN_REQUEST)
    if row is None:
        return CommandResult(texts.already_decided(known["id"], known["state"]))
    continuation = await _continuation(context, row)
    if continuation is None:
        return CommandResult(texts.LANE_IS_GONE)
    if not is_approved:
        return CommandResult(texts.denied(row["id"]), other=(continuation,))
    text = texts.approved(row["id"], row["scope"] or scope, _details(context, row))
    return CommandResult(text, other=(continuation,))


async def _decided_by_this(
    context: CommandContext, approval_id: str, by: str, *, is_approved: bool
) -> ApprovalRow | None:
    """Return the request if this same command has decided it, before a crash."""
    row = await context.services.db.approvals.get(approval_id)
    if row is None or row["decided_by"] != by or (row["decided_at"] or 0.0) < context.row["accepted_at"]:
        return None
    return row if row["state"] in (("approved", "used", "void") if is_approved else ("denied",)) else None


async def _continuation(context: CommandContext, row: ApprovalRow) -> OtherMessage | None:
    """Return the message with which the lane of a request continues; None if the lane is gone."""
    lane = await context.services.db.lanes.get(row["session_key"])
    if lane is None:
        return None
    is_here = row["session_key"] == context.session_key
    return continuation_of(row, lane, account=context.row["account"] if is_here else "")


def continuation_of(row: ApprovalRow, lane: LaneRow, *, account: str = "") -> OtherMessage | None:
    """Return the message with which a lane continues after a decision; None if its chat is not known."""
    if not lane["origin"]:
        return None
    return OtherMessage(
        session_key=row["session_key"],
        payload={"internal": "approval", "approval_id": row["id"], "text": "", "source": lane["origin"]},
        delivery_id=f"approval:{row['id']}",
        platform=str(lane["origin"].get("platform") or row["platform"] or Platform.LOCAL.value),
        account=account,
    )


def _details(context: CommandContext, row: ApprovalRow) -> str:
    """Return what is approved; a group does not see what happens in the chats of others."""
    if context.source.chat_type != "dm" and row["session_key"] != context.session_key:
        return texts.DETAILS_ARE_PRIVATE
    return texts.request_details(row["tool"], row["arguments"], row["directory"])
