"""Context references in the messages of a chat: read in the directory of the chat, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.agent.references.parse import has_references
from hermes.agent.turns.incoming import Incoming

if TYPE_CHECKING:
    from hermes.agent.conversation import Conversation
    from hermes.gateway.agents.turn import AgentTurn

READING = "reading the references in a message"


def attach_references(turn: AgentTurn, conversation: Conversation) -> list[Incoming]:
    """Return the messages of a turn with what their references name; the user gets a notice about each failed one.

    Without a directory of its own and the toolset `files`, a chat gets only the notice. Raises `InvalidValue` if the
    references name too much, so that nothing is stored. This runs on the turn's thread.
    """
    messages = turn.request.messages
    if not any(has_references(each.text) for each in messages):
        return [Incoming(each.text, each.uid) for each in messages]
    from hermes.agent.references.attach import ReferenceReader

    turn.listener.note(READING)
    session = conversation.session
    reader = ReferenceReader(session.tools.context(turn.cancellation), session.model.context_tokens)
    incoming: list[Incoming] = []
    for each in messages:
        attached = reader.read(each.text)
        for remark in attached.remarks:
            turn.listener.notice(remark)
        incoming.append(Incoming(each.text, each.uid, attached.text))
    return incoming
