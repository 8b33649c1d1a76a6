"""Discord from end to end: a server of its protocols, a real gateway, a real store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.platforms.discord.adapter import DiscordAdapter
from tests.gateway.reliability.nodes import NodeThread
from tests.gateway.reliability.world import World, world
from tests.platforms.discord.bots import make_adapter
from tests.platforms.discord.server import DiscordServer
from tests.support.waiting import wait_until

PATIENCE_S = 60.0


class Discord:
    """A world with a Discord server."""

    def __init__(self, place: World, server: DiscordServer) -> None:
        self.world, self.server = place, server
        self.adapter: DiscordAdapter

    def gateway(self, node: str = "north", **extra: Any) -> NodeThread:
        """Start a gateway with the bot, and wait until it is connected."""
        home = self.world.home(node, sessiondb={"path": str(self.world.home() / "state.db")})

        def adapters(_: object) -> list[DiscordAdapter]:
            self.adapter = make_adapter(home, self.server, **extra)
            return [self.adapter]

        started = self.world.thread(node, home=home, adapters=adapters)
        wait_until(lambda: self.adapter.status == "connected", "the bot to connect", PATIENCE_S)
        return started

    def wait_for(self, channel: str, *texts: str) -> None:
        """Wait until the bot has written these texts, and no others."""
        wait_until(lambda: len(self.server.texts(channel)) >= len(texts), f"{texts} in {channel}", PATIENCE_S)
        assert self.server.texts(channel) == list(texts)


@pytest.fixture
def discord(monkeypatch: pytest.MonkeyPatch, server: DiscordServer) -> Iterator[Discord]:
    with world() as place:
        monkeypatch.setenv("HERMES_HOME", str(place.home()))
        yield Discord(place, server)


def answer(word: str) -> str:
    return f"answer to {word}"


def test_conversation_continues_after_a_restart_with_what_was_written_meanwhile(discord: Discord) -> None:
    server, room = discord.server, discord.server.direct()
    node = discord.gateway()
    first = server.say(room, "one please")
    discord.wait_for(room, answer("one"))
    node.stop()
    second = server.say(room, "two please", is_live=False)
    discord.gateway()
    discord.wait_for(room, answer("one"), answer("two"))
    server.deliver(first)
    server.deliver(second)
    third = server.say(room, "three please")
    discord.wait_for(room, answer("one"), answer("two"), answer("three"))
    assert len({discord.world.lane_of(each) for each in (first, second, third)}) == 1
    transcript = discord.world.transcript(third)
    assert [text for role, text in transcript if role == "assistant"] == [answer(e) for e in ("one", "two", "three")]
    asked = [text for role, text in transcript if role == "user"]
    assert [sum(f"{each} please" in text for text in asked) for each in ("one", "two", "three")] == [1, 1, 1]


def test_thread_channel_and_direct_chat_have_sessions_of_their_own(discord: Discord) -> None:
    server, room = discord.server, discord.server.direct()
    discord.gateway()
    server.add_thread("21", "Plans", "20")
    messages = [server.mention("20", "channel please"), server.mention("21", "look:\nthread please")]
    messages.append(server.say(room, "private please"))
    for place, word in (("20", "channel"), ("21", "thread"), (room, "private")):
        discord.wait_for(place, answer(word))
    assert [discord.world.lane_of(each) for each in messages] == [
        "agent:main:discord:group:20:7",
        "agent:main:discord:group:20:21",
        "agent:main:discord:dm:37",
    ]


def test_only_one_node_is_connected_and_another_takes_over_with_what_arrived_in_between(discord: Discord) -> None:
    server, room = discord.server, discord.server.direct()
    node = discord.gateway()
    server.mention("20", "one please")
    discord.wait_for("20", answer("one"))
    home = discord.world.home("south", sessiondb={"path": str(discord.world.home() / "state.db")})
    waiting = make_adapter(home, server)
    discord.world.thread("south", home=home, adapters=lambda _: [waiting])
    assert (len(server.identified), server.connections, waiting.status) == (1, 1, "connecting")
    server.accepts = False
    node.stop()
    server.mention("20", "two please", is_live=False)
    server.accepts = True
    discord.wait_for("20", answer("one"), answer("two"))
    server.say(room, "three please")
    discord.wait_for(room, answer("three"))


def test_kill_between_send_and_receipt_leaves_one_message(discord: Discord) -> None:
    server, room = discord.server, discord.server.direct()
    discord.gateway("home").stop()  # the first start, after which nothing is history any more
    message = server.mention("20", "deploy please", is_live=False)
    arguments = (str(discord.world.home()), server.base_url, server.gateway_url)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.platforms.discord.bots", *arguments],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[3],
    )
    try:
        assert process.wait(PATIENCE_S) == -9
    finally:
        process.kill()
        process.wait()
    for row in discord.world.replies(message):
        discord.world.store.outbox.end_leases(str(row["holder"]))
    server._nonces.clear()  # Discord remembers them for minutes only
    assert discord.world.replies(message)[0]["state"] != "sent"
    discord.gateway("home")
    wait_until(lambda: discord.world.replies(message)[0]["state"] == "sent", "the receipt to be stored", PATIENCE_S)
    discord.wait_for("20", answer("deploy"))
    (reply,) = discord.world.replies(message)
    (shown,) = [each["id"] for each in server.messages.values() if each["content"] == answer("deploy")]
    assert (reply["receipt"] or {})["message_ids"] == [shown]
    assert server.texts(room) == []
