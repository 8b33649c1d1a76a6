"""Titles that come by themselves: short, once, and never in the place of a person's."""

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
def test_what_a_model_wrote_is_cleaned(written: str, title: str | None) -> None:
    assert clean_title(written) == title


@pytest.mark.parametrize(
    ("said", "title"),
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
def test_without_a_model_the_first_words_that_say_something_are_taken(said: str, title: str | None) -> None:
    assert title_from_text(said) == title


@pytest.fixture
def offline(store: SessionDBProvider, home: Path) -> Agent:
    return agent_with(OfflineModel(), store, home)


class TestOffline:
    def test_comes_after_the_first_exchange(self, offline: Agent) -> None:
        conversation = Conversation.start(offline, asker=EVERYBODY)
        conversation.say("Docker networks between two hosts")
        assert offline.settle(20)
        assert conversation.title == "Docker networks between two hosts"

    def test_takes_a_number_when_it_is_taken(self, offline: Agent) -> None:
        for title in ("Docker networks", "Docker networks (2)"):
            conversation = Conversation.start(offline, asker=EVERYBODY)
            conversation.say("Docker networks")
            assert offline.settle(20)
            assert conversation.title == title

    def test_waits_for_more_than_a_greeting(self, offline: Agent) -> None:
        conversation = Conversation.start(offline, asker=EVERYBODY)
        conversation.say("hello")
        assert offline.settle(20)
        assert conversation.title is None
        conversation.say("Docker networks")
        assert offline.settle(20)
        assert conversation.title == "Docker networks"

    def test_does_not_come_late(self, offline: Agent) -> None:
        conversation = Conversation.start(offline, asker=EVERYBODY)
        for text in ("hello", "hi", "Docker networks"):
            conversation.say(text)
        assert offline.settle(20)
        assert conversation.title is None

    def test_leaves_a_given_title_alone(self, offline: Agent) -> None:
        conversation = Conversation.start(offline, title="Mine", asker=EVERYBODY)
        conversation.say("Docker networks")
        assert offline.settle(20)
        assert conversation.title == "Mine"

    def test_can_be_switched_off(self, store: SessionDBProvider, home: Path) -> None:
        config = replace(CONFIG, agent=replace(CONFIG.agent, auto_title=False))
        agent = agent_with(OfflineModel(), store, home, config)
        conversation = Conversation.start(agent, asker=EVERYBODY)
        conversation.say("Docker networks")
        assert agent.settle(20)
        assert conversation.title is None


class TestByTheMainModel:
    def test_is_made_where_there_is_no_auxiliary_one(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer(Say("Use a bridge."), Say('"Docker bridges."')) as server:
            agent = agent_at(server, store, home, auxiliary=None)
            conversation = Conversation.start(agent, asker=EVERYBODY)
            conversation.say("How do I connect containers?")
            assert agent.settle(20)
            assert "How do I connect containers?" in server.requests[1].last_text
        assert conversation.title == "Docker bridges"
        assert session_of(store, conversation.session_id)["api_call_count"] == 2

    def test_of_another_model_is_made_by_that_one(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server, ModelServer(Say("Use a bridge."), Say("Docker bridges")) as other:
            agent = agent_at(server, store, home, auxiliary=None)
            conversation = Conversation.start(agent, asker=EVERYBODY)
            conversation.use(endpoint(other))
            conversation.say("How do I connect containers?")
            assert agent.settle(20)
            assert server.requests == []
        assert conversation.title == "Docker bridges"


class TestOfASessionThatIsLeft:
    """What no model has answered is named after its first words, when it ends."""

    @pytest.mark.parametrize(("said", "title"), [("connect two containers", "Connect two containers"), ("hi", "Hi")])
    def test_after_a_turn_that_failed(self, store: SessionDBProvider, home: Path, said: str, title: str) -> None:
        with ModelServer(Fail(400)) as server:
            conversation = Conversation.start(agent_at(server, store, home, auxiliary=None), asker=EVERYBODY)
            assert conversation.say(said).status == "failed"
            conversation.end("user_exit")
        assert conversation.title == title
        assert [row["content"] for row in conversation.history] == [said]

    def test_after_an_answer_it_waits_for_the_model(self, offline: Agent) -> None:
        conversation = Conversation.start(offline, asker=EVERYBODY)
        conversation.say("hello")
        conversation.end("user_exit")
        assert offline.settle(20)
        assert conversation.title is None

    def test_is_not_given_where_titles_are_switched_off(self, store: SessionDBProvider, home: Path) -> None:
        config = replace(CONFIG, agent=replace(CONFIG.agent, auto_title=False))
        with ModelServer(Fail(400)) as server:
            conversation = Conversation.start(agent_at(server, store, home, config, auxiliary=None), asker=EVERYBODY)
            conversation.say("connect two containers")
            conversation.end("user_exit")
        assert conversation.title is None


class TestByTheAuxiliaryModel:
    def test_is_asked_for_and_booked(self, store: SessionDBProvider, home: Path) -> None:
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

    def test_keeps_nobody_waiting(self, store: SessionDBProvider, home: Path) -> None:
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

    def test_never_replaces_what_a_person_said_meanwhile(self, store: SessionDBProvider, home: Path) -> None:
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

    def test_failing_falls_back_to_the_first_words(self, store: SessionDBProvider, home: Path) -> None:
        with ModelServer() as server, ModelServer(Fail(401)) as fast:
            agent = agent_at(server, store, home, auxiliary=endpoint(fast))
            conversation = Conversation.start(agent, asker=EVERYBODY)
            conversation.say("connect two containers")
            assert agent.settle(20)
        assert conversation.title == "Connect two containers"

    def test_is_given_up_after_its_time(self, store: SessionDBProvider, home: Path) -> None:
        config = replace(CONFIG, auxiliary=replace(CONFIG.auxiliary, title_timeout_s=0.05))
        with ModelServer() as server, ModelServer(Say("Late", before_s=20)) as fast:
            agent = agent_at(server, store, home, config, auxiliary=endpoint(fast))
            conversation = Conversation.start(agent, asker=EVERYBODY)
            conversation.say("connect two containers")
            assert agent.settle(20)
            assert fast.requests[0].hung_up.wait(20)
        assert conversation.title == "Connect two containers"

    @pytest.mark.parametrize("step", [Fail(400), Say("One two", cut_after=1)])
    def test_is_not_asked_for_a_turn_that_failed(self, store: SessionDBProvider, home: Path, step: Fail | Say) -> None:
        with ModelServer(step) as server, ModelServer() as fast:
            agent = agent_at(server, store, home, auxiliary=endpoint(fast))
            conversation = Conversation.start(agent, asker=EVERYBODY)
            assert conversation.say("connect two containers").status == "failed"
            assert agent.settle(20)
            assert fast.requests == []
        assert conversation.title is None

    @pytest.mark.parametrize("step", [Fail(400), Say("One two", cut_after=1)])
    def test_of_a_session_without_a_whole_answer_are_its_first_words(
        self, store: SessionDBProvider, home: Path, step: Fail | Say
    ) -> None:
        with ModelServer(step) as server:
            conversation = Conversation.start(agent_at(server, store, home, auxiliary=None), asker=EVERYBODY)
            assert conversation.say("connect two containers").status == "failed"
            conversation.end("user_exit")
        assert conversation.title == "Connect two containers"


def test_few_are_made_at_the_same_time(store: SessionDBProvider, home: Path) -> None:
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
def test_a_title_that_a_model_writes_joins_no_lineage(written: str) -> None:
    title = clean_title(written)
    assert title is not None
    assert title.startswith("Docker ")
    assert " #" not in title
