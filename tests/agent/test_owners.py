"""Whose conversations are: an agent sees for each no more than its asker may."""

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
    """An agent that needs no model of others."""
    return agent_with(OfflineModel(), store, home)


def chat(agent: Agent, text: str = "!say hi") -> Conversation:
    conversation = Conversation.start(agent, "telegram", asker=ALICE, user_id="1")
    assert conversation.say(text).status == "done"
    return conversation


def test_a_conversation_is_its_askers(agent: Agent, store: SessionDBProvider) -> None:
    conversation = chat(agent)
    branch = conversation.branch()
    assert branch.say("!say there").status == "done"
    assert {row["owner"] for row in store.search_sessions()} == {ALICE.stored}
    assert branch.owner == conversation.owner == ALICE


def test_a_conversation_in_a_room_is_the_rooms_whoever_speaks(agent: Agent, store: SessionDBProvider) -> None:
    room = owner_of_room("agent:main:telegram:group:9")
    conversation = Conversation.start(agent, "telegram", asker=room, user_id="1")
    conversation.say("!say hi")
    assert session_of(store, conversation.session_id)["owner"] == room.stored


def test_nobody_goes_on_with_the_conversation_of_another(agent: Agent) -> None:
    session_id = chat(agent).session_id
    for stranger in (BOB, TERMINAL):
        with pytest.raises(UnknownSession, match=f"there is no session '{session_id}'"):
            Conversation.resume(agent, session_id, asker=stranger)


def test_a_conversation_and_its_tools_have_the_askers_view(agent: Agent) -> None:
    conversation = chat(agent)
    context = conversation.tool_context(Cancellation())
    assert conversation.store.asker == context.store.asker == context.owner == ALICE
    assert ids(Conversation.start(agent, "telegram", asker=BOB).store.search_sessions()) == []


def test_the_terminal_sees_everybodys_sessions_and_keeps_its_own_notes(agent: Agent) -> None:
    chat(agent)
    context = Conversation.start(agent, asker=EVERYBODY).tool_context(Cancellation())
    assert (context.store.asker, context.owner) == (EVERYBODY, TERMINAL)
    assert len(context.store.search_sessions()) == 1


def test_in_a_session_of_a_chat_the_terminal_sees_no_more_than_its_owner(agent: Agent) -> None:
    session_id = chat(agent).session_id
    Conversation.start(agent, asker=EVERYBODY).say("!say mine")
    context = Conversation.resume(agent, session_id, asker=EVERYBODY).tool_context(Cancellation())
    assert (context.store.asker, context.owner) == (ALICE, ALICE)
    assert ids(context.store.search_sessions()) == [session_id]


def test_an_agent_of_one_owner_is_no_other_owners(store: SessionDBProvider, home: Path) -> None:
    made = agent_with(OfflineModel(), store, home)
    narrow = Agent(store.for_owner(ALICE), made.model, tools=made.tools, config=made.config, home=home, database=None)
    chat(narrow)
    for other in (BOB, TERMINAL, EVERYBODY):
        with pytest.raises(InvalidValue):
            Conversation.start(narrow, "telegram", asker=other)


def test_a_chat_cannot_begin_a_session_of_the_terminal(agent: Agent, store: SessionDBProvider) -> None:
    outcome = Conversation.start(agent, "cli", asker=ALICE).say("hi")
    assert isinstance(outcome.error, InvalidValue)
    assert store.search_sessions() == []


def test_titles_of_others_are_free(agent: Agent) -> None:
    chat(agent).set_title("Plan")
    other = Conversation.start(agent, "telegram", asker=BOB, title="Plan")
    other.say("!say hi")
    assert other.title == "Plan"


def functions_of_the_agent() -> list[tuple[str, Any]]:
    """All functions and methods that the agent's modules define."""
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


def test_an_agent_holds_no_store(agent: Agent) -> None:
    conversation = chat(agent)
    held = [
        *vars(agent).values(),
        *vars(conversation).values(),
        *vars(conversation.tool_context(Cancellation())).values(),
    ]
    assert isinstance(agent.store, OwnerView)
    assert not [each for each in held if isinstance(each, SessionDBProvider)]
