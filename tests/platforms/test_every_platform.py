"""One gateway process with every platform: set up as the guides say, killed in the middle, nothing lost or doubled."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Hermes
from tests.cli.gateway.running import configure, gateway
from tests.platforms.discord import server as discord
from tests.platforms.slack import server as slack
from tests.platforms.telegram import bot_api as telegram
from tests.platforms.whatsapp import meta as whatsapp
from tests.support.fetched import PATIENCE_S as INSTALL_S
from tests.support.modelserver import ModelServer
from tests.support.synapse import homeserver
from tests.support.waiting import wait_until

PATIENCE_S = 60.0
KEY = "key-of-ann-0123456789"

pytestmark = pytest.mark.timeout(INSTALL_S)


@dataclass
class Chat:
    """The chat of one user with the bot on a platform."""

    name: str
    say: Callable[[str], object]
    texts: Callable[[], list[str]]
    """What the bot has written, the oldest first."""


class Servers:
    """A server of each platform, and the commands that set the bots up."""

    def __init__(self, stack: ExitStack, hermes: Hermes, port: int) -> None:
        self._hermes = hermes
        self.chats = [
            self._telegram(stack),
            self._discord(stack),
            self._slack(stack),
            self._whatsapp(stack, port),
            self._matrix(),
            self._api(port),
        ]

    def _set_up(self, platform: str, lines: list[str], base_url: str, user: str, *more: str) -> None:
        options = ("--token-stdin", "--base-url", base_url, "--allow", user, *more)
        process = self._hermes.start("gateway", "setup", platform, *options, stdin=subprocess.PIPE)
        errors = process.communicate("".join(f"{each}\n" for each in lines).encode(), timeout=PATIENCE_S)[1]
        assert process.returncode == 0, errors

    def _telegram(self, stack: ExitStack) -> Chat:
        server = stack.enter_context(telegram.bot_api())
        self._set_up("telegram", [telegram.TOKEN], server.base_url, "7")
        return Chat("telegram", server.say, server.texts)

    def _discord(self, stack: ExitStack) -> Chat:
        server = discord.DiscordServer()
        stack.callback(server.close)
        self._set_up("discord", [discord.TOKEN], server.base_url, discord.ALICE)
        setting = "platforms.discord.extra.gateway_url"
        assert self._hermes("config", "set", setting, server.gateway_url).returncode == 0
        room = server.direct()
        return Chat("discord", lambda text: server.say(room, text), lambda: server.texts(room))

    def _slack(self, stack: ExitStack) -> Chat:
        server = stack.enter_context(slack.SlackServer().running())
        self._set_up("slack", [slack.TOKEN, slack.APP_TOKEN, ""], server.base_url, slack.ALICE)
        return Chat("slack", server.say, server.shown)

    def _whatsapp(self, stack: ExitStack, port: int) -> Chat:
        server = whatsapp.Meta()
        stack.callback(server.close)
        secrets = [whatsapp.TOKEN, whatsapp.SECRET, whatsapp.VERIFY]
        self._set_up("whatsapp", secrets, server.base_url, whatsapp.USER, "--phone-number-id", whatsapp.NUMBER)
        server.webhook = f"http://127.0.0.1:{port}/webhooks/whatsapp"

        def say(text: str) -> None:  # Meta repeats what is not acknowledged
            wait_until(lambda: server.say(text, f"wamid.{text}") == 200, "the webhook", PATIENCE_S)

        return Chat("whatsapp_cloud", say, lambda: server.texts)

    def _matrix(self) -> Chat:
        server = homeserver()
        alice, bot = server.user("alice"), server.user("bot")
        self._set_up("matrix", [bot.token], server.base_url, alice.user_id)
        room = alice.create_room(bot.user_id, is_direct=True)
        joined = f"/rooms/{room}/joined_members"

        def say(text: str) -> None:
            wait_until(lambda: bot.user_id in alice.call("GET", joined)["joined"], "the bot to join", PATIENCE_S)
            alice.say(room, text)

        return Chat("matrix", say, lambda: alice.texts_of(room, bot.user_id))

    def _api(self, port: int) -> Chat:
        found: list[str] = []

        def say(text: str) -> None:
            body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
            headers = {"Authorization": f"Bearer {KEY}", "X-Hermes-Session-Id": "chat"}
            request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body, headers)
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
                found.append(json.load(response)["choices"][0]["message"]["content"])

        return Chat("api_server", say, lambda: found)


@pytest.fixture
def port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def test_every_platform_talks_before_and_after_a_kill(tmp_path: Path, port: int, model: ModelServer) -> None:
    hermes = Hermes(tmp_path / "home")
    api = f"api_server: {{enabled: true, port: {port}, keys: {{ann: {KEY}}}}}\n"
    configure(hermes, f"{model.config}agent: {{auto_title: false}}\n{api}")
    with ExitStack() as stack:
        chats = Servers(stack, hermes, port).chats
        for number, word in enumerate(("one", "two"), 1):
            with gateway(hermes) as running:  # at its end the process is killed
                for chat in chats:
                    if chat.name != "api_server":
                        assert f"{chat.name} connected as " in running.output, running.output
                    chat.say(f"{word} please")
                for chat in chats:
                    wait_until(
                        lambda chat=chat, number=number: len(chat.texts()) >= number,  # type: ignore[misc]
                        f"the answer on {chat.name}",
                        PATIENCE_S,
                    )
                assert "Traceback" not in running.errors
        with gateway(hermes) as running:  # whatever was left is done by this one
            running.signal()
            assert running.wait() == 0
        for chat in chats:
            first_lines = [each.splitlines()[0] for each in chat.texts()]
            assert first_lines == ["You said: one please", "You said: two please"], chat.name
    items = hermes.json("sessions", "list", "--limit", "50")["items"]
    assert {each["source"]: each["message_count"] for each in items} == {chat.name: 4 for chat in chats}
