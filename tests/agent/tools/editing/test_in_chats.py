"""Changing files in a chat: the operator decides, about exactly this change, and only in the chat's own directory."""

from __future__ import annotations

import json
import os

import pytest

from hermes.agent.safety.approval import (
    ApprovalDeferred,
    ApprovalRequest,
    Approvals,
    ConversationOrigin,
    Decision,
    Grant,
)
from hermes.agent.safety.permits import Permits
from tests.agent.tools.workbench import Workbench

CALL = json.dumps({"path": "a.txt", "old": "one", "new": "two"})


@pytest.fixture
def asked(bench: Workbench) -> list[ApprovalRequest]:
    """The requests to an operator who decides later, about a chat with a directory of its own."""
    asked: list[ApprovalRequest] = []

    def decide_later(request: ApprovalRequest, origin: ConversationOrigin) -> Decision:
        asked.append(request)
        raise ApprovalDeferred("a1", request.summary)

    approvals = Approvals("allow", Permits(bench.context.home), operator=decide_later)
    bench.change(source="telegram", approve=None, approvals=approvals)
    (bench.work / "a.txt").write_text("one\n")
    return asked


def grant_for(bench: Workbench, request: ApprovalRequest) -> Grant:
    return Grant(request.subject, request.detail, str(bench.work))


def test_change_waits_for_the_operator(bench: Workbench, asked: list[ApprovalRequest]) -> None:
    assert "requested as a1" in bench.run("edit_file", CALL).text
    assert (bench.work / "a.txt").read_text() == "one\n"
    bench.change(grant=grant_for(bench, asked[0]))
    assert not bench.run("edit_file", CALL).is_error
    assert (bench.work / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize(
    "other",
    [
        {"path": "a.txt", "old": "one", "new": "two and more"},
        {"path": "b.txt", "old": "one", "new": "two"},
    ],
)
def test_permission_covers_no_other_change(
    bench: Workbench, asked: list[ApprovalRequest], other: dict[str, str]
) -> None:
    (bench.work / "b.txt").write_text("one\n")
    bench.run("edit_file", CALL)
    bench.change(grant=grant_for(bench, asked[0]))
    assert "not what the operator has allowed" in bench.refused("edit_file", **other)


def test_permission_covers_no_other_content_of_the_file(bench: Workbench, asked: list[ApprovalRequest]) -> None:
    bench.run("edit_file", CALL)
    (bench.work / "a.txt").write_text("zero\none\n")
    bench.change(grant=grant_for(bench, asked[0]))
    assert "not what the operator has allowed" in json.loads(bench.run("edit_file", CALL).text)["error"]
    assert (bench.work / "a.txt").read_text() == "zero\none\n"


def test_chat_without_a_directory_changes_nothing(bench: Workbench, asked: list[ApprovalRequest]) -> None:
    bench.change(working_directory=None)
    assert "no directory of its own" in bench.refused("edit_file", path="/tmp/a.txt", old="one", new="two")
    assert asked == []


def test_chat_without_an_operator_changes_nothing(bench: Workbench, asked: list[ApprovalRequest]) -> None:
    bench.change(approvals=Approvals("allow", Permits(bench.context.home)))
    assert "who cannot be asked" in bench.refused("write_file", path="b.txt", content="x\n")
    assert os.listdir(bench.work) == ["a.txt"]
