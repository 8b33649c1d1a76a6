"""The adapter against an independent Slack: its Web API, and its signed events over HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from slack_sdk import WebClient

from hermes.gateway.engine.ports import Delivery, Inbound, NotSent
from hermes.platforms.base import Part
from hermes.platforms.base.media import MediaFile
from hermes.platforms.http.server import HttpServer
from hermes.platforms.slack.adapter import SlackAdapter
from hermes.platforms.slack.webhook import PATH
from hermes.platforms.testing import RecordingInbox
from hermes.platforms.testing.harness import eventually
from tests.gateway.reliability.nodes import NodeThread
from tests.gateway.reliability.world import World, world
from tests.platforms.slack.adapters import make_adapter
from tests.support.emulate import slack_emulator
from tests.support.fetched import PATIENCE_S
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(PATIENCE_S)

SECRET, BOT = "signing-secret", "UBOT1"
SEED: dict[str, Any] = {
    "signing_secret": SECRET,
    "team": {"name": "Work"},
    "users": [{"name": "alice", "real_name": "Alice"}, {"name": "bob", "real_name": "Bob"}],
    "channels": [{"name": "team"}],
    "oauth_apps": [
        {
            "client_id": "1.2",
            "client_secret": "x",
            "name": "Hermes",
            "redirect_uris": [],
            "app_id": "A1",
            "bot_id": "BBOT1",
            "bot_user_id": BOT,
            "bot_name": "hermes",
        }
    ],
    "tokens": [
        {"token": "xoxb-bot", "user_id": BOT, "bot_id": "BBOT1", "bot_user_id": BOT, "app_id": "A1"},
        {"token": "xoxp-alice", "user": "alice"},
        {"token": "xoxp-bob", "user": "bob"},
    ],
}


class Workspace:
    """The adapter with what it has received, and Slack as a user sees it."""

    def __init__(self, url: str, adapter: SlackAdapter, inbox: RecordingInbox) -> None:
        self.adapter, self.inbox = adapter, inbox
        self._url = url

    async def call(self, method: str, user: str = "alice", **arguments: Any) -> dict[str, Any]:
        """Let a user do something."""
        client = WebClient(f"xoxp-{user}", base_url=f"{self._url}/api/")
        response = await asyncio.to_thread(lambda: getattr(client, method)(**arguments))
        return dict(response.data)

    async def chat_with(self, *users: str) -> str:
        """Open a direct message of Alice with users."""
        return str((await self.call("conversations_open", users=list(users)))["channel"]["id"])

    async def team(self) -> str:
        """The channel."""
        found = (await self.call("conversations_list"))["channels"]
        (channel,) = [str(each["id"]) for each in found if each["name"] == "team"]
        await self.call("conversations_invite", channel=channel, users=BOT)
        return channel

    async def say(self, channel: str, text: str, **arguments: Any) -> str:
        """Let a user write a message; it is delivered when this returns."""
        return str((await self.call("chat_postMessage", channel=channel, text=text, **arguments))["ts"])

    async def texts(self, channel: str, thread: str) -> list[str]:
        """The texts of a thread."""
        found = await self.call("conversations_replies", channel=channel, ts=thread)
        return [each["text"] for each in found["messages"]]

    @property
    def last(self) -> Inbound:
        """The last message that the gateway got."""
        return self.inbox.accepted[-1]


@asynccontextmanager
async def workspace(tmp_path: Path, **extra: Any) -> AsyncIterator[Workspace]:
    """A workspace whose events reach the adapter."""
    http, inbox = HttpServer(), RecordingInbox()
    await http.start()
    emulator = slack_emulator(f"{http.url}{PATH}", SEED)
    url = await asyncio.to_thread(emulator.__enter__)
    try:
        settings = {"token": "xoxb-bot", "routes": http, "signing_secret": SECRET, **extra}
        adapter = make_adapter(tmp_path, f"{url}/api", **settings)
        await adapter.start(inbox)
        try:
            yield Workspace(url, adapter, inbox)
        finally:
            await adapter.stop()
    finally:
        emulator.__exit__(None, None, None)
        await http.stop()


def run(tmp_path: Path, test: Callable[[Workspace], Awaitable[None]], **extra: Any) -> None:
    async def with_workspace() -> None:
        async with workspace(tmp_path, **extra) as place:
            await test(place)

    asyncio.run(with_workspace())


def test_direct_messages_and_answers(tmp_path: Path) -> None:
    async def test(place: Workspace) -> None:
        channel = await place.chat_with(BOT)
        question = await place.say(channel, f"hello &amp; <@{BOT}>")
        source = place.last.source
        assert (place.last.text, source.chat_type, source.user_name) == ("hello &", "dm", "alice")
        assert (source.chat_id, source.thread_id, source.guild_id) == (channel, None, "T000000001")
        preview = await place.adapter.send(Delivery("k1", channel, "the **who", is_final=False, reply_to=question))
        final = Delivery("k1", channel, "the **whole** <!channel>", reply_to=question, answers=(question,))
        with pytest.raises(NotSent):
            await place.adapter.find(final)
        await place.adapter.edit(preview.message_ids[0], Part(final, final.text))
        found = await place.adapter.find(final)
        assert found is not None
        assert found.message_ids == preview.message_ids
        history = (await place.call("conversations_history", channel=channel))["messages"]
        assert history[0]["text"] == "the *whole* &lt;!channel&gt;"
        await place.adapter.delete(found.message_ids[0], final)
        assert len((await place.call("conversations_history", channel=channel))["messages"]) == 1
        assert place.inbox.calls == 1  # nothing of the bot, no edit and no deletion

    run(tmp_path, test)


def test_threads_of_channels_and_chats_of_several_people(tmp_path: Path) -> None:
    async def test(place: Workspace) -> None:
        channel = await place.team()
        await place.say(channel, "between people")
        root = await place.say(channel, f"<@{BOT}> a question")
        assert [place.last.source.chat_type, place.last.source.chat_name] == ["channel", "team"]
        assert place.last.source.thread_id == root
        await place.adapter.send(Delivery("k1", channel, "an answer", thread_id=root, chat_type="channel"))
        await place.say(channel, "a reply", thread_ts=root, user="bob")
        assert await place.texts(channel, root) == [f"<@{BOT}> a question", "an answer", "a reply"]
        several = await place.chat_with(BOT, (await place.call("auth_test", user="bob"))["user_id"])
        await place.say(several, "not for the bot")
        await place.say(several, f"<@{BOT}> for the bot")
        assert place.inbox.texts == ["a question", "a reply", "for the bot"]
        assert place.last.source.chat_type == "group"

    run(tmp_path, test)


def test_thread_of_an_earlier_process_is_known_by_its_messages(tmp_path: Path) -> None:
    async def test(place: Workspace) -> None:
        channel = await place.team()
        root = await place.say(channel, f"<@{BOT}> a question")
        await place.adapter.send(Delivery("k1", channel, "an answer", thread_id=root))
        await place.adapter.stop()
        restarted = make_adapter(
            tmp_path, f"{place._url}/api", token="xoxb-bot", routes=place.adapter._routes, signing_secret=SECRET
        )
        await restarted.start(place.inbox)
        await place.say(channel, "a reply", thread_ts=root)
        await restarted.stop()
        assert place.inbox.texts == ["a question", "a reply"]

    run(tmp_path, test)


def test_files_go_both_ways(tmp_path: Path) -> None:
    picture = tmp_path / "b.png"
    picture.write_bytes(b"\x89picture")

    async def test(place: Workspace) -> None:
        channel = await place.chat_with(BOT)
        await place.call(
            "files_upload_v2", channel=channel, filename="a.txt", content="some data", initial_comment="look"
        )
        await eventually(lambda: bool(place.inbox.accepted), "the message with the file arrives")
        (media,) = place.last.media
        assert (place.last.text, Path(media["path"]).read_bytes()) == ("look", b"some data")
        file_id = await place.adapter.post_file(
            Part(Delivery("k1", channel, ""), ""), MediaFile(picture, "image", "a **picture**")
        )
        found = (await place.call("files_info", file=file_id))["file"]
        assert (found["name"], found["size"], found["mimetype"]) == ("b.png", 8, "image/png")
        history = (await place.call("conversations_history", channel=channel))["messages"]
        assert history[0]["text"] == "a *picture*"

    run(tmp_path, test)


def test_long_answer_is_complete_in_its_thread(tmp_path: Path) -> None:
    lines = [f"line {number} <b> & more" for number in range(500)]
    text = "\n".join(["```python", *lines, "```"])

    async def test(place: Workspace) -> None:
        channel = await place.team()
        root = await place.say(channel, f"<@{BOT}> a question")
        delivery = Delivery("k1", channel, text, thread_id=root, reply_to=root)
        receipt = await place.adapter.send(delivery)
        _, *parts = await place.texts(channel, root)
        assert len(parts) == len(receipt.message_ids) > 3
        for part in parts:
            assert part.startswith("```\n")
            assert part.endswith("\n```")
        shown = [line for part in parts for line in part.splitlines()[1:-1]]
        assert shown == [line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for line in lines]
        found = await place.adapter.find(delivery)
        assert found is not None
        assert found.message_ids == receipt.message_ids

    run(tmp_path, test)


class Gateway:
    """A whole gateway with its HTTP server, which Slack calls at the same address after a restart."""

    def __init__(self, place: World, port: int, url: str) -> None:
        self._place, self._port, self._url = place, port, url
        self._node: NodeThread
        self._server: HttpServer

    def start(self) -> None:
        """Start it, and wait until it is connected."""
        server = self._server = HttpServer(port=self._port)
        home = self._place.home()

        def adapters(_: object) -> list[SlackAdapter]:
            return [make_adapter(home, f"{self._url}/api", token="xoxb-bot", routes=server, signing_secret=SECRET)]

        node = self._node = self._place.thread(adapters=adapters)
        node.call(server.start)
        wait_until(lambda: node.runner.connectors.states.get("slack") == "connected", "the bot to be connected")

    def stop(self) -> None:
        """Drain and stop it."""
        self._node.call(self._server.stop)
        self._node.stop()


def test_conversation_continues_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = int(listener.getsockname()[1])
    with world() as place, slack_emulator(f"http://127.0.0.1:{port}{PATH}", SEED) as url:
        monkeypatch.setenv("HERMES_HOME", str(place.home()))
        alice = WebClient("xoxp-alice", base_url=f"{url}/api/")
        channel = str(alice.conversations_open(users=[BOT])["channel"]["id"])

        def texts() -> list[str]:
            found: list[Any] = alice.conversations_history(channel=channel)["messages"]
            return [str(each["text"]) for each in found][::-1]

        gateway = Gateway(place, port, url)
        gateway.start()
        first = str(alice.chat_postMessage(channel=channel, text="one please")["ts"])
        wait_until(lambda: texts() == ["one please", "answer to one"], "the first answer", PATIENCE_S)
        gateway.stop()
        gateway.start()
        second = str(alice.chat_postMessage(channel=channel, text="two please")["ts"])
        wait_until(lambda: texts()[2:] == ["two please", "answer to two"], "the second answer", PATIENCE_S)
        assert len(texts()) == 4
        assert place.lane_of(first) == place.lane_of(second) == f"agent:main:slack:dm:{channel}"
        answers = [text for role, text in place.transcript(second) if role == "assistant"]
        assert answers == ["answer to one", "answer to two"]
        gateway.stop()
