"""`hermes gateway queue`: messages that wait for an operator, in both directions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.state.lanes.queue.leases import turn_of_one
from hermes.state.lanes.types import Intent
from hermes_state import SessionDB
from tests.cli.conftest import Hermes
from tests.cli.gateway.running import answers, gateway, status

LANE = "agent:main:local:dm:c1"
SOURCE = {"platform": "local", "chat_id": "c1", "chat_type": "dm", "user_id": "ada"}


@pytest.fixture
def letters(hermes: Hermes) -> Hermes:
    """A parked message from a chat, and an expired reply to one."""
    with SessionDB(hermes.database) as db:
        db.inbox.accept(
            LANE, {"text": "are you there?", "source": SOURCE}, platform="local", chat_id="c1", message_id="m1"
        )
        claim = db.turns.claim_next("n1", choose=turn_of_one)
        assert claim is not None
        assert claim.turn_id is not None
        db.turns.park(claim.lease, claim.turn_id, "its turn was interrupted too often")
        row = db.outbox.intend(Intent("reply:x", {"chat_id": "c2", "text": "too late"}, "local", kind="reply"))
        db.outbox.expire(row["id"])
    return hermes


def items(hermes: Hermes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = hermes.json("gateway", "queue", "list")["items"]
    return found


def test_empty_list_is_said(hermes: Hermes) -> None:
    done = hermes("gateway", "queue", "list")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "No message waits for an operator.\n")
    assert hermes.json("gateway", "queue", "list") == {
        "schema": "hermes.gateway.queue/1",
        "items": [],
        "total": 0,
        "next": None,
    }


def test_both_directions_are_listed(letters: Hermes) -> None:
    lines = letters("gateway", "queue", "list").stdout.splitlines()
    assert lines[0].split() == ["Id", "State", "Kind", "Since", "Chat", "Reason"]
    assert lines[2].startswith("in:1   parked   normal  just now  local c1  its turn was interrupted too often")
    assert lines[3].startswith("out:1  expired  reply   just now  local c2")
    assert [(each["id"], each["direction"], each["state"]) for each in items(letters)] == [
        ("in:1", "in", "parked"),
        ("out:1", "out", "expired"),
    ]
    assert "1 from chats (1 parked), 1 to chats (1 expired)" in letters("gateway", "status").stdout
    assert status(letters)["queue"]["dead"] == {"inbox": {"parked": 1}, "outbox": {"expired": 1}}


def test_list_says_that_there_are_more(letters: Hermes) -> None:
    with SessionDB(letters.database) as db:
        row = db.outbox.intend(Intent("reply:y", {"chat_id": "c2", "text": "too late"}, "local"))
        db.outbox.expire(row["id"])
    done = letters("gateway", "queue", "list", "--limit", "1")
    assert "Only the oldest 1 of each direction are shown" in done.stderr
    first = letters.json("gateway", "queue", "list", "--limit", "1")
    assert ([each["id"] for each in first["items"]], first["total"]) == (["in:1", "out:1"], 3)
    second = letters.json("gateway", "queue", "list", "--limit", "1", "--after", first["next"])
    assert ([each["id"] for each in second["items"]], second["total"], second["next"]) == (["out:2"], 3, None)
    refused = letters("gateway", "queue", "list", "--after", "in:1")
    assert refused.returncode != 0
    assert "is no cursor of this list" in refused.stderr


def test_one_is_shown_with_its_text(letters: Hermes) -> None:
    shown = letters("gateway", "queue", "show", "in:1").stdout
    assert "State:    parked: its turn was interrupted too often" in shown
    assert shown.endswith("\n\nare you there?\n")
    found = letters.json("gateway", "queue", "show", "out:1")
    assert (found["schema"], found["item"]["payload"]["text"]) == ("hermes.gateway.letter/1", "too late")


def test_retried_messages_are_answered_and_delivered(letters: Hermes) -> None:
    assert letters("gateway", "queue", "retry", "in:1").stdout == "in:1 waits in its lane again.\n"
    assert letters("gateway", "queue", "retry", "out:1").stdout == "out:1 is sent again.\n"
    assert items(letters) == []
    with gateway(letters):
        assert answers(letters, 1, "c1")[0].answers == ("m1",)
        assert answers(letters, 1, "c2")[0].text == "too late"


def test_deleting_needs_a_confirmation(letters: Hermes) -> None:
    done = letters("gateway", "queue", "delete", "in:1")
    assert (done.returncode, "pass --yes" in done.stderr, len(items(letters))) == (2, True, 2)
    for letter in ("in:1", "out:1"):
        assert letters("gateway", "queue", "delete", letter, "--yes").stdout == f"Deleted {letter}.\n"
    assert items(letters) == []
    assert "Its text is not kept any more." in letters("gateway", "queue", "show", "in:1").stdout


def test_old_ones_expire_together(letters: Hermes) -> None:
    done = letters("gateway", "queue", "expire", "--older-than", "7d", "--yes")
    assert done.stdout == "Deleted 0 messages from chats and 0 messages to chats.\n"
    done = letters("gateway", "queue", "expire", "--older-than", "0m", "--yes")
    assert done.stdout == "Deleted 1 message from chats and 1 message to chats.\n"
    assert items(letters) == []


@pytest.mark.parametrize("age", ["soon", "7", "-7d", "2026-01-31", "yesterday"])
def test_age_must_be_an_age(letters: Hermes, age: str) -> None:
    done = letters("gateway", "queue", "expire", f"--older-than={age}", "--yes")
    assert (done.returncode, "7d" in done.stderr, len(items(letters))) == (2, True, 2)


@pytest.mark.parametrize("command", [("show",), ("retry",), ("delete", "--yes")])
def test_unknown_and_invalid_ids_are_refused(hermes: Hermes, letters: Hermes, command: tuple[str, ...]) -> None:
    for letter, code in (("in:99", 3), ("out:99", 3), ("12", 2), ("inbox:1", 2), ("in:x", 2)):
        assert hermes("gateway", "queue", *command, letter).returncode == code, letter


def test_answered_message_cannot_be_retried(hermes: Hermes, letters: Hermes) -> None:
    hermes("gateway", "queue", "retry", "in:1")
    done = hermes("gateway", "queue", "retry", "in:1")
    assert (done.returncode, "no message in:1 waits for an operator" in done.stderr) == (3, True)
    error = json.loads(hermes("gateway", "queue", "show", "in:44", "--json").stderr)["error"]
    assert error["code"] == "not_found"
