"""Owners: a conversation sees only what its user may see."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import Any

import pytest

import hermes.agent
from hermes.agent.agent import Agent
from hermes.agent.conversation import Conversation
from hermes.agent.models.model import Cancellation
from hermes.agent.models.offline.model import OfflineModel
from hermes.errors import InvalidValue, UnknownSession
from hermes.state.owner import EVERYBODY, TERMINAL, owner_of, owner_of_room
from hermes.state.owner_view import OwnerView
from hermes.state.provider import SessionDBProvider
from tests.agent.talking import agent_with
from tests.support.conversations import ids, session_of

ALICE, BOB = owner_of("telegram", "1"), owner_of("telegram", "2")


@pytest.fixture
def agent(store: SessionDBProvider, home: Path) -> Agent:
    """An agent with the offline model."""
    return agent_with(OfflineModel(), store, home)


def chat(agent: Agent, text: str = "!say hi") -> Conversation:
    conversation = Conversation.start(agent, "telegram", asker=ALICE, user_id="1")
    assert conversation.say(text).status == "done"
    return conversation


def test_conversation_belongs_to_its_user(agent: Agent, store: SessionDBProvider) -> None:
    conversation = chat(agent)
    branch = conversation.branch()
    assert branch.say("!say there").status == "done"
    assert {row["owner"] for row in store.search_sessions()} == {ALICE.stored}
    assert branch.session.owner == conversation.session.owner == ALICE


def test_conversation_in_a_group_chat_belongs_to_the_group(agent: Agent, store: SessionDBProvider) -> None:
    room = owner_of_room("agent:main:telegram:group:9")
    conversation = Conversation.start(agent, "telegram", asker=room, user_id="1")
    conversation.say("!say hi")
    assert session_of(store, conversation.session_id)["owner"] == room.stored


def test_conversation_of_another_owner_cannot_be_resumed(agent: Agent) -> None:
    session_id = chat(agent).session_id
    for stranger in (BOB, TERMINAL):
        with pytest.raises(UnknownSession, match=f"there is no session '{session_id}'"):
            Conversation.resume(agent, session_id, asker=stranger)


def test_conversation_and_its_tools_have_the_view_of_the_user(agent: Agent) -> None:
    conversation = chat(agent)
    context = conversation.session.tools.context(Cancellation())
    assert conversation.store.asker == context.store.asker == context.owner == ALICE
    assert ids(Conversation.start(agent, "telegram", asker=BOB).store.search_sessions()) == []


def test_terminal_sees_all_sessions_and_has_its_own_notes(agent: Agent) -> None:
    chat(agent)
    context = Conversation.start(agent, asker=EVERYBODY).session.tools.context(Cancellation())
    assert (context.store.asker, context.owner) == (EVERYBODY, TERMINAL)
    assert len(context.store.search_sessions()) == 1


def test_terminal_in_a_chat_session_sees_only_that_owners_sessions(agent: Agent) -> None:
    session_id = chat(agent).session_id
    Conversation.start(agent, asker=EVERYBODY).say("!say mine")
    context = Conversation.resume(agent, session_id, asker=EVERYBODY).session.tools.context(Cancellation())
    assert (context.store.asker, context.owner) == (ALICE, ALICE)
    assert ids(context.store.search_sessions()) == [session_id]


def test_agent_of_one_owner_refuses_another_owner(store: SessionDBProvider, home: Path) -> None:
    made = agent_with(OfflineModel(), store, home)
    narrow = Agent(store.for_owner(ALICE), made.model, tools=made.tools, config=made.config, home=home, database=None)
    chat(narrow)
    for other in (BOB, TERMINAL, EVERYBODY):
        with pytest.raises(InvalidValue):
            Conversation.start(narrow, "telegram", asker=other)


def test_chat_cannot_start_a_session_of_the_terminal(agent: Agent, store: SessionDBProvider) -> None:
    outcome = Conversation.start(agent, "cli", asker=ALICE).say("hi")
    assert isinstance(outcome.error, InvalidValue)
    assert store.search_sessions() == []


def test_titles_of_other_owners_can_be_used(agent: Agent) -> None:
    chat(agent).set_title("Plan")
    other = Conversation.start(agent, "telegram", asker=BOB, title="Plan")
    other.say("!say hi")
    assert other.title == "Plan"


def functions_of_the_agent() -> list[tuple[str, Any]]:
    """Yield all functions and methods of the agent's modules."""
    found: list[tuple[str, Any]] = []
    for module_info in pkgutil.walk_packages(hermes.agent.__path__, "hermes.agent."):
        module = importlib.import_module(module_info.name)
        members = [each for _, each in inspect.getmembers(module) if getattr(each, "__module__", "") == module.__name__]
        classes = [each for each in members if inspect.isclass(each)]
        members += [getattr(each, "__func__", each) for kind in classes for each in vars(kind).values()]
        found += [(f"{module.__name__}.{each.__qualname__}", each) for each in members if inspect.isfunction(each)]
    return found


def test_no_function_of_the_agent_has_an_owner_by_default() -> None:
    owners = [
        (name, parameter)
        for name, function in functions_of_the_agent()
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name in ("owner", "asker")
    ]
    assert len(owners) > 10
    for name, parameter in owners:
        assert parameter.default is inspect.Parameter.empty, name
        assert parameter.annotation in ("Owner", "Asker"), name


def test_agent_has_no_unrestricted_store(agent: Agent) -> None:
    conversation = chat(agent)
    held = [
        *vars(agent).values(),
        *vars(conversation).values(),
        *vars(conversation.session.tools.context(Cancellation())).values(),
    ]
    assert isinstance(agent.store, OwnerView)
    assert not [each for each in held if isinstance(each, SessionDBProvider)]
