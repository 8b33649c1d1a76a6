"""Permissions that are given after the gateway was killed."""

from __future__ import annotations

import pytest

from tests.gateway.reliability.chat import Chat
from tests.gateway.reliability.world import World
from tests.support.modelserver import Call, Say
from tests.support.stores import engine_of
from tests.support.waiting import wait_until

COMMAND = "echo done >> made.txt; cat made.txt"


@pytest.fixture
def request_id(one: World) -> str:
    """The id of a request of permission that was made before the gateway was killed."""
    one.home(tools={"default": [], "local": ["terminal"]}, gateway={"admins": ["local:boss"]})
    one.model.on("work", Say("I need that.", calls=[Call("terminal", {"command": COMMAND})]))
    node = one.process()
    chat = one.chat(node)
    chat.ask("work")
    assert chat.wait_for_replies("work") == ["answer to work"]
    (row,) = one.store.approvals.pending()
    wait_until(lambda: f"/approve {row['id']}" in chat.texts(), "the operator to learn about the request")
    node.kill()
    return row["id"]


def made(world: World) -> list[str]:
    """The lines that the command has written."""
    return [line for file in world.directory.glob("**/made.txt") for line in file.read_text().split()]


def approve(world: World, request_id: str) -> Chat:
    """Start a gateway, allow the request, and wait until the turn after it has ended."""
    chat = world.chat(world.process())
    asked = len(world.model.server.requests)
    assert chat.say(f"/approve {request_id}", "boss", user_id="boss")["state"] == "accepted"
    wait_until(lambda: len(world.model.server.requests) > asked, "the model to learn about the result")
    return chat


def test_24_an_approval_after_a_restart_runs_the_call_once(one: World, request_id: str) -> None:
    approve(one, request_id)
    assert made(one) == ["done"]
    assert "has run now" in one.model.server.requests[-1].last_text
    row = one.store.approvals.get(request_id)
    assert row is not None
    assert (row["state"], row["decided_by"]) == ("used", "local:boss")


def test_24_a_call_whose_arguments_were_changed_is_void(one: World, request_id: str) -> None:
    changed = '{"command": "echo evil >> made.txt"}'
    engine_of(one.store).write(lambda tx: tx.run("UPDATE approvals SET arguments = :changed", changed=changed))
    approve(one, request_id)
    assert made(one) == []
    assert "was changed after it was allowed, so it was not run" in one.model.server.requests[-1].last_text
    row = one.store.approvals.get(request_id)
    assert row is not None
    assert row["state"] == "void"


def test_24_a_stranger_cannot_approve(one: World, request_id: str) -> None:
    chat = one.chat(one.process())
    chat.say(f"/approve {request_id}", "c1", message_id="stranger")
    chat.wait_for_replies("stranger")
    assert made(one) == []
    row = one.store.approvals.get(request_id)
    assert row is not None
    assert row["state"] == "pending"
