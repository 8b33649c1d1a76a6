"""Read the calls of skills from the tool calls of a message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from hermes.state.json_text import parse_if_text

LOAD = "skill_view"
EDIT = "skill_manage"
SKILL_TOOLS = (LOAD, EDIT)


class SkillCall(NamedTuple):
    """One load or edit of a skill."""

    skill: str
    is_edit: bool
    moment: float


def skill_calls(moment: float, stored: Any) -> Iterator[SkillCall]:
    """Yield the calls of skills in a stored list of tool calls; skip what cannot be read."""
    for call in _items(parse_if_text(stored)):
        function = call.get("function")
        called = function if isinstance(function, Mapping) else call
        name = called.get("name")
        arguments = parse_if_text(called.get("arguments"))
        skill = arguments.get("name") if isinstance(arguments, Mapping) else None
        if name in SKILL_TOOLS and isinstance(skill, str) and skill.strip():
            yield SkillCall(skill.strip(), name == EDIT, moment)


def _items(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
