"""`hermes gateway explain`: the life of one message."""

from __future__ import annotations

import json

from tests.cli.conftest import Hermes
from tests.cli.gateway.running import (
    ask,
    configure,
    explain,
    gated_model,
    gateway,
    send,
    without_numbers,
)
from tests.support.modelserver import Call, ModelServer, Say
from tests.support.waiting import LIMIT_S


def test_life_of_an_answered_message_is_shown(hermes: Hermes) -> None:
    with gateway(hermes, "--node", "desk"):
        ask(hermes, "hello", "m1")
        item = explain(hermes, "m1")
        done = hermes("gateway", "explain", "m1", TZ="Asia/Tokyo")
    (turn,), (reply,) = item["turns"], item["replies"]
    assert (item["id"], item["state"], item["kind"], item["user"]["id"]) == ("in:1", "done", "normal", "ada")
    assert (item["platform"], item["chat_id"]) == ("local", "c1")
    assert (turn["node"], turn["state"], turn["session_id"]) == ("desk", "finished", item["session_id"])
    assert (reply["key"], reply["state"]) == (f"reply:{item['uid']}", "sent")
    times = [item["accepted_at"], turn["started_at"], turn["finished_at"], reply["sent_at"]]
    assert times == sorted(times)
    assert without_numbers(done.stdout).splitlines() == [
        "Message m1 (local, chat c1)",
        "  Lane:     agent:main:local:dm:c1",
        "  Session:  <session>",
        "  User:     ada",
        "  Kind:     normal",
        "  State:    done",
        "<time>  received and committed as in:1",
        f"<time>  claimed by desk ({turn['holder']}), turn {turn['turn_id']} started, after <span> of waiting",
        "<time>  turn finished after <span>",
        f"<time>  reply out:1 stored (reply:{item['uid']})",
        "<time>  reply out:1 sent after <span>",
    ]


def test_times_are_in_the_local_zone(hermes: Hermes) -> None:
    with gateway(hermes):
        ask(hermes, "hello")
    tokyo, utc = (hermes("gateway", "explain", "m1", TZ=zone).stdout for zone in ("Asia/Tokyo", "UTC"))
    assert tokyo != utc
    assert without_numbers(tokyo) == without_numbers(utc)


def test_tools_of_a_turn_are_named(hermes: Hermes) -> None:
    search = Call("session_search", {"query": "anything"})
    with ModelServer(Say("Hello."), Say(calls=[search]), Say("Nothing found.")) as server:
        configure(hermes, f"{server.config}agent: {{auto_title: false}}\n")
        with gateway(hermes):
            ask(hermes, "hello", "m1")
            ask(hermes, "search for it", "m2")
    assert [explain(hermes, name)["turns"][0]["tools"] for name in ("m1", "m2")] == [[], ["session_search"]]
    assert "tools: session_search" in hermes("gateway", "explain", "m2").stdout


def test_command_has_a_reply_but_no_turn(hermes: Hermes) -> None:
    with gateway(hermes):
        ask(hermes, "/status", "m1")
        item = explain(hermes, "m1")
    assert (item["kind"], item["turns"], [each["state"] for each in item["replies"]]) == ("command", [], ["sent"])
    assert "done without a turn" in hermes("gateway", "explain", "m1").stdout


def test_waiting_and_running_messages_are_explained(hermes: Hermes) -> None:
    with gated_model(hermes) as gate, gateway(hermes):
        send(hermes, "hello", "m1")
        assert gate.asked.wait(LIMIT_S)
        send(hermes, "/queue later", "m2")
        running, waiting = (hermes("gateway", "explain", name).stdout for name in ("m1", "m2"))
    assert "the turn still runs, for " in running
    assert "It has waited for " in waiting


def test_inbox_number_names_a_message_too(hermes: Hermes) -> None:
    with gateway(hermes):
        ask(hermes, "hello", "m1")
    assert [explain(hermes, name)["message_id"] for name in ("in:1", "1", "m1")] == ["m1", "m1", "m1"]


def test_unknown_message_is_not_found(hermes: Hermes) -> None:
    done = hermes("gateway", "explain", "nope")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no message 'nope' is known" in done.stderr
    assert "7 days" in done.stderr
    with gateway(hermes):
        ask(hermes, "hello", "m1")
    assert hermes("gateway", "explain", "in:77").returncode == 3
    assert hermes("gateway", "explain", "m1", "--chat", "other").returncode == 3


def test_same_id_in_two_chats_is_chosen_by_the_chat(hermes: Hermes) -> None:
    with gateway(hermes):
        ask(hermes, "hello", "m1", "c1")
        ask(hermes, "hello", "m1", "c2")
    done = hermes("gateway", "explain", "m1")
    assert (done.returncode, done.stdout) == (4, "")
    assert "local chat c1: in:1" in done.stderr
    assert "--chat ID" in done.stderr
    error = json.loads(hermes("gateway", "explain", "m1", "--json").stderr)["error"]
    assert (error["code"], "local chat c2: in:2" in error["message"]) == ("conflict", True)
    assert explain(hermes, "m1", "--chat", "c2")["id"] == "in:2"


def test_text_of_users_cannot_control_the_terminal(hermes: Hermes) -> None:
    with gateway(hermes):
        ask(hermes, "hello", "m\x1b[31m1", "c\x1b]0;x\x07")
    done = hermes("gateway", "explain", "in:1")
    assert (done.returncode, "\x1b" in done.stdout) == (0, False)
