"""The way of the guide: set up the bot, run the gateway, invite it, and let another user in."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Hermes
from tests.cli.gateway.running import configure, gateway
from tests.support.fetched import PATIENCE_S as INSTALL_S
from tests.support.modelserver import ModelServer
from tests.support.synapse import Account, homeserver
from tests.support.waiting import wait_until

PATIENCE_S = 60.0

pytestmark = pytest.mark.timeout(INSTALL_S)


def set_up(hermes: Hermes, bot: Account, *allowed: str) -> str:
    """Run the set-up as a script does, and return what it says."""
    options = [part for each in allowed for part in ("--allow", each)]
    command = ("gateway", "setup", "matrix", "--token-stdin", "--base-url", bot.server.base_url, *options)
    process = hermes.start(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, errors = process.communicate(f"{bot.token}\n".encode(), timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    return out.decode()


def talk(user: Account, bot: Account, text: str, room: str = "") -> tuple[str, str]:
    """Say something in a direct chat, and return the chat and the answer."""
    room = room or user.create_room(bot.user_id, is_direct=True)
    joined = f"/rooms/{room}/joined_members"
    wait_until(lambda: bot.user_id in user.call("GET", joined)["joined"], "the bot to join", PATIENCE_S)
    known = len(user.texts_of(room, bot.user_id))
    user.say(room, text)
    wait_until(lambda: len(user.texts_of(room, bot.user_id)) > known, "an answer", PATIENCE_S)
    return room, user.texts_of(room, bot.user_id)[-1]


def test_bot_is_set_up_invited_and_answers_also_after_a_restart(tmp_path: Path) -> None:
    hermes, server = Hermes(tmp_path / "home"), homeserver()
    alice, eve, bot = (server.user(name) for name in ("alice", "eve", "bot"))
    with ModelServer() as model:
        configure(hermes, f"{model.config}agent: {{auto_title: false}}\n")
        assert set_up(hermes, bot, alice.user_id) == f"matrix is set up as {bot.user_id}.\n"
        assert bot.token not in (hermes.home / "config.yaml").read_text()
        with gateway(hermes) as running:
            assert f"matrix connected as {bot.user_id} (https://matrix.to/#/{bot.user_id})" in running.output
            room, said = talk(alice, bot, "hello there")
            assert "hello there" in said
            chat, said = talk(eve, bot, "let me in")
            code = re.search(r"pairing code is (\w+)", said)
            assert code is not None
            assert hermes("gateway", "pairing", "approve", code[1]).returncode == 0
        with gateway(hermes) as running:
            assert "again" in talk(alice, bot, "once again", room)[1]
            assert "thank you" in talk(eve, bot, "thank you", chat)[1]
            running.signal()
            assert running.wait() == 0
            assert "Traceback" not in running.errors
    (session, *others) = hermes.json("sessions", "list", "--source", "matrix")["items"]
    assert len(others) == 1
    assert {session["message_count"], others[0]["message_count"]} == {4, 2}
