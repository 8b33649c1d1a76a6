"""`hermes gateway pairing`."""

from __future__ import annotations

import time

from hermes.gateway.people.pairing import ask_for_code
from hermes_state import SessionDB
from tests.cli.conftest import Hermes


def wait_for_approval(hermes: Hermes, user: str = "7") -> str:
    with SessionDB(hermes.home / "state.db") as store:
        code = ask_for_code(store, ("telegram", user), "Alice \x1b[31m", time.time())
    assert code is not None
    return code


def test_a_user_is_let_in_by_the_code_and_thrown_out_by_name(hermes: Hermes) -> None:
    code = wait_for_approval(hermes)
    listed = hermes("gateway", "pairing", "list")
    assert "waiting  telegram:7 (Alice" in listed.stdout
    assert "\x1b" not in listed.stdout
    assert code not in listed.stdout
    assert "telegram:7" in hermes("gateway", "pairing", "approve", code.lower()).stdout
    found = hermes.json("gateway", "pairing", "list")
    assert [(each["user"], each["state"]) for each in found["items"]] == [("7", "paired")]
    assert (found["total"], found["next"]) == (1, None)
    assert hermes("gateway", "pairing", "approve", code).returncode == 3
    assert hermes("gateway", "pairing", "revoke", "telegram:7").returncode == 0
    assert hermes("gateway", "pairing", "revoke", "telegram:7").returncode == 3


def test_an_empty_home_has_no_user_to_list_or_approve(hermes: Hermes) -> None:
    assert hermes("gateway", "pairing", "list").stderr.strip() == "No user waits or is paired."
    assert hermes("gateway", "pairing", "approve", "ABCDEFGH").returncode == 3
