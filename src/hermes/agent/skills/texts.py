"""What a model reads about skills: the list in the system prompt, and the text of a skill."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes.agent.history.text_limits import limit_text
from hermes.agent.skills.frontmatter import one_line, split_frontmatter
from hermes.agent.skills.skill import RequiredVariable, Skill
from hermes.errors import InvalidValue

MAX_LISTED = 100
MAX_LIST_CHARACTERS = 8_000
MAX_BOUND_CHARACTERS = 20_000
"""How much of one skill that belongs to a chat is in the system prompt."""
MAX_BOUND = 5

_MAX_LINE = 160
_HEADING = (
    "Skills are instructions for certain tasks. When one fits the task, read it with skill_view before you begin:"
)


def skill_list(skills: Iterable[Skill]) -> str:
    """Return the section of the system prompt that lists skills, always the same for the same skills; "" for none."""
    ordered = sorted(skills, key=lambda each: each.name)
    lines: list[str] = []
    space = MAX_LIST_CHARACTERS
    for each in ordered[:MAX_LISTED]:
        line = f"- {each.name}: {one_line(each.description, _MAX_LINE)}"
        space -= len(line) + 1
        if space < 0:
            break
        lines.append(line)
    if len(lines) < len(ordered):
        lines.append(f"({len(ordered) - len(lines)} more are not listed; the user can name them.)")
    return "\n".join([_HEADING, *lines]) if lines else ""


def bound_skill_section(skill: Skill, text: str, missing: Sequence[RequiredVariable]) -> str:
    """Return a skill that belongs to a chat, for the system prompt of its sessions."""
    body = limit_text(body_of(text), MAX_BOUND_CHARACTERS, more=f"use skill_view with the name {skill.name}")
    hint = f"\n\n{setup_hint(missing)}" if missing else ""
    return f"## Skill: {skill.name}\n\nThe operator has given this skill to the chat. Follow it:\n\n{body}{hint}"


def body_of(text: str) -> str:
    """Return a `SKILL.md` without its frontmatter."""
    try:
        return split_frontmatter(text)[1].strip()
    except InvalidValue:
        return text.strip()


def setup_hint(missing: Sequence[RequiredVariable]) -> str:
    """Return what a model should know about variables without a value; no value is ever asked for in a chat."""
    lines = []
    for each in missing:
        about = f" ({each.help})" if each.help else ""
        lines.append(f"- {each.name}{', optional' if each.is_optional else ''}{about}")
    beginning = (
        "[Setup needed: these environment variables have no value. The operator can add them to .env in the Hermes"
        " home. Never ask for a value in the conversation."
    )
    return "\n".join([beginning, *lines, "]"])
