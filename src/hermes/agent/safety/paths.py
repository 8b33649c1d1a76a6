"""Protected places, which an agent never reads: they hold keys, passwords and private data."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hermes.agent.safety.hard_links import ProtectedFiles, has_other_names
from hermes.agent.safety.protected_names import (
    DIRECTORIES,
    HOME_PLACES,
    SHARED_MEMORY,
    SYSTEM_PLACES,
    has_secret_name,
)
from hermes.errors import InvalidValue

_TOP_LEVEL_PARTS = 2
_HOME_OF_ANYBODY = re.compile(r"/(?:home|users)/[^/]+|/mnt/[a-z](?:/users(?:/[^/]+)?)?", re.IGNORECASE)
"""The usual places of home directories; the user's own may be elsewhere, such as root's, or that of Windows on WSL."""

WORKSPACES = "workspaces"
"""The directory in the Hermes home whose subdirectories can be those of chats."""

_BESIDE_DATABASE = ("", "-wal", "-shm", "-journal")
_NAMED_LIKE_SECRETS = "files with such names contain secrets or databases"

IGNORED = dict.fromkeys(
    map(ord, "\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u206a\u206b\u206c\u206d\u206e\u206f\ufeff")
)
"""Characters that a file system of macOS leaves out of a name."""

_Places = tuple[str, ...]
"""Paths with folded case, each with a slash at its end."""

_TOP = Path("/")
_MAX_LINKS = 40
"""The limit of Linux."""
_MAX_CHARACTERS = 4_096


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """A path as given, and its target after following all links."""

    named: Path
    real: Path
    links: tuple[Path, ...] = ()
    """The links that were followed: a link in `/proc` has another target for every process."""


def resolve_path(text: str, cwd: Path, user_home: Path) -> ResolvedPath:
    """Resolve a path, relative to `cwd`."""
    if not text or "\0" in text or len(text) > _MAX_CHARACTERS:
        raise InvalidValue(f"{text[:80]!r} is not a path")
    if text == "~" or text.startswith("~/"):
        text = f"{user_home}{text[1:]}"
    elif text.startswith("/"):
        text = f"/{text.lstrip('/')}"
    links: list[Path] = []
    real = _follow_links(Path(os.path.realpath(cwd)), text, links)
    return ResolvedPath(Path(os.path.normpath(cwd / text)), real, tuple(links))


def is_special(path: Path) -> bool:
    """Whether a path is neither a file nor a directory, such as a pipe or a device."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_missing_here(word: str, directory: Path) -> bool:
    """Whether a word could only name an entry of a directory, and names none: most words of a command are no paths."""
    is_name = 0 < len(word) <= _MAX_CHARACTERS and "/" not in word and not word.startswith((".", "~"))
    return is_name and not os.path.lexists(directory / word)


def is_too_wide(root: Path, user_homes: Iterable[Path]) -> bool:
    """Whether a directory holds more than one project: a home directory, one above it, or a top-level one."""
    if len(root.parts) <= _TOP_LEVEL_PARTS or root == Path(SHARED_MEMORY) or _HOME_OF_ANYBODY.fullmatch(str(root)):
        return True
    return any(home.is_relative_to(root) for each in user_homes for home in (each, Path(os.path.realpath(each))))


def is_workspace(root: Path, hermes_home: Path) -> bool:
    """Whether a directory without links is below the workspaces in the Hermes home."""
    return Path(os.path.realpath(hermes_home)) / WORKSPACES in root.parents


class ProtectedPlaces:
    """The protected places for one user, one Hermes home and one store.

    The session's directory, if it is a workspace, is not protected as a part of the Hermes home.
    """

    def __init__(
        self, user_homes: Iterable[Path], hermes_home: Path, database: Path | None = None, root: Path | None = None
    ) -> None:
        homes = list(user_homes)
        self._workspace = _fold_case(root) if root is not None and is_workspace(root, hermes_home) else None
        self._databases = [f"{database}{suffix}" for suffix in _BESIDE_DATABASE] if database else []
        self._hidden = tuple(f"{each.rstrip('/')}/." for each in _both_ways(homes))
        self._in_homes = _both_ways(home / each for home in homes for each in HOME_PLACES) + _behind_links(homes)
        self._of_hermes = _both_ways([hermes_home])
        self._of_system = _both_ways(map(Path, SYSTEM_PLACES))
        self._files = ProtectedFiles(homes, hermes_home, WORKSPACES, root)

    def reason(self, place: ResolvedPath) -> str | None:
        """Return why a place is protected, in words that follow "because", or None if it may be read."""
        for path in dict.fromkeys((place.named, place.real, *place.links)):
            reason = self._reason(path)
            if reason is not None:
                return reason
        if self._files.has(place.real):
            return "it is a hard link to a protected file"
        if self._workspace is not None and has_other_names(place.real):
            return "it is a hard link, and its other names may be outside"
        return None

    def _reason(self, path: Path) -> str | None:
        folded = _fold_case(path)
        if _is_in(folded, self._of_system) and not folded.startswith(f"{SHARED_MEMORY}/"):
            return "it belongs to the system"
        if self._workspace is not None and _is_in(folded, (f"{self._workspace}/",)):
            has_secrets = self._is_database(path) or has_secret_name(folded.removeprefix(self._workspace))
            return _NAMED_LIKE_SECRETS if has_secrets else None
        if _is_in(folded, self._of_hermes) or self._is_database(path):
            return "Hermes stores its own files there"
        if _is_in(folded, self._in_homes) or folded.startswith(self._hidden):
            return "programs store keys, passwords and settings there"
        if has_secret_name(folded):
            return _NAMED_LIKE_SECRETS
        return None

    def _is_database(self, path: Path) -> bool:
        """Whether it is a file of the store, under any name: opening and closing it would release SQLite's locks."""
        try:
            status = path.stat()
        except OSError:
            return False  # it does not exist
        for each in self._databases:
            with suppress(OSError):  # there is none at the moment
                if os.path.samestat(status, os.stat(each)):
                    return True
        return False


def _follow_links(start: Path, text: str, links: list[Path]) -> Path:
    """Return the target of a path, starting at a real directory; append the followed links to `links`."""
    real, names = start, list(reversed(Path(text).parts))
    while names:
        name = names.pop()
        if name == "..":
            real = real.parent
            continue
        real = _TOP if name.startswith("/") else real / name  # two slashes are one
        if len(links) < _MAX_LINKS and os.path.islink(real):
            links.append(real)
            names += reversed(Path(os.readlink(real)).parts)
            real = real.parent
    return real


def _behind_links(homes: list[Path]) -> _Places:
    """Return the targets of hidden links in home directories: keys may be stored on another disk."""
    found: list[Path] = []
    for home in homes:
        found += [home / each for each in DIRECTORIES]
        try:
            with os.scandir(home) as entries:
                found += [Path(each.path) for each in entries if each.name.startswith(".") and each.is_symlink()]
        except OSError:
            continue  # the directory does not exist or cannot be read
    real = (Path(os.path.realpath(each)) for each in found)
    return _places(each for each in real if not is_too_wide(each, homes))


def _both_ways(paths: Iterable[Path]) -> _Places:
    """Return paths as given and after following links."""
    listed = list(paths)
    return _places([*listed, *(Path(os.path.realpath(each)) for each in listed)])


def _places(paths: Iterable[Path]) -> _Places:
    return tuple({f"{_fold_case(each)}/" for each in paths})


def _fold_case(path: Path) -> str:
    """Return a path as file systems compare it that ignore case, and some characters (HFS+)."""
    text = str(path)
    return text.casefold() if text.isascii() else text.translate(IGNORED).casefold()


def _is_in(folded: str, places: _Places) -> bool:
    """Whether a path is one of the places or inside one."""
    return f"{folded}/".startswith(places)
