"""Writes skills, and lets a session see them."""

from __future__ import annotations

from pathlib import Path

from hermes.agent.skills.library import SkillLibrary
from hermes.agent.skills.session_skills import SessionSkills, SkillUse
from hermes.agent.tools.toolbox import TOOLBOX
from tests.agent.tools.workbench import SESSION, Workbench


def skill_text(name: str, fields: str = "", body: str = "Do it well.") -> str:
    """The text of a SKILL.md."""
    return f"---\nname: {name}\ndescription: How to {name}\n{fields}\n---\n\n# {name}\n\n{body}\n"


def write_skill(home: Path, path: str, text: str | None = None, **files: str) -> Path:
    """Write a skill below `skills` that only its owner can change, and return its directory."""
    directory = home / "skills"
    for part in ("", *path.split("/")):
        directory = directory / part
        directory.mkdir(mode=0o700, exist_ok=True)
    (directory / "SKILL.md").write_text(skill_text(directory.name) if text is None else text)
    for name, content in files.items():
        (directory / f"{name}.md").write_text(content)
    for each in directory.iterdir():
        each.chmod(0o600)
    return directory


def with_skills(bench: Workbench) -> SessionSkills:
    """Let the session of a workbench see the skills of its home."""
    home, toolsets = bench.context.home, bench.context.toolsets
    skills = SessionSkills(SkillLibrary(home), SkillUse(), SESSION, home, toolsets, TOOLBOX.names(toolsets))
    bench.change(skills=skills)
    return skills
