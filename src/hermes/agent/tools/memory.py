"""The memory tool: the agent's notes about a user."""

from __future__ import annotations

from typing import Annotated, Literal, assert_never

from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.registry import tool
from hermes.errors import InvalidValue

GUIDANCE = (
    "Use the memory tool to keep facts that will matter in later sessions: lasting facts about the user and their"
    " preferences, in short notes. Do not keep facts that matter only now, facts that a search of past sessions finds,"
    " or secrets."
)


@tool(toolset="memory", guidance=GUIDANCE)
def memory(
    context: ToolContext,
    action: Annotated[Literal["read", "add", "replace", "remove"], "What to do with your notes."],
    text: Annotated[str | None, "The note, for add and replace."] = None,
    match: Annotated[str | None, "Some words that only this note contains, for replace and remove."] = None,
) -> str:
    """Read or change your lasting notes about the user; you see them at the start of every session."""
    match action:
        case "read":
            return context.memory.read(context.owner) or "[there are no notes yet]"
        case "add":
            context.memory.add(context.owner, _require(text, "text", action))
        case "replace":
            context.memory.replace(context.owner, _require(match, "match", action), _require(text, "text", action))
        case "remove":
            context.memory.remove(context.owner, _require(match, "match", action))
        case never:
            assert_never(never)
    used = len(context.memory.read(context.owner))
    return f"[done; the notes have {used} of {context.memory.max_characters} characters]"


def _require(value: str | None, name: str, action: str) -> str:
    if value is None:
        raise InvalidValue(f"{action} needs {name}")
    return value
