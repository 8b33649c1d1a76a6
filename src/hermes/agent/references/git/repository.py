"""The git repository of a session's directory, found and checked without git.

Only its data is used: `HEAD`, the index and the objects. A repository that leads elsewhere, through a link, another
object directory or a `.git` file of a stranger, is refused: it would show the files of another project.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hermes.agent.references.texts import NotAttached
from hermes.agent.safety.opening import open_regular_file
from hermes.errors import InvalidValue

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_OBJECT_FILES = 200_000
_MAX_REFS = 5
"""How many references of git may lead to another one."""

_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"refs/[^\0\n ]+")
_OBJECT_DIRECTORY = re.compile(r"[0-9a-f]{2}")
_SHA256_CHARACTERS = 64
_ODD_NAME = re.compile(rb"(?:\A|[\0/])(?:\.{0,2}|\.git)(?=[\0/])", re.IGNORECASE)
_PLAIN_PARTS = ("HEAD", "index", "objects", "refs", "packed-refs", "shallow", "info", "config")


@dataclass(frozen=True, slots=True)
class Repository:
    """A checked repository."""

    top: Path
    """The directory with `.git`."""
    git_dir: Path
    """`HEAD` and the index are there."""
    common_dir: Path
    """The objects and the refs are there; another directory than `git_dir` for a worktree."""

    @property
    def head(self) -> str | None:
        """The hash of the current commit; None before the first one."""
        return _resolve_head(self)

    @property
    def is_sha256(self) -> bool:
        """Whether the names of objects have 64 digits; unknown before the first commit."""
        return len(self.head or "") == _SHA256_CHARACTERS


def find_repository(root: Path, *, may_leave: bool) -> Repository:
    """Return the repository of a directory without links; `may_leave` if it may begin above the directory.

    Raises `NotAttached` if there is none, or if it is not an ordinary one.
    """
    for top in (root, *root.parents) if may_leave else (root,):
        entry = top / ".git"
        try:
            status = entry.lstat()
        except OSError:
            continue
        if top != root and status.st_uid != os.geteuid():
            raise NotAttached("the git repository of this directory belongs to another user")
        return _repository_at(top, entry, status.st_mode, may_leave=may_leave)
    raise NotAttached("this directory is not in a git repository")


def _repository_at(top: Path, entry: Path, mode: int, *, may_leave: bool) -> Repository:
    if stat.S_ISDIR(mode):
        git_dir = entry
    elif stat.S_ISREG(mode) and may_leave:
        git_dir = _linked_directory(entry)
    else:
        raise NotAttached("its .git is not a directory")
    repository = Repository(top, git_dir, _common_directory(git_dir, may_leave=may_leave))
    try:
        for _ in _odd_entries(repository):
            raise NotAttached("its git repository uses links, or the objects of another repository")
        if not (repository.common_dir / "objects").is_dir() or not (git_dir / "HEAD").is_file():
            raise NotAttached("its .git is not a git repository")
    except OSError as error:
        raise NotAttached(f"its git repository cannot be read: {error.strerror}") from None
    return repository


def _linked_directory(entry: Path) -> Path:
    """Return the directory that a `.git` file of a worktree or a submodule names, if that one names the file too."""
    _, mark, named = (read_small(entry) or "").strip().partition("gitdir: ")
    git_dir = Path(os.path.realpath(entry.parent / named))
    if not mark or not git_dir.is_dir():
        raise NotAttached("its .git is not a git repository")
    back = (read_small(git_dir / "gitdir") or "").strip()
    if not back:
        lines = (line.partition("=") for line in (read_small(git_dir / "config") or "").splitlines())
        named = next((value.strip().strip('"') for name, _, value in lines if name.strip() == "worktree"), "")
        back = f"{named}/.git" if named else ""
    if not back or os.path.realpath(git_dir / back) != str(entry):
        raise NotAttached("its .git file names the repository of another directory")
    return git_dir


def _common_directory(git_dir: Path, *, may_leave: bool) -> Path:
    named = read_small(git_dir / "commondir")
    if named is None:
        return git_dir
    common = Path(os.path.realpath(git_dir / named.strip()))
    if not may_leave or git_dir.parent.parent != common:
        raise NotAttached("its git repository names another one")
    return common


def _odd_entries(repository: Repository) -> Iterator[str]:
    """Yield links, and files that name other object directories."""
    for place in {repository.git_dir, repository.common_dir}:
        yield from (name for name in _PLAIN_PARTS if (place / name).is_symlink())
    objects = repository.common_dir / "objects"
    alternates = objects / "info" / "alternates"
    if os.path.lexists(alternates) and (not alternates.is_file() or alternates.stat().st_size):
        yield "alternates"
    seen = 0
    with os.scandir(objects) as found:
        directories = list(found)
    for directory in directories:
        if directory.is_symlink():
            yield directory.name
        if not directory.is_dir() or not (
            directory.name in ("pack", "info") or _OBJECT_DIRECTORY.fullmatch(directory.name)
        ):
            continue
        with os.scandir(directory) as files:
            for each in files:
                seen += 1
                if each.is_symlink():
                    yield each.name
                if seen > MAX_OBJECT_FILES:
                    raise NotAttached("its git repository has too many loose objects; `git gc` packs them")


def _resolve_head(repository: Repository) -> str | None:
    text = (read_small(repository.git_dir / "HEAD") or "").strip()
    for _ in range(_MAX_REFS):
        if _HASH.fullmatch(text):
            return text
        name = text.removeprefix("ref: ").strip()
        if not _REF.fullmatch(name) or ".." in name.split("/") or name.endswith("/.invalid"):
            raise NotAttached("its git repository has a HEAD in an unknown format")
        text = (read_small(repository.common_dir / name) or "").strip() or _packed_ref(repository, name)
        if not text:
            return None
    raise NotAttached("its git repository has a HEAD in an unknown format")


def _packed_ref(repository: Repository, name: str) -> str:
    for line in (read_small(repository.common_dir / "packed-refs") or "").splitlines():
        found, _, packed = line.partition(" ")
        if packed == name:
            return found
    return ""


def read_small(path: Path) -> str | None:
    """Return the text of a small file without following links; None if there is none."""
    try:
        with open_regular_file(Path(os.path.normpath(path))) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, InvalidValue):
        return None
    if len(data) > MAX_FILE_BYTES:
        raise NotAttached("its git repository has a very large settings file")
    return data.decode("utf-8", "replace")


def has_odd_name(names: bytes) -> bool:
    """Whether names of an index, each followed by a zero byte, lead out of the work tree or into `.git`.

    Git itself never stores such names, but it opens the files that they name.
    """
    return _ODD_NAME.search(names) is not None


def is_inside(path: Path, directory: Path) -> bool:
    """Whether the directory of a file is inside of another one, after following links; the file may be a link."""
    return Path(os.path.realpath(path.parent)).is_relative_to(directory)
