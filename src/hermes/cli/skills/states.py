"""What a conversation sees of the skills, as the commands report it."""

from __future__ import annotations

import os
from typing import Any, Literal

import click

from hermes.agent.skills.library import Found, SkillLibrary
from hermes.agent.skills.session_skills import SessionSkills, SkillUse
from hermes.agent.skills.skill import BrokenSkill
from hermes.agent.tools.toolbox import TOOLBOX
from hermes.agent.tools.toolsets import toolsets_for
from hermes.config import Config
from hermes.home import get_hermes_home

SOURCE = click.option(
    "--source",
    "-s",
    metavar="NAME",
    default="cli",
    show_default=True,
    help="For conversations from this source, such as telegram.",
)
TOOLSET = "skills"

State = Literal["visible", "hidden", "invalid"]


def skills_of(config: Config, source: str) -> SessionSkills:
    """Return the skills as conversations of a source see them."""
    home = get_hermes_home()
    toolsets = toolsets_for(source, config.tools, TOOLBOX.toolsets)
    return SessionSkills(SkillLibrary(home), SkillUse(), "", home, toolsets, TOOLBOX.names(toolsets))


def state_of(skills: SessionSkills, found: Found) -> tuple[State, str]:
    """Return whether a conversation sees a skill, and why not."""
    if isinstance(found, BrokenSkill):
        return "invalid", found.problem
    if TOOLSET not in skills.toolsets:
        return "hidden", f"the toolset {TOOLSET} is off in this conversation"
    reason = skills.hidden_reason(found)
    return ("visible", "") if reason is None else ("hidden", reason)


def describe(skills: SessionSkills, found: Found) -> dict[str, Any]:
    """Return a skill for JSON."""
    state, why = state_of(skills, found)
    item: dict[str, Any] = {
        "name": found.name,
        "state": state,
        "why": why or None,
        "directory": str(found.directory),
    }
    if isinstance(found, BrokenSkill):
        return item
    missing = {each.name for each in skills.missing(found, os.environ)}
    return item | {
        "description": found.description,
        "category": found.category or None,
        "requires_toolsets": list(found.requires_toolsets),
        "requires_tools": list(found.requires_tools),
        "fallback_for_toolsets": list(found.fallback_for_toolsets),
        "fallback_for_tools": list(found.fallback_for_tools),
        "required_environment_variables": [
            {"name": each.name, "is_set": each.name not in missing, "is_optional": each.is_optional, "help": each.help}
            for each in found.variables
        ],
    }
