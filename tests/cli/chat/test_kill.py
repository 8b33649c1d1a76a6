"""`kill -9` during an answer: the text on the screen is in the store."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator

import pytest

from hermes.agent.history.projection import project
from hermes_state import SessionDB
from tests.cli.chat.stored import messages, sessions
from tests.cli.chat.terminal import CTRL_D, Terminal
from tests.cli.conftest import Hermes
from tests.support.modelserver import ModelServer, Say
from tests.support.plainsql import flaws
from tests.support.validators import flaws_of

WORDS = [f"word{number} " for number in range(84)]


class TestKill:
    @pytest.fixture
    def server(self, hermes: Hermes) -> Iterator[ModelServer]:
        with ModelServer(Say(pieces=WORDS, between_s=0.05)) as server:
            hermes.home.mkdir()
            (hermes.home / "config.yaml").write_text(server.config + "agent: {auto_title: false}\n")
            yield server

    def test_killed_chat_keeps_text_shown_a_second_before(self, hermes: Hermes, server: ModelServer) -> None:
        process = hermes.start("-q", "tell me", stdout=subprocess.PIPE)
        assert process.stdout is not None
        seen: list[tuple[float, bytes]] = []
        while sum(len(piece) for _, piece in seen) < len("".join(WORDS[:60])):
            piece = os.read(process.stdout.fileno(), 4096)
            assert piece, "it ended by itself"
            seen.append((time.monotonic(), piece))
        process.kill()
        killed = time.monotonic()
        process.communicate()
        shown = b"".join(piece for moment, piece in seen if moment <= killed - 1.0).decode().strip()
        assert len(shown.split()) > 20
        assert flaws(hermes.database) == []
        (session,) = sessions(hermes)
        asked, answer = messages(hermes, session["id"])
        assert (asked["role"], answer["role"], answer["finish_reason"]) == ("user", "assistant", "partial")
        assert answer["content"].startswith(shown)
        assert session["message_count"] == 2
        with SessionDB(hermes.database) as db:
            assert [hit["id"] for hit in db.search_messages("word5")] == [answer["id"]]

        with Terminal(hermes, "-c") as terminal:
            terminal.until_prompt()
            assert "[interrupted]" in terminal.text
            terminal.enter("go on").until("◆ You said: go on").until_prompt().type(CTRL_D)
            assert terminal.until_over() == 0
        assert flaws_of(server.requests[1].messages) == []
        assert "word5" in str(server.requests[1].messages)
        with SessionDB(hermes.database) as db:
            history = db.get_messages_as_conversation(session["id"])
        assert [row["role"] for row in history] == ["user", "assistant", "user", "assistant"]
        assert [each["role"] for each in project([{**row} for row in history])] == [
            "user",
            "assistant",
            "user",
            "assistant",
        ]
