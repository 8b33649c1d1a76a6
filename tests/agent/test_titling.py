"""Automatic titles: short, set once, and never instead of the user's title."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.agent import Agent
from hermes.agent.auto_title import MAX_CHARACTERS, clean_title, title_from_text
from hermes.agent.conversation import Conversation
from hermes.agent.models.offline.model import OfflineModel
from hermes.state.owner import EVERYBODY
from hermes.state.provider import SessionDBProvider
from tests.agent.asking import endpoint
from tests.agent.talking import CONFIG, agent_at, agent_with
from tests.support.conversations import session_of
from tests.support.modelserver import Fail, ModelServer, Received, Say
from tests.support.waiting import wait_until


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("Docker networks explained", "Docker networks explained"),
        ('"Docker networks."', "Docker networks"),
        ("**Title: Docker networks**", "Docker networks"),
        ("title : Docker networks!", "Docker networks"),
        ("# Docker networks\n\nThis title tells ...", "Docker networks"),
        ("<think>they want docker</think>\nDocker networks", "Docker networks"),
        ("  Docker \t networks …", "Docker networks"),
        ("「Docker网络」", "Docker网络"),
        ("Is it C++?", "Is it C++"),
        ("word " * 40, ("word " * 16).strip()),
        ("x" * 200, "x" * MAX_CHARACTERS),
        ("", None),
        ('"."', None),
        ("<think>never ends", None),
    ],
)
def test_title_of_a_model_is_cleaned(written: str, title: str | None) -> None:
    assert clean_title(written) == title


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("How do I set up a Docker network for two containers?", "Set up a Docker network for two"),
        ("Can you tell me what the best way is to use it?", "Best way is to use it"),
        ("hi", None),
        ("Hello! Thanks.", None),
        ("Hello!\nFix the login page", "Fix the login page"),
        ("please look at https://example.org/a?b=c and fix it", "Please look at and fix it"),
        ("```python\nprint(1)\n```\nWhy does this fail?", "Why does this fail"),
        ("部署到服务器", "部署到服务器"),
        ("x" * 300, "X" + "x" * (MAX_CHARACTERS - 1)),
        ("", None),
    ],
)
def test_title_without_a_model_uses_the_first_meaningful_words(message: str, title: str | None) -> None:
    assert title_from_text(message) == title


@pytest.fixture
def offline(store: SessionDBProvider, home: Path) -> Agent:
    return agent_with(OfflineModel(), store, home)


class TestOffline:
    def test_title_is_set_after_the_first_exchange(self, offline: Agent) -> None:
        conversation = Conversation.start(offline, asker=EVERYBODY)
        conversation.say("Docker networks between two hosts")
        assert offline.settle(20)
        assert conversation.title == "Docker networks between two hosts"

    def test_taken_title_gets_a_number(self, offline: Agent) -> None:
        for title in ("Docker networks", "Docker networks (2)"):
            conversation = Conversation.start(offline, asker=EVERYBODY)
            conversation.say("Docker networks")
            assert offline.settle(20)
            assert conversation.title == title

    def test_greeting_gets_no_title(self, offline: Agent) -> None:
        conversation = Conversation.start(offline, asker=EVERYBODY)
        conversation.say("hello")
        assert offline.settle(20)
        assert conversation.title is None
        conversation.say("Docker networks")
        assert offline.settle(20)
        assert conversation.title == "Docker networks"

    def test_title_is_not_set_late(self, offline: Agent) -> None:
        conversation = Conversation.start(offline, asker=EVERYBODY)
        for text in ("hello", "hi", "Docker networks"):
            conversation.say(text)
        assert offline.settle(20)
        assert conversation.title is None

    def test_given_title_is_kept(self, offline: Agent) -> None:
        conversation = Conversation.start(offline, title="Mine", asker=EVERYBODY)
        conversation.say("Docker networks")
        assert offline.settle(20)
        assert conversation.title == "Mine"

    def test_automatic_titles_can_be_disabled(self, store: SessionDBProvider, home: Path) -> None:
        config = replace(CONFIG, agent=replace(CONFIG.agent, auto_title=False))
        agent = agent_with(OfflineModel(), store, home, config)
        conversation = Conversation.start(agent, asker=EVERYBODY)
        conversation.say("Docker networks")
        assert agent.settle(20)
        assert conversation.title is None


class TestByTheMainModel:
    def test_main_model_writes_the_title_without_an_auxiliary_one(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("Use a bridge."), Say('"Docker bridges."')) as server:
            agent = agent_at(server, store, home, auxiliary=None)
            conversation = Conversation.start(agent, asker=EVERYBODY)
            conversation.say("How do I connect containers?")
            assert agent.settle(20)
            assert "How do I connect containers?" in server.requests[1].last_text
        assert conversation.title == "Docker bridges"
        assert session_of(store, conversation.session_id)["api_call_count"] == 2

    def test_switched_model_writes_the_title(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server, ModelServer(Say("Use a bridge."), Say("Docker bridges")) as other:
            agent = agent_at(server, store, home, auxiliary=None)
            conversation = Conversation.start(agent, asker=EVERYBODY)
            conversation.use(endpoint(other))
            conversation.say("How do I connect containers?")
            assert agent.settle(20)
            assert server.requests == []
        assert conversation.title == "Docker bridges"


class TestSessionThatIsLeft:
    """A session without an answer is titled by its first words when the chat is left."""

    @pytest.mark.parametrize(("message", "title"), [("connect two containers", "Connect two containers"), ("hi", "Hi")])
    def test_session_left_after_a_failed_turn_gets_a_title(
        self, store: SessionDBProvider, home: Path, message: str, title: str
    ) -> None:
        with ModelServer(Fail(400)) as server:
            conversation = Conversation.start(agent_at(server, store, home, auxiliary=None), asker=EVERYBODY)
            assert conversation.say(message).status == "failed"
            conversation.end("user_exit")
        assert conversation.title == title
        assert [row["content"] for row in conversation.history] == [message]

    def test_session_left_after_an_answer_waits_for_the_model(self, offline: Agent) -> None:
        conversation = Conversation.start(offline, asker=EVERYBODY)
        conversation.say("hello")
        conversation.end("user_exit")
        assert offline.settle(20)
        assert conversation.title is None

    def test_session_left_gets_no_title_if_disabled(self, store: SessionDBProvider, home: Path) -> None:
        config = replace(CONFIG, agent=replace(CONFIG.agent, auto_title=False))
        with ModelServer(Fail(400)) as server:
            conversation = Conversation.start(agent_at(server, store, home, config, auxiliary=None), asker=EVERYBODY)
            conversation.say("connect two containers")
            conversation.end("user_exit")
        assert conversation.title is None


class TestByTheAuxiliaryModel:
    def test_greeting_is_titled_after_the_next_exchange(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("Hello!"), Say("Use a bridge.")) as server, ModelServer(Say("Docker bridges")) as fast:
            agent = agent_at(server, store, home, auxiliary=endpoint(fast))
            conversation = Conversation.start(agent, asker=EVERYBODY)
            conversation.say("hi")
            assert agent.settle(20)
            assert (conversation.title, fast.requests) == (None, [])
            conversation.say("How do I connect containers?")
            assert agent.settle(20)
        assert conversation.title == "Docker bridges"

    def test_title_by_the_auxiliary_model_is_booked(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("Use a bridge.")) as server, ModelServer(Say('"Docker bridges."')) as fast:
            agent = agent_at(server, store, home, auxiliary=endpoint(fast))
            conversation = Conversation.start(agent, asker=EVERYBODY)
            conversation.say("How do I connect containers?")
            assert agent.settle(20)
            asked = fast.requests[0].last_text
        assert conversation.title == "Docker bridges"
        assert "How do I connect containers?" in asked
        assert "Use a bridge." in asked
        assert session_of(store, conversation.session_id)["api_call_count"] == 2

    def test_title_does_not_delay_the_conversation(self, store: SessionDBProvider, home: Path) -> None:
        go_on = threading.Event()

        def slowly(_: Received) -> Say:
            assert go_on.wait(20)
            return Say("Late title")

        with ModelServer() as server, ModelServer(slowly) as fast:
            agent = agent_at(server, store, home, auxiliary=endpoint(fast))
            conversation = Conversation.start(agent, asker=EVERYBODY)
            assert conversation.say("connect containers").status == "done"
            assert not agent.settle(0)
            go_on.set()
            assert agent.settle(20)
        assert conversation.title == "Late title"

    def test_title_never_replaces_one_set_by_the_user_in_the_meantime(
        self, store: SessionDBProvider, home: Path
    ) -> None:
        asked, go_on = threading.Event(), threading.Event()

        def slowly(_: Received) -> Say:
            asked.set()
            assert go_on.wait(20)
            return Say("Late title")

        with ModelServer() as server, ModelServer(slowly) as fast:
            agent = agent_at(server, store, home, auxiliary=endpoint(fast))
            conversation = Conversation.start(agent, asker=EVERYBODY)
            conversation.say("connect containers")
            assert asked.wait(20)
            conversation.set_title("Mine")
            go_on.set()
            assert agent.settle(20)
        assert conversation.title == "Mine"

    def test_failed_title_falls_back_to_the_first_words(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server, ModelServer(Fail(401)) as fast:
            agent = agent_at(server, store, home, auxiliary=endpoint(fast))
            conversation = Conversation.start(agent, asker=EVERYBODY)
            conversation.say("connect two containers")
            assert agent.settle(20)
        assert conversation.title == "Connect two containers"

    def test_title_has_a_time_limit(self, store: SessionDBProvider, home: Path) -> None:
        config = replace(CONFIG, auxiliary=replace(CONFIG.auxiliary, title_timeout_s=0.05))
        with ModelServer() as server, ModelServer(Say("Late", before_s=20)) as fast:
            agent = agent_at(server, store, home, config, auxiliary=endpoint(fast))
            conversation = Conversation.start(agent, asker=EVERYBODY)
            conversation.say("connect two containers")
            assert agent.settle(20)
            assert fast.requests[0].hung_up.wait(20)
        assert conversation.title == "Connect two containers"

    @pytest.mark.parametrize("step", [Fail(400), Say("One two", cut_after=1)])
    def test_failed_turn_requests_no_title(self, store: SessionDBProvider, home: Path, step: Fail | Say) -> None:
        with ModelServer(step) as server, ModelServer() as fast:
            agent = agent_at(server, store, home, auxiliary=endpoint(fast))
            conversation = Conversation.start(agent, asker=EVERYBODY)
            assert conversation.say("connect two containers").status == "failed"
            assert agent.settle(20)
            assert fast.requests == []
        assert conversation.title is None

    @pytest.mark.parametrize("step", [Fail(400), Say("One two", cut_after=1)])
    def test_session_with_a_cut_answer_is_titled_by_its_first_words(
        self, store: SessionDBProvider, home: Path, step: Fail | Say
    ) -> None:
        with ModelServer(step) as server:
            conversation = Conversation.start(agent_at(server, store, home, auxiliary=None), asker=EVERYBODY)
            assert conversation.say("connect two containers").status == "failed"
            conversation.end("user_exit")
        assert conversation.title == "Connect two containers"


def test_number_of_parallel_titles_is_limited(store: SessionDBProvider, home: Path) -> None:
    lock, running, most, go_on = threading.Lock(), [0], [0], threading.Event()

    def slowly(_: Received) -> Say:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        assert go_on.wait(20)
        with lock:
            running[0] -= 1
        return Say("A title")

    with ModelServer() as server, ModelServer(otherwise=slowly) as fast:
        agent = agent_at(server, store, home, auxiliary=endpoint(fast))
        for _ in range(6):
            Conversation.start(agent, asker=EVERYBODY).say("connect two containers")
        wait_until(lambda: len(fast.requests) == 2, "two titles are asked for")
        go_on.set()
        assert agent.settle(20)
        assert len(fast.requests) == 6
    assert most[0] == 2


@pytest.mark.parametrize("written", ["Docker #2", "Docker #17.", '"Docker #3"'])
def test_title_of_a_model_joins_no_lineage(written: str) -> None:
    title = clean_title(written)
    assert title is not None
    assert title.startswith("Docker ")
    assert " #" not in title
