"""The conversations of lanes: opened for a turn or a command, kept between them, and written under the lane's lease."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

from hermes.agent.conversation import Conversation
from hermes.gateway.agents.cache import AgentCache, Signature
from hermes.gateway.agents.workspaces import make_workspace
from hermes.state.lanes.types import Lease

if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.agent.models.model import Model
    from hermes.agent.models.selection import Models
    from hermes.state.owner import Owner
    from hermes.state.owner_view import OwnerView

MOST_MODELS = 32
"""So many models that users have chosen stay open; the one that was used longest ago is forgotten then."""
MOST_NAMES = 4096
"""So many lanes are remembered with the model that their user has chosen; each turn sets it again, from the store."""
NO_TOKEN = -1
"""A token that no lease has."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane with the session, the owner and the lease of a turn or a command."""

    session_key: str
    session_id: str
    owner: Owner
    lease: Lease


class LaneConversations:
    """Opens and keeps the conversations of lanes; threads may share it."""

    def __init__(self, agent: Agent, models: Models, cache: AgentCache[Conversation]) -> None:
        self.cache = cache
        self._agent = agent
        self._models = models
        self._model_names: dict[str, str] = {}
        self._opened: dict[str, Model] = {}
        self._lock = Lock()

    def set_model(self, session_key: str, name: str | None) -> None:
        """Let a lane use another model from its next turn on; None is the configured one."""
        with self._lock:
            self._model_names.pop(session_key, None)
            if name is not None:
                self._model_names[session_key] = name
                if len(self._model_names) > MOST_NAMES:
                    del self._model_names[next(iter(self._model_names))]

    def model_name(self, session_key: str) -> str:
        """Return the name of the model of a lane's next turn."""
        return self._model_names.get(session_key) or self._agent.model.name

    def open_model(self, name: str | None) -> Model:
        """Return a model by its name, the same object for the same name; None is the configured one."""
        if name is None or name == self._agent.model.name:
            return self._agent.model
        with self._lock:
            model = self._opened.pop(name, None) or self._models.open(name)
            self._opened[name] = model
            if len(self._opened) > MOST_MODELS:
                del self._opened[next(iter(self._opened))]
            return model

    @contextmanager
    def use(self, lane: Lane, source: str, context: str = "") -> Iterator[Conversation]:
        """Yield the conversation of a lane, which writes only under the lease; afterwards it is kept.

        After an unexpected error it is not kept, because its state is unknown.
        """
        model = self.open_model(self._model_names.get(lane.session_key))
        toolsets = self._agent.toolsets(source)
        signature = Signature(model.name, model.provider, model.base_url, toolsets, lane.session_id)
        key, view = lane.session_key, self._agent.store.narrowed_to(lane.owner).fenced(lane.lease)
        conversation = self.cache.borrow(key, signature)
        if conversation is None:
            conversation = self._open(lane, view, toolsets, context)
            self.cache.lend(key, signature, conversation)
        try:
            conversation.use_store(view)
            if conversation.model is not model:
                conversation.use(model)
            yield conversation
        except BaseException:
            self.cache.evict(key, conversation)
            raise
        finally:
            conversation.use_store(None)
            self.cache.give_back(key, replace(signature, session_id=conversation.session_id), conversation)

    def _open(self, lane: Lane, view: OwnerView, toolsets: frozenset[str], context: str) -> Conversation:
        row = view.get_session(view.get_compression_tip(lane.session_id))
        if row is not None and row["ended_at"] is not None:
            view.reopen_session(row["id"])  # resuming does this too, but not under the lease
        return Conversation.resume(
            self._agent,
            lane.session_id,
            asker=lane.owner,
            cwd=make_workspace(self._agent.home, lane.owner, toolsets),
            context=context,
        )


def seal(conversation: Conversation, lane: Lane) -> None:
    """Refuse all further writes of a conversation whose turn was given up, also while the lease is still good."""
    never = Lease(lane.session_key, lane.lease.node, NO_TOKEN, 0.0)
    # Not `use_store`, which is refused while the turn runs.
    conversation.session.store = conversation.plain_store.fenced(never)
