"""The system prompt: built once per session and stored with it, so that it never changes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hermes.state.owner import is_terminal_source

IDENTITY = (
    "You are Hermes, an agent that works for the user it talks to. Answer the question, truthfully and to the point;"
    " when you do not know or cannot do something, say so. Use your tools where they help, read their results, and"
    " never claim to have done something that you have not done."
)
AT_A_TERMINAL = "The user reads your answers in a terminal: write plain text or simple Markdown, in short paragraphs."
IN_A_CHAT = "The user reads your answers in a chat on {source}: keep messages short, with simple Markdown at most."

CHATS = frozenset(("discord", "matrix", "signal", "slack", "telegram", "whatsapp"))


@dataclass(frozen=True, slots=True)
class PromptInputs:
    """The inputs of a session's system prompt."""

    source: str
    started_at: float
    cwd: str | None = None
    session_id: str | None = None
    """Set only if the model should know the id."""
    identity: str = ""
    """Who the agent is, in the user's words; empty for the usual agent."""
    guidance: str = ""
    """When to use the enabled tools."""
    skills: str = ""
    """The list of skills."""
    instructions: str = ""
    """The instructions of the project."""
    memory: str = ""
    """The notes about the user."""
    context: str = ""
    """A section about the chat, from the program that runs the chats."""


def build_system_prompt(inputs: PromptInputs) -> str:
    """Return the prompt of a session; it has the day but not the time, so that sessions share an endpoint's cache."""
    day = time.strftime("%A, %Y-%m-%d", time.localtime(inputs.started_at))
    facts = [f"This conversation began on {day}."]
    if inputs.cwd:
        facts.append(f"It takes place in the directory {inputs.cwd}.")
    if inputs.session_id:
        facts.append(f"Its session id is {inputs.session_id}.")
    parts = [inputs.identity or IDENTITY, _surface(inputs.source), inputs.guidance, inputs.skills, " ".join(facts)]
    return "\n\n".join(part for part in (*parts, inputs.instructions, inputs.context, inputs.memory) if part)


def _surface(source: str) -> str:
    if is_terminal_source(source):
        return AT_A_TERMINAL
    return IN_A_CHAT.format(source=source.capitalize()) if source in CHATS else ""
