"""`hermes gateway approvals`, `approve` and `deny`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hermes.state.lanes.types import Intent, NewSession, Start
from hermes_state import SessionDB
from tests.cli.conftest import Hermes
from tests.cli.gateway.running import answers, ask, configure, gateway
from tests.support.modelserver import Call, ModelServer, Received, Say

CONFIG = "agent: {auto_title: false}\ntools: {local: [terminal]}\n"
COMMAND = "touch made-by-the-agent"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model that wants to run a command first, and then repeats what it gets."""
    want = Say(calls=[Call("terminal", {"command": COMMAND})])
    with ModelServer(want, Say("I have asked for permission."), otherwise=repeat) as server:
        yield server


def repeat(request: Received) -> Say:
    return Say(f"Now I know: {request.last_text}")


def requests(hermes: Hermes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = hermes.json("gateway", "approvals")["items"]
    return found


def made_files(hermes: Hermes) -> list[str]:
    return [each.name for each in (hermes.home / "workspaces").rglob("made-by-the-agent")]


def test_nothing_waits(hermes: Hermes) -> None:
    done = hermes("gateway", "approvals")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "No request waits.\n")


def test_requests_are_listed_in_pages(hermes: Hermes) -> None:
    assert hermes("sessions", "list").returncode == 0
    with SessionDB(hermes.database) as db:
        for name in ("a", "b", "c"):
            db.create_session(name, "local")
            db.approvals.request(name, name, "terminal", "{}", ttl_seconds=60)
    first = hermes.json("gateway", "approvals", "--limit", "2")
    assert ([each["session_key"] for each in first["items"]], first["total"], first["next"]) == (["a", "b"], 3, "2")
    second = hermes.json("gateway", "approvals", "--limit", "2", "--after", first["next"])
    assert ([each["session_key"] for each in second["items"]], second["total"], second["next"]) == (["c"], 3, None)
    assert "Only 2 requests of 3 are shown" in hermes("gateway", "approvals", "--limit", "2").stderr


def test_unknown_request_is_not_found(hermes: Hermes) -> None:
    for command in ("approve", "deny"):
        done = hermes("gateway", command, "ABCDEF")
        assert (done.returncode, "there is no request 'ABCDEF'" in done.stderr) == (3, True)


def test_approved_command_runs_once_in_its_chat(hermes: Hermes, server: ModelServer) -> None:
    configure(hermes, server.config + CONFIG)
    with gateway(hermes):
        ask(hermes, "make the file")
        (request,) = requests(hermes)
        assert (request["tool"], json.loads(request["arguments"])) == ("terminal", {"command": COMMAND})
        shown = hermes("gateway", "approvals").stdout
        assert f"Request {request['id']}, just now" in shown
        assert COMMAND in shown
        assert made_files(hermes) == []
        done = hermes("gateway", "approve", request["id"].lower())
        assert done.stdout.startswith(f"Request {request['id']} is approved; terminal runs")
        (answer,) = answers(hermes, 1)
        assert "was allowed by the operator and has run now" in answer.text
        assert made_files(hermes) == ["made-by-the-agent"]
        again = hermes("gateway", "approve", request["id"])
        assert (again.returncode, "was approved" in again.stderr) == (4, True)
        assert requests(hermes) == []


def test_the_chat_continues_through_the_account_that_it_knows(hermes: Hermes) -> None:
    assert hermes("sessions", "list").returncode == 0
    origin = {"platform": "telegram", "chat_id": "1", "chat_type": "dm", "user_id": "1"}
    with SessionDB(hermes.database) as db:
        session = NewSession("s1", "telegram", user_id="1")
        db.lanes.resolve("telegram one", lambda *_: Start(session, {"origin": origin, "platform": "telegram"}))
        row = db.approvals.request("telegram one", "s1", "terminal", "{}", ttl_seconds=60)
        db.outbox.intend(Intent("answer", {}, platform="telegram", account="bot-2", session_key="telegram one"))
    assert hermes("gateway", "deny", row["id"]).returncode == 0
    with SessionDB(hermes.database) as db:
        (waiting,) = db.inbox.waiting("telegram one")
    assert (waiting["kind"], waiting["account"]) == ("internal", "bot-2")


def test_decision_works_while_no_gateway_runs(hermes: Hermes, server: ModelServer) -> None:
    configure(hermes, server.config + CONFIG)
    with gateway(hermes) as running:
        ask(hermes, "make the file")
        running.signal()
        running.wait()
    (request,) = requests(hermes)
    assert hermes("gateway", "deny", request["id"]).stdout == f"Request {request['id']} is denied. Nothing is run.\n"
    with gateway(hermes):
        (answer,) = answers(hermes, 1)
    assert "was denied by the operator" in answer.text
    assert made_files(hermes) == []
    assert hermes("gateway", "approve", request["id"]).returncode == 4
