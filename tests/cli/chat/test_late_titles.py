"""A chat that is left while a model still writes its title."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.agent.models.selection import Models
from hermes.cli.chat import chat_loop
from hermes.cli.chat.chat_loop import Chat
from hermes.cli.chat.terminal.screen import Screen
from hermes.cli.chat.terminal.signals import Signals
from hermes_state import SessionDB
from tests.agent.talking import agent_at
from tests.cli.chat.stored import sessions
from tests.cli.conftest import TIMEOUT_S, Hermes
from tests.support.modelserver import ModelServer, Say
from tests.support.waiting import wait_until

QUESTION, FIRST_WORDS = "connect two containers", "Connect two containers"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model that answers at once and takes minutes for a title."""
    with ModelServer(Say("Use a bridge."), Say("Late title", before_s=300.0)) as server:
        yield server


def test_title_is_taken_from_the_first_words_when_a_chat_is_left_before_a_model_has_written_one(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_loop, "TITLE_LIMIT_S", 0.05)
    with SessionDB(tmp_path / "state.db") as store:
        agent = agent_at(server, store, tmp_path, auxiliary=None)
        chat = Chat(agent, Models(agent.config, {}), Screen(is_quiet=True), Signals())
        chat.send(QUESTION)
        wait_until(lambda: len(server.requests) == 2, "the request for a title")
        chat.end_session()
        row = store.get_session(chat.conversation.session_id)
    assert row is not None
    assert (row["title"], row["end_reason"]) == (FIRST_WORDS, "user_exit")


def test_ctrl_c_ends_the_wait_for_a_title_and_takes_it_from_the_first_words(
    hermes: Hermes, server: ModelServer
) -> None:
    hermes.home.mkdir()
    (hermes.home / "config.yaml").write_text(server.config)
    process = hermes.start("-q", QUESTION, stdout=subprocess.PIPE)
    wait_until(lambda: len(server.requests) == 2, "the request for a title")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=TIMEOUT_S)
    (row,) = sessions(hermes)
    assert (row["title"], row["end_reason"]) == (FIRST_WORDS, "user_exit")
    assert b"Traceback" not in err
