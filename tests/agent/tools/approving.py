"""Requests for approval, and the answers to them."""

from __future__ import annotations

from hermes.agent.safety.approval import ApprovalRequest, Approvals, ConversationOrigin
from hermes.state.owner import TERMINAL, Owner
from tests.agent.tools.workbench import Person


def command(
    text: str, bare: str | None = None, tool: str = "terminal", directory: str = "/src/wiki"
) -> ApprovalRequest:
    return ApprovalRequest(
        tool=tool, summary=text, detail=text, risk="normal", subject=text, directory=directory, bare=bare
    )


def refusal(
    approvals: Approvals,
    request: ApprovalRequest,
    person: Person | None,
    session_id: str = "s",
    owner: Owner = TERMINAL,
) -> str | None:
    return approvals.refusal(request, ConversationOrigin(session_id, "cli", owner), person)
