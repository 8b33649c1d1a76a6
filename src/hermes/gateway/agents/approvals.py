"""Permissions in chats: a request is stored, the turn continues without it, and the approved call runs later.

No thread waits for a decision, and a decision works after a restart, because everything is in the store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from hermes.agent.history.text_limits import limit_text
from hermes.agent.models.model import ToolCall
from hermes.agent.safety.approval import (
    ApprovalDeferred,
    ApprovalRequest,
    ConversationOrigin,
    Decision,
    Grant,
)
from hermes.agent.turns.incoming import Incoming
from hermes.state.lanes.approvals import ApprovalRow, approval_digest

if TYPE_CHECKING:
    from hermes.agent.conversation import Conversation
    from hermes.agent.models.model import Cancellation
    from hermes.state.lanes.types import Lease
    from hermes.state.provider import SessionDBProvider

UID_PREFIX = "approval:"
"""Begins the uid of the message with the result of an approved call, so that it is stored once."""
_MAX_ARGUMENT_CHARACTERS = 2_000
_ADVICE = "Do not try it again in any form; continue without it, or tell the user what you need."


class ApprovalDesk:
    """Stores what agents request, and runs what was approved."""

    def __init__(self, store: SessionDBProvider, *, ttl_s: float, lease_s: float) -> None:
        self._store = store
        self._ttl_s = ttl_s
        self._lease_s = lease_s

    def request(
        self,
        request: ApprovalRequest,
        origin: ConversationOrigin,
        session_key: str,
        notify: Callable[[ApprovalRow], None],
    ) -> Decision:
        """Store a request and raise `ApprovalDeferred`; deny what cannot be bound to a call of the model."""
        if origin.call is None:
            return Decision.DENY
        row = self._store.approvals.request(
            session_key,
            origin.session_id,
            origin.call.name,
            origin.call.arguments,
            ttl_seconds=self._ttl_s,
            directory=origin.directory,
            owner=origin.owner.stored,
            platform=origin.source,
            subject=request.subject,
            summary=request.summary,
            detail=request.detail,
            risk=request.risk,
        )
        notify(row)
        raise ApprovalDeferred(row["id"], row["summary"])

    def carry_out(
        self, approval_id: str, conversation: Conversation, lease: Lease, cancellation: Cancellation
    ) -> Incoming:
        """Run an approved call once, and return the message with which the model learns its result or the decision.

        Raise `StaleLease` if another node has the lane: that node runs the call.
        """
        row = self._store.approvals.get(approval_id)
        if row is None or row["session_key"] != lease.session_key or row["owner"] != conversation.session.owner.stored:
            return _incoming(approval_id, f"There is no request {approval_id} in this conversation.")
        if row["state"] == "approved":
            self._store.turns.renew(lease, self._lease_s)
            return self._run(row, conversation, cancellation)
        return _incoming(row["id"], _explain(row))

    def _run(self, row: ApprovalRow, conversation: Conversation, cancellation: Cancellation) -> Incoming:
        store = conversation.plain_store
        if store.get_compression_tip(row["session_id"]) != store.get_compression_tip(conversation.session_id):
            return _incoming(row["id"], f"{_name(row)} was allowed, but belongs to an earlier session and was not run.")
        digest = approval_digest(row["session_id"], row["tool"], row["arguments"], row["directory"])
        if not self._store.approvals.use(row["id"], digest):
            # It was used or changed meanwhile.
            return _incoming(row["id"], _explain(self._store.approvals.get(row["id"]) or row))
        call = ToolCall(f"{UID_PREFIX}{row['id']}", row["tool"], row["arguments"])
        grant = Grant(
            subject=row["subject"],
            detail=row["detail"],
            directory=row["directory"] or "",
            scope=Decision(row["scope"] or Decision.ONCE),
        )
        result = conversation.run_approved(call, grant, cancellation)
        how = "failed" if result.is_error else "has run now"
        arguments = limit_text(row["arguments"], _MAX_ARGUMENT_CHARACTERS, more="look at your call above")
        return Incoming(
            f"[{_name(row)} was allowed by {row['decided_by'] or 'the operator'} and {how}. The result of {row['tool']}"
            f" with the arguments {arguments}:]\n{result.text}",
            uid_of(row["id"]),
        )


def uid_of(approval_id: str) -> str:
    """Return the uid of the message with the result of a request."""
    return f"{UID_PREFIX}{approval_id.strip().upper()}"


def _incoming(approval_id: str, text: str) -> Incoming:
    return Incoming(f"[{text}]", uid_of(approval_id))


def _name(row: ApprovalRow) -> str:
    return f"Request {row['id']} ({row['summary'] or row['tool']})"


def _explain(row: ApprovalRow) -> str:
    """Return what became of a request that is not to be run now."""
    match row["state"]:
        case "denied":
            return f"{_name(row)} was denied by {row['decided_by'] or 'the operator'}. {_ADVICE}"
        case "expired":
            return f"{_name(row)} was not decided in time, so it is denied. {_ADVICE}"
        case "void":
            return f"{_name(row)} was changed after it was allowed, so it was not run. {_ADVICE}"
        case "pending" | "approved":
            return f"{_name(row)} is not decided yet. Continue without it; the result will arrive as a new message."
        case "used":
            return (
                f"{_name(row)} was allowed and started, but the gateway stopped before its result was stored. It may or"
                " may not have taken effect: check before you do anything like it again."
            )
        case never:
            assert_never(never)
