"""One object knows which session a conversation is in; the conversation, its turns and records ask it."""

from __future__ import annotations

import ast
from pathlib import Path

from hermes.agent.conversation import Conversation
from hermes.agent.models.model import Cancellation
from hermes.agent.models.offline.model import OfflineModel
from hermes.state.owner import EVERYBODY
from hermes.state.provider import SessionDBProvider
from tests.agent.asking import choice_of, endpoint
from tests.agent.talking import RecordingListener, agent_at, agent_with
from tests.support.conversations import contents
from tests.support.modelserver import ModelServer, Say

AGENT = Path(__file__).parents[2] / "src" / "hermes" / "agent"


class Stopper(RecordingListener):
    """Cancels the turn at its first notice."""

    def __init__(self) -> None:
        super().__init__()
        self.cancellation = Cancellation()

    def notice(self, text: str) -> None:
        super().notice(text)
        self.cancellation.cancel()


def test_only_the_open_session_stores_the_session_id() -> None:
    owners = {
        f"{file.stem}.{owner.name}"
        for file in AGENT.rglob("*.py")
        for owner in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(owner, ast.ClassDef)
        for node in ast.walk(owner)
        if isinstance(node, ast.Attribute) and node.attr == "session_id" and isinstance(node.ctx, ast.Store)
    }
    assert owners == {"open_session.OpenSession"}


def test_compression_elsewhere_during_a_turn_moves_everything_at_once(store: SessionDBProvider, home: Path) -> None:
    agent = agent_with(OfflineModel(), store, home)
    conversation = Conversation.start(agent, asker=EVERYBODY)
    conversation.say("!say one")
    root = conversation.session_id
    found: list[object] = []

    def compress_elsewhere(_: str) -> None:
        if not found:
            rows = store.get_messages(root)
            store.compress_session(root, "child", "a summary", head_upto=None, tail_from=rows[-1]["id"])
            found.append(rows)

    outcome = conversation.say("!say two", RecordingListener(on_text=compress_elsewhere))
    assert outcome.session_id == conversation.session_id == conversation.session.session_id == "child"
    assert contents(conversation.history)[-2:] == ["!say two", "two"]


def test_stop_after_an_automatic_compression_is_stored_in_the_new_session_only(
    store: SessionDBProvider, home: Path
) -> None:
    with ModelServer(Say("Short.")) as server:
        agent = agent_at(server, store, home)
        conversation, stopper = Conversation.start(agent, asker=EVERYBODY), Stopper()
        conversation.use(OfflineModel())
        for number in range(6):
            conversation.say(f"!say {number} {'word ' * 80}")
        root = conversation.session_id
        conversation.use(endpoint(server, choice=choice_of(server, context_tokens=1_000)))
        outcome = conversation.say("on", stopper, stopper.cancellation)
    assert outcome.status == "interrupted"
    assert outcome.session_id == conversation.session_id == store.get_compression_tip(root) != root
    ends = {each: [row["finish_reason"] for row in store.get_messages(each)] for each in (root, outcome.session_id)}
    assert [each.count("interrupted") for each in ends.values()] == [0, 1]
