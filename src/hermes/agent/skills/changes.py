"""Changes of skills: planned and shown to the user first, then made exactly as shown."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from hermes.agent.safety.diffs import compare
from hermes.agent.safety.visible_text import make_path_visible
from hermes.agent.skills.files import MAX_BYTES, check_path, list_files, read_skill_file, refuse_tree_of_others
from hermes.agent.skills.frontmatter import parse_skill
from hermes.agent.skills.library import MAX_DEPTH, SkillLibrary
from hermes.agent.skills.skill import SKILL_FILE, Skill, is_skill_name
from hermes.errors import Conflict, InvalidValue, NotFound
from hermes.home import ensure_private_dir, write_private_atomic


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a skill."""

    summary: str
    diff: str
    library: Path
    """The directory of all skills."""
    directory: Path
    path: str | None
    """The file that changes; None if the whole skill is deleted."""
    before: str | None
    """The content of the file when the change was planned; None if there was no file."""
    after: str | None
    """The new content; None if the file is deleted."""
    files: tuple[str, ...] = ()
    """The files of a skill that is deleted."""


def plan_creation(library: SkillLibrary, name: str, content: str, category: str | None) -> Change:
    """Plan a new skill; raise `InvalidValue` if its text cannot be used, `Conflict` if the name is in use."""
    _check_name(name)
    parts = check_path(category) if category else ()
    if not all(is_skill_name(each) for each in parts):
        raise InvalidValue("a category consists of small letters, digits, - and _")
    if len(parts) >= MAX_DEPTH:
        raise InvalidValue(f"a category has at most {MAX_DEPTH - 1} directories; a deeper skill is not found")
    directory = library.directory.joinpath(*parts, name)
    for outer in list(directory.parents)[: len(parts)]:
        if os.path.lexists(outer / SKILL_FILE):
            shown = outer.relative_to(library.directory)
            raise InvalidValue(f"{shown} is a skill, so no skill in it is found", hint="choose another category")
    _refuse_links(library.directory, directory)
    if os.path.lexists(directory) or any(each.name == name for each in library.all()):
        raise Conflict(f"there is a skill {name} already", hint="update it, or choose another name")
    _check_content(content, directory, name)
    where = "/".join((*parts, name))
    diff = _diff("", content, f"{where}/{SKILL_FILE}")
    return Change(f"create the skill {where}", diff, library.directory, directory, SKILL_FILE, None, content)


def plan_update(library: SkillLibrary, name: str, content: str, path: str = SKILL_FILE) -> Change:
    """Plan another content of a file of a skill, or a new file of it."""
    directory = _find(library, name)
    check_path(path)
    _check_size(content)
    if path == SKILL_FILE:
        _check_content(content, directory, name)
    before = _read_if_there(directory, path)
    if before == content:
        raise InvalidValue(f"{path} of {name} has exactly this content already")
    return Change(
        f"update the skill {name}: {path}",
        _diff(before or "", content, f"{name}/{path}"),
        library.directory,
        directory,
        path,
        before,
        content,
    )


def plan_deletion(library: SkillLibrary, name: str, path: str | None = None) -> Change:
    """Plan to delete a skill, or one file of it."""
    directory = _find(library, name)
    if path is not None and path != SKILL_FILE:
        before = read_skill_file(directory, path)
        diff = _diff(before, "", f"{name}/{path}")
        return Change(f"delete {path} of the skill {name}", diff, library.directory, directory, path, before, None)
    files = tuple(list_files(directory))
    listed = "\n".join(f"- {each}" for each in files)
    return Change(
        f"delete the skill {name}",
        f"with everything in its directory, also hidden files:\n{listed}",
        library.directory,
        directory,
        None,
        None,
        None,
        files,
    )


def make_change(change: Change) -> None:
    """Make a change; raise `Conflict` if the files are not as they were when it was planned."""
    _refuse_links(change.library, change.directory)
    if change.path is None:
        if tuple(list_files(change.directory)) != change.files:
            raise Conflict("the files of the skill have changed meanwhile", hint="look at it again")
        refuse_tree_of_others(change.directory)
        shutil.rmtree(change.directory)
        return
    target = change.directory.joinpath(*check_path(change.path))
    if _read_if_there(change.directory, change.path) != change.before:
        raise Conflict(f"{change.path} has changed meanwhile", hint="look at it again")
    if change.after is None:
        target.unlink()
        return
    _refuse_links(change.library, target.parent)
    ensure_private_dir(target.parent)
    write_private_atomic(target, change.after.encode())


def _find(library: SkillLibrary, name: str) -> Path:
    found = library.get(name)
    if not isinstance(found, Skill):
        raise InvalidValue(f"the skill {name} cannot be used: {found.problem}", hint="the user has to repair it")
    return found.directory


def _check_name(name: str) -> None:
    if not is_skill_name(name):
        raise InvalidValue(
            "the name of a skill consists of small letters, digits, - and _", hint="choose a name such as weekly-report"
        )


def _check_size(content: str) -> None:
    try:
        size = len(content.encode())
    except UnicodeEncodeError:
        raise InvalidValue("the content is not valid text") from None
    if not content.strip() or size > MAX_BYTES or "\0" in content:
        raise InvalidValue(f"the content must be text, at most {MAX_BYTES} bytes")


def _check_content(content: str, directory: Path, name: str) -> None:
    """Raise `InvalidValue` unless the text is a complete `SKILL.md` of this name."""
    _check_size(content)
    try:
        found = parse_skill(content, directory)
    except InvalidValue as error:
        raise InvalidValue(f"this is no {SKILL_FILE}: {error.message}") from None
    if found.name != name:
        raise InvalidValue(f"the frontmatter has the name {found.name}, not {name}")


def _read_if_there(directory: Path, path: str) -> str | None:
    if not os.path.lexists(directory):
        return None
    try:
        return read_skill_file(directory, path)
    except NotFound:
        return None


def _refuse_links(library: Path, directory: Path) -> None:
    """Raise `InvalidValue` if a directory on the way from the skills to a directory is a link."""
    for each in (directory, *directory.parents):
        if each == library:
            return
        if each.is_symlink():
            raise InvalidValue(f"{make_path_visible(each.relative_to(library))} is a link, and links are not followed")


def _diff(before: str, after: str, path: str) -> str:
    """Return the difference; a line break of another kind is a difference too."""
    old, new = f"a/{path}" if before else "/dev/null", f"b/{path}" if after else "/dev/null"
    return f"--- {old}\n+++ {new}\n{compare(path, before, after).text}"
