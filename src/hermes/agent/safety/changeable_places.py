"""Which files an agent may change: those in the session's directory, without the places where a write runs programs."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

from hermes.agent.safety.paths import IGNORED, ProtectedPlaces, ResolvedPath, is_too_wide

REPOSITORIES = (".git", "*.git", ".hg", ".svn", ".bzr", ".jj")
"""Directories of version control, anywhere: their hooks and settings name programs that run later."""

OF_SYSTEM = ("/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/opt", "/sbin", "/usr", "/var")
"""Places of the system, which are not changed from a directory that holds more than one project."""

RUN_LATER = (
    # instructions for agents
    *("AGENTS.md", "CLAUDE.md", "GEMINI.md", "SKILL.md", ".cursorrules", "copilot-instructions.md", ".mcp.json"),
    # programs that editors, version control, package managers and test programs run
    *(".vscode/*", ".idea/*", ".devcontainer/*", ".github/*", ".gitlab-ci.yml", ".husky/*", ".githooks/*"),
    *(".gitattributes", ".gitmodules", ".pre-commit-config.yaml", "package.json", "setup.py", "conftest.py", "*.pth"),
    *("sitecustomize.py", "usercustomize.py", "Makefile", "GNUmakefile", "justfile", "Dockerfile", "*.service"),
)
"""Files that other programs read or run by themselves: a change of them is a high risk."""

_SHORT_NAME = "git~1"
"""The short name of `.git` on Windows."""


def refusal_to_change(place: ResolvedPath, root: Path, protected: ProtectedPlaces, homes: tuple[Path, ...]) -> str:
    """Return why a file is never changed, in words that follow "because"; empty if it may be, after a question."""
    if not place.real.is_relative_to(root) or place.real == root:
        return "it is outside the session's directory"
    reason = protected.reason(place)
    if reason is not None:
        return reason
    for path in (place.real, place.named, *place.links):
        if _has_repository(path):
            return "version control stores its own files there, and may run them"
    if is_too_wide(root, homes) and any(place.real.is_relative_to(each) for each in OF_SYSTEM):
        return "it belongs to the system"
    return ""


def runs_later(path: Path) -> bool:
    """Whether other programs read or run a file by themselves, by its name."""
    return _RUN_LATER.search(_folded(path)) is not None


def _has_repository(path: Path) -> bool:
    """Whether a path is in a directory of version control, by its name or by what is in it."""
    return _REPOSITORIES.search(_folded(path)) is not None or any(map(_is_git_directory, path.parents))


def _is_git_directory(path: Path) -> bool:
    """Whether git would use a directory as a repository, whatever its name is."""
    return all(os.path.lexists(path / each) for each in ("HEAD", "objects", "refs"))


def _folded(path: Path) -> str:
    """Return a path as file systems compare it that ignore case, some characters, and blanks and dots at the end."""
    names = (unicodedata.normalize("NFKC", name.translate(IGNORED)).casefold() for name in path.parts[1:])
    return "".join(f"/{name.rstrip(' .')}" for name in names)


def _one_of(names: tuple[str, ...], end: str) -> re.Pattern[str]:
    known = "|".join(re.escape(name.casefold()).replace(r"\*", "[^/]*") for name in names)
    return re.compile(rf"/(?:{known}){end}")


_REPOSITORIES = _one_of((*REPOSITORIES, _SHORT_NAME), r"(?=/|\Z)")
_RUN_LATER = _one_of(RUN_LATER, r"(?=/|\Z)")
