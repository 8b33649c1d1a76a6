"""Slack from end to end: a workspace with socket mode, a real gateway, a real store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.reliability.model import PATIENCE_S
from tests.gateway.reliability.nodes import NodeThread
from tests.gateway.reliability.world import World, world
from tests.platforms.slack.adapters import make_adapter
from tests.platforms.slack.server import ALICE, BOB, BOT, CHANNEL, DIRECT, SlackServer
from tests.support.waiting import wait_until


class Slack:
    """A world with a workspace."""

    def __init__(self, place: World, server: SlackServer) -> None:
        self.world, self.server = place, server

    def gateway(self, node: str = "north", **extra: Any) -> NodeThread:
        """Start a gateway with the bot, and wait until it is connected."""
        home, before = self.world.home(), self.server.connections

        def adapters(_: object) -> list[Any]:
            return [make_adapter(home, self.server.base_url, **extra)]

        started = self.world.thread(node, adapters=adapters)
        wait_until(lambda: self.server.connections > before, "the bot to connect", PATIENCE_S)
        return started

    def wait_for(self, *texts: str, channel: str = DIRECT) -> None:
        """Wait until the bot has written these texts, and no others."""
        wait_until(lambda: len(self.server.shown(channel)) >= len(texts), f"{texts} in the chat", PATIENCE_S)
        assert self.server.shown(channel) == list(texts)


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch, server: SlackServer) -> Iterator[Slack]:
    with world() as place:
        monkeypatch.setenv("HERMES_HOME", str(place.home()))
        yield Slack(place, server)


def answer(word: str) -> str:
    return f"answer to {word}"


def test_conversation_continues_after_a_restart_with_what_was_written_meanwhile(slack: Slack) -> None:
    node = slack.gateway()
    first = slack.server.say("one please")
    slack.wait_for(answer("one"))
    node.stop()
    second = slack.server.say("two please")
    slack.gateway()
    slack.wait_for(answer("one"), answer("two"))
    slack.server.wait_for_ack("Ev000001", f"Ev{second[-6:]}")
    assert slack.world.lane_of(first) == slack.world.lane_of(second) == f"agent:main:slack:dm:{DIRECT}"
    transcript = slack.world.transcript(second)
    assert [text for role, text in transcript if role == "assistant"] == [answer("one"), answer("two")]


def test_messages_that_are_delivered_again_around_a_restart_are_answered_once(slack: Slack) -> None:
    node = slack.gateway()
    ts = slack.server.say("one please")
    slack.wait_for(answer("one"))
    node.stop()
    slack.server.acknowledged.clear()  # as if the acknowledgement had been lost
    slack.gateway()
    slack.server.wait_for_ack(f"Ev{ts[-6:]}")
    slack.server.say("two please")
    slack.wait_for(answer("one"), answer("two"))


@pytest.mark.parametrize("failure", ["lost", "html", 502, 503, "service_unavailable"])
def test_answer_whose_response_is_lost_or_refused_is_shown_once(slack: Slack, failure: Any) -> None:
    slack.server.fail("chat.postMessage", failure)
    slack.gateway()
    ts = slack.server.say("deploy please")
    slack.wait_for(answer("deploy"))
    wait_until(lambda: slack.world.replies(ts)[0]["state"] == "sent", "the receipt to be stored", PATIENCE_S)
    (reply,) = slack.world.replies(ts)
    assert (reply["receipt"] or {})["message_ids"] == [slack.server.of_bot()[0]["ts"]]


def test_kill_between_send_and_receipt_leaves_one_message(slack: Slack) -> None:
    place = slack.world.home(gateway={"lease_seconds": 2.0})
    ts = slack.server.say("deploy please")
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.platforms.slack.dying", str(place), slack.server.base_url],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parents[3],
        )
        try:
            if slack.server.shown():  # the second process finds the message, and has nothing to send
                wait_until(lambda: slack.world.replies(ts)[0]["state"] == "sent", "the receipt", PATIENCE_S)
            else:
                assert process.wait(PATIENCE_S) == -9
                for row in slack.world.replies(ts):
                    slack.world.store.outbox.end_leases(str(row["holder"]))
        finally:
            process.kill()
            process.wait()
    assert slack.server.shown() == [answer("deploy")]
    (reply,) = slack.world.replies(ts)
    assert (reply["receipt"] or {})["message_ids"] == [slack.server.of_bot()[0]["ts"]]


def test_two_gateways_share_the_events_of_a_workspace(slack: Slack) -> None:
    nodes = [slack.gateway("north"), slack.gateway("south")]
    for word in ("one", "two", "three", "four"):
        slack.server.say(f"{word} please")
        wait_until(lambda word=word: answer(word) in slack.server.shown(), f"{word}", PATIENCE_S)  # type: ignore[misc]
        slack.server.rotate()
    slack.wait_for(answer("one"), answer("two"), answer("three"), answer("four"))
    assert sum(node.runner.parts.counters["messages_accepted"] > 0 for node in nodes) == 2


def test_conversation_of_a_channel_is_in_a_thread_that_its_members_share(slack: Slack) -> None:
    slack.gateway()
    root = slack.server.say(f"<@{BOT}> hello\none please", CHANNEL)
    slack.wait_for(answer("one"), channel=CHANNEL)
    inside = slack.server.say("I agree\ntwo please", CHANNEL, BOB, thread_ts=root)
    slack.wait_for(answer("one"), answer("two"), channel=CHANNEL)
    assert {each["thread_ts"] for each in slack.server.of_bot(CHANNEL)} == {root}
    assert slack.world.lane_of(root) == slack.world.lane_of(inside) == f"agent:main:slack:channel:{CHANNEL}:{root}"
    users = [text for role, text in slack.world.transcript(inside) if role == "user"]
    assert users[1].startswith("[Bob Builder] ")


def test_members_of_a_channel_without_threads_have_sessions_of_their_own(slack: Slack) -> None:
    slack.gateway(reply_in_thread=False, require_mention=False)
    first = slack.server.say("one please", CHANNEL)
    slack.wait_for(answer("one"), channel=CHANNEL)
    second = slack.server.say("two please", CHANNEL, BOB)
    slack.wait_for(answer("one"), answer("two"), channel=CHANNEL)
    assert [each.get("thread_ts") for each in slack.server.of_bot(CHANNEL)] == [None, None]
    lane = f"agent:main:slack:channel:{CHANNEL}"
    assert [slack.world.lane_of(each) for each in (first, second)] == [f"{lane}:{ALICE}", f"{lane}:{BOB}"]


def test_file_reaches_the_conversation(slack: Slack) -> None:
    slack.server.files["a.txt"] = ("text/plain", b"some data")
    slack.gateway()
    url = f"{slack.server.origin}/files/a.txt"
    ts = slack.server.say("file please", files=[{"name": "a.txt", "mimetype": "text/plain", "url_private": url}])
    slack.wait_for(answer("file"))
    (question,) = [text for role, text in slack.world.transcript(ts) if role == "user"]
    stored = list((slack.world.home() / "media").rglob("*.txt"))
    assert [each.read_bytes() for each in stored] == [b"some data"]
    assert question == "file please\n[Attached file: a.txt, text/plain, 9 bytes]"
