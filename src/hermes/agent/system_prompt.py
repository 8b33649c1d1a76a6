"""The system prompt: put together once for a session and kept with it, so that it never changes by a byte."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hermes.state.owner import is_terminal_source

IDENTITY = (
    "You are Hermes, an agent that works for the person it talks to. Answer what was asked, truthfully and to the"
    " point; when you do not know or cannot do something, say so. Use your tools where they help, look at what they"
    " answer, and never claim to have done what you have not."
)
AT_A_TERMINAL = "The person reads you at a terminal: write plain text or simple Markdown, in short paragraphs."
IN_A_CHAT = "The person reads you in a chat on {source}: keep messages short, with simple Markdown at most."

CHATS = frozenset(("discord", "matrix", "signal", "slack", "telegram", "whatsapp"))


@dataclass(frozen=True, slots=True)
class PromptInputs:
    """What a session's prompt depends on."""

    source: str
    started_at: float
    cwd: str | None = None
    session_id: str | None = None
    """Only if the model is to know it."""
    guidance: str = ""
    """When to use the tools that are on."""
    memory: str = ""
    """What is remembered of the person."""


def build_system_prompt(setting: PromptInputs) -> str:
    """The prompt of a session. It tells the day, not the time: sessions that begin alike share an endpoint's cache."""
    day = time.strftime("%A, %Y-%m-%d", time.localtime(setting.started_at))
    facts = [f"This conversation began on {day}."]
    if setting.cwd:
        facts.append(f"It takes place in the directory {setting.cwd}.")
    if setting.session_id:
        facts.append(f"Its session id is {setting.session_id}.")
    parts = [IDENTITY, _surface(setting.source), setting.guidance, " ".join(facts), setting.memory]
    return "\n\n".join(part for part in parts if part)


def _surface(source: str) -> str:
    if is_terminal_source(source):
        return AT_A_TERMINAL
    return IN_A_CHAT.format(source=source.capitalize()) if source in CHATS else ""
