"""The tools for skills: `skill_view` reads them, `skill_manage` changes them after the user has allowed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, assert_never

from hermes.agent.safety.approval import ApprovalRequest, Decision
from hermes.agent.safety.visible_text import make_path_visible, make_visible
from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.registry import tool
from hermes.agent.tools.results import ToolResult, failure
from hermes.errors import HermesError, InvalidValue, NotFound
from hermes.log import warn
from hermes.state.owner import TERMINAL, is_terminal_source

if TYPE_CHECKING:
    from hermes.agent.skills.changes import Change
    from hermes.agent.skills.session_skills import SessionSkills
    from hermes.agent.skills.skill import RequiredVariable, Skill

ONLY_TERMINAL = "Skills can be changed only at the terminal, not in a chat. Do not try another way."


@tool(toolset="skills", more="read one of the skill's files with path")
def skill_view(
    context: ToolContext,
    name: Annotated[str, "The skill, as listed in your instructions."],
    path: Annotated[str | None, "A file of the skill, such as references/api.md; default: its instructions."] = None,
) -> str:
    """Read the instructions of a skill, or another file of it."""
    from hermes.agent.skills.files import list_files, read_skill_file
    from hermes.agent.skills.skill import SKILL_FILE

    skills = _skills(context)
    skill = _find(skills, name.strip())
    if path is not None and path.strip() not in ("", SKILL_FILE):
        return read_skill_file(skill.directory, path.strip())
    text = read_skill_file(skill.directory, SKILL_FILE)
    skills.begin(skill)
    others = [each for each in list_files(skill.directory) if each != SKILL_FILE]
    parts = [text.rstrip()]
    if others:
        parts.append("[Other files of this skill, for path: " + ", ".join(map(make_path_visible, others)) + "]")
    if (where := _directory_note(context, skill)) is not None:
        parts.append(where)
    if status := _set_up(context, skills, skill):
        parts.append(status)
    return "\n\n".join(parts)


@tool(toolset="skills")
def skill_manage(
    context: ToolContext,
    action: Annotated[Literal["create", "update", "delete"], "What to do."],
    name: Annotated[str, "The skill: small letters, digits, - and _."],
    content: Annotated[str | None, "The complete new text of the file, for create and update."] = None,
    path: Annotated[str | None, "Another file of the skill, for update and delete; default: SKILL.md."] = None,
    category: Annotated[str | None, "A directory for the new skill, for create."] = None,
) -> str | ToolResult:
    """Create, update or delete a skill if the user allows it; SKILL.md begins with ---, name:, description: and ---."""
    from hermes.agent.skills.changes import make_change, plan_creation, plan_deletion, plan_update
    from hermes.agent.skills.skill import SKILL_FILE

    if not is_terminal_source(context.source) or context.owner != TERMINAL:
        return failure(ONLY_TERMINAL)
    library = _skills(context).library
    match action:
        case "create":
            change = plan_creation(library, name, _require(content, action), category)
        case "update":
            change = plan_update(library, name, _require(content, action), path or SKILL_FILE)
        case "delete":
            change = plan_deletion(library, name, path)
        case never:
            assert_never(never)
    denied = context.refusal(_request(change))
    if denied is not None:
        return failure(denied)
    make_change(change)
    return f"[done: {change.summary}; the list in your instructions is from the start of this session]"


def _skills(context: ToolContext) -> SessionSkills:
    if context.skills is None:
        raise InvalidValue("this conversation has no skills")
    return context.skills


def _find(skills: SessionSkills, name: str) -> Skill:
    """Return a skill that the session sees; a hidden one does not exist for it."""
    from hermes.agent.skills.skill import Skill

    found = skills.library.get(name)
    reason = skills.hidden_reason(found)
    if reason is not None or not isinstance(found, Skill):
        raise NotFound(f"the skill {make_path_visible(name[:80])} cannot be used here: {reason}", hint="")
    return found


def _request(change: Change) -> ApprovalRequest:
    return ApprovalRequest(
        tool="skill_manage",
        summary=change.summary,
        detail=f"{change.summary}\n\n{make_visible(change.diff)}",
        risk="high" if change.after is None else "normal",
        subject=f"{change.summary}\n{change.diff}",
        longest=Decision.ONCE,
    )


def _directory_note(context: ToolContext, skill: Skill) -> str | None:
    """Return where the files of a skill are, for a conversation that can run them."""
    return f"[This skill is in {make_path_visible(skill.directory)}.]" if "terminal" in context.toolsets else None


def _set_up(context: ToolContext, skills: SessionSkills, skill: Skill) -> str:
    """Ask for missing values at the terminal; return what the model should know about those that stay without one."""
    from hermes.agent.skills.texts import setup_hint

    missing = skills.missing(skill, context.environ)
    if context.ask_secret is not None and is_terminal_source(context.source):
        missing = [each for each in missing if context.cancellation.is_cancelled or not _ask(context, skill, each)]
    return setup_hint(missing) if missing else ""


def _ask(context: ToolContext, skill: Skill, variable: RequiredVariable) -> bool:
    """Ask for one value and store it; return whether there is one now."""
    from hermes.agent.skills.session_skills import SecretRequest
    from hermes.agent.skills.variables import may_be_asked, store_variable

    assert context.ask_secret is not None
    if not may_be_asked(context.home, variable.name):
        return False
    question = variable.prompt or f"Value of {variable.name}"
    value = context.ask_secret(SecretRequest(variable.name, f"{question} (for the skill {skill.name})", variable.help))
    if not value:
        return False
    try:
        store_variable(context.home, variable.name, value)
    except (HermesError, OSError) as error:
        warn(__name__, "%s was not stored: %s", variable.name, error)
        return False
    return True


def _require(value: str | None, action: str) -> str:
    if value is None or not value.strip():
        raise InvalidValue(f"{action} needs content")
    return value
