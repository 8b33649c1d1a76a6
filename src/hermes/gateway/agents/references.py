"""What belongs to the messages of a chat: the files that were sent with them, and what their context references name.

References are read in the directory of the chat, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes.agent.references.parse import has_references
from hermes.agent.turns.incoming import Incoming

if TYPE_CHECKING:
    from hermes.agent.conversation import Conversation
    from hermes.agent.references.attach import Attached
    from hermes.gateway.agents.media import SentFiles
    from hermes.gateway.agents.turn import AgentTurn
    from hermes.gateway.engine.ports import TurnMessage

READING = "reading what belongs to a message"


def attach_references(turn: AgentTurn, conversation: Conversation) -> list[Incoming]:
    """Return the messages of a turn with their files and with what their references name.

    The user gets a notice about each failed reference, and one about all files that failed for the same reason. Without
    a directory of its own and the toolset `files`, a chat gets only the notice about references. Raises `InvalidValue`
    if the references name too much, so that nothing is stored. This runs on the turn's thread.
    """
    messages = turn.request.messages
    if not any(each.media or has_references(each.text) for each in messages):
        return [Incoming(each.text, each.uid) for each in messages]
    from hermes.agent.models.sight import why_no_images
    from hermes.agent.references.attach import ReferenceReader
    from hermes.agent.references.limits import Budget
    from hermes.gateway.agents.media import FileReader

    turn.listener.note(READING)
    session = conversation.session
    reason = why_no_images(session.model, session.agent.config.model.sees_images)
    budget = Budget(session.model.context_tokens)
    context = session.tools.context(turn.cancellation)
    files = FileReader(
        session.agent.home, budget, why_no_images=reason, shows_paths="terminal" in session.tools.toolsets
    )
    reader = ReferenceReader(context, session.model.context_tokens, why_no_images=reason, budget=budget)
    incoming: list[Incoming] = []
    for each in messages:
        sent = files.read(each.media, has_text=bool(each.text.strip()))
        attached = reader.read(each.text)
        for remark in attached.remarks:
            turn.listener.notice(remark)
        incoming.append(_incoming(each, sent, attached))
    for remark in files.remarks:
        turn.listener.notice(remark)
    return incoming


def _incoming(message: TurnMessage, sent: SentFiles, attached: Attached) -> Incoming:
    from hermes.agent.references.texts import format_attached

    text = "\n".join([message.text, *sent.lines] if message.text.strip() else sent.lines)
    context: Sequence[str] = [format_attached(sent.context)] if sent.context else []
    if attached.text:
        context = [attached.text, *sent.context]
    return Incoming(text, message.uid, "\n\n".join(context), [*sent.images, *attached.images])
