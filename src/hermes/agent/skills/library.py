"""The skills of a Hermes home: finds them below `skills/`, and keeps what it has parsed until a file changes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock

from hermes.agent.safety.visible_text import make_path_visible
from hermes.agent.skills.files import read_skill_file, refuse_tree_of_others
from hermes.agent.skills.frontmatter import parse_skill
from hermes.agent.skills.skill import SKILL_FILE, BrokenSkill, Skill
from hermes.errors import HermesError, NotFound
from hermes.trust import refuse_settings_of_others

DIRECTORY = "skills"
MAX_SKILLS = 500
MAX_DEPTH = 4
"""How deep a skill may be: categories may have categories."""

_MAX_DIRECTORIES = 2_000

Found = Skill | BrokenSkill
_Stamp = tuple[int, int, int, int]


class SkillLibrary:
    """The skills in a Hermes home; threads may share it."""

    def __init__(self, home: Path) -> None:
        self.directory = home / DIRECTORY
        self._parsed: dict[Path, tuple[_Stamp, Found]] = {}
        self._lock = Lock()

    def all(self) -> list[Found]:
        """Return all skills by name, and the directories that cannot be used.

        Of two with one name, the one in a directory of this name counts, else the first: a skill from elsewhere cannot
        take the place of another one by its frontmatter.
        """
        found: dict[str, Found] = {}
        others: list[Found] = []
        for each in sorted(self._scan(), key=lambda each: each.name != each.directory.name):
            first = found.get(each.name)
            if isinstance(each, Skill) and isinstance(first, Skill):
                where = make_path_visible(first.directory.relative_to(self.directory))
                others.append(BrokenSkill(each.name, each.directory, f"the skill in {where} has the same name"))
            elif isinstance(each, Skill):
                found[each.name] = each
            else:
                others.append(each)
        return sorted([*found.values(), *others], key=lambda each: (each.name, str(each.directory)))

    def usable(self) -> list[Skill]:
        """Return the skills without those that cannot be used."""
        return [each for each in self.all() if isinstance(each, Skill)]

    def get(self, name: str, among: Sequence[Found] | None = None) -> Found:
        """Return a skill by its name, or why it cannot be used; raise `NotFound` if there is none.

        `among` are the skills from `all`, for a caller that needs several.
        """
        listed = self.all() if among is None else among
        matches = [each for each in listed if each.name == name]
        if not matches:
            from difflib import get_close_matches

            near = get_close_matches(name, [each.name for each in listed], n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else "see `hermes skills list`"
            raise NotFound(f"there is no skill {make_path_visible(name[:80])}", hint=hint)
        return next((each for each in matches if isinstance(each, Skill)), matches[0])

    def _scan(self) -> Iterator[Found]:
        """Yield what is in the directory, the outer directories first, in the order of their names."""
        if not self.directory.is_dir():
            return
        try:
            refuse_tree_of_others(self.directory)
        except HermesError as error:
            yield BrokenSkill(DIRECTORY, self.directory, error.message)
            return
        waiting, seen, count = [self.directory], 0, 0
        while waiting and seen < _MAX_DIRECTORIES and count < MAX_SKILLS:
            directory = waiting.pop(0)
            seen += 1
            if directory != self.directory and os.path.lexists(directory / SKILL_FILE):
                count += 1
                yield self._load(directory)
            elif len(directory.relative_to(self.directory).parts) < MAX_DEPTH:
                for path, problem in _subdirectories(directory):
                    if problem:
                        yield BrokenSkill(make_path_visible(path.name), path, problem)
                    else:
                        waiting.append(path)
        if waiting:
            yield BrokenSkill(DIRECTORY, self.directory, f"there are too many; only {MAX_SKILLS} skills are used")

    def _load(self, directory: Path) -> Found:
        name = make_path_visible(directory.name)
        try:
            status = os.lstat(directory / SKILL_FILE)
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)
            refuse_settings_of_others(directory / SKILL_FILE)
            with self._lock:
                known = self._parsed.get(directory)
            if known is not None and known[0] == stamp:
                return known[1]
            inner = directory.relative_to(self.directory).parent
            category = "" if inner == Path() else make_path_visible(inner)
            found: Found = parse_skill(read_skill_file(directory, SKILL_FILE), directory, category)
        except HermesError as error:
            return BrokenSkill(name, directory, error.message)
        except OSError as error:
            return BrokenSkill(name, directory, f"it cannot be read: {error.strerror}")
        with self._lock:
            self._parsed[directory] = stamp, found
        return found


def _subdirectories(directory: Path) -> Iterator[tuple[Path, str]]:
    """Yield the directories in one, each with the reason why it is not used, if any."""
    try:
        with os.scandir(directory) as entries:
            listed = sorted(entries, key=lambda each: each.name)
    except OSError:
        return  # it was deleted or cannot be read
    for entry in listed[:_MAX_DIRECTORIES]:
        if entry.name.startswith("."):
            continue
        path = directory / entry.name
        if entry.is_symlink():
            if entry.is_dir():
                yield path, "it is a link, and links are not followed"
            continue
        if not entry.is_dir(follow_symlinks=False):
            continue
        try:
            refuse_tree_of_others(path)
            yield path, ""
        except HermesError as error:
            yield path, error.message
