"""Reads the files of a skill: only those inside of its directory, and only those that no other user can change."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hermes.agent.safety.protected_names import has_secret_name
from hermes.agent.safety.visible_text import make_path_visible
from hermes.errors import ConfigError, InvalidValue, NotFound
from hermes.trust import refuse_settings_of_others

MAX_BYTES = 256 * 1024
MAX_LISTED = 100

_MAX_PARTS = 6
_MAX_PATH = 300
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def check_path(path: str) -> tuple[str, ...]:
    """Return the parts of a path inside a skill; raise `InvalidValue` for one that could lead out of it."""
    parts = tuple(path.split("/"))
    is_plain = all(each and not each.startswith(".") and each.isprintable() and "\\" not in each for each in parts)
    if not is_plain or len(parts) > _MAX_PARTS or len(path) > _MAX_PATH:
        raise InvalidValue(
            f"{make_path_visible(path[:80])} is not a path inside a skill",
            hint="use a relative path such as scripts/run.py, without .. and hidden names",
        )
    if has_secret_name(f"/{path.casefold()}"):
        raise InvalidValue(f"{make_path_visible(path)} has the name of a file with secrets, which no skill may have")
    return parts


def read_skill_file(directory: Path, path: str) -> str:
    """Return a text file of a skill; raise `NotFound`, `InvalidValue` or `ConfigError` if it cannot be used."""
    parts = check_path(path)
    refuse_tree_of_others(directory, parts)
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK)
    try:
        for each in parts[:-1]:
            inner = os.open(each, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=opened)
            os.close(opened)
            opened = inner
        fd = os.open(parts[-1], os.O_RDONLY | _NO_LINK, dir_fd=opened)
    except FileNotFoundError:
        raise NotFound(f"the skill has no file {make_path_visible(path)}") from None
    except OSError:
        raise InvalidValue(
            f"{make_path_visible(path)} is not a file inside the skill's directory; links are not followed"
        ) from None
    finally:
        os.close(opened)
    return _read_text(fd, path)


def list_files(directory: Path) -> list[str]:
    """Return the paths of the files of a skill, sorted, at most `MAX_LISTED`; links and hidden files are left out."""
    found: list[str] = []
    waiting = [""]
    while waiting and len(found) < MAX_LISTED:
        prefix = waiting.pop(0)
        for entry in _entries(directory / prefix):
            path = f"{prefix}{entry.name}"
            if entry.is_dir(follow_symlinks=False) and path.count("/") < _MAX_PARTS - 1:
                waiting.append(f"{path}/")
            elif entry.is_file(follow_symlinks=False) and not has_secret_name(f"/{path.casefold()}"):
                found.append(path)
    return sorted(found[:MAX_LISTED])


def refuse_tree_of_others(directory: Path, parts: tuple[str, ...] = ()) -> None:
    """Raise `ConfigError` if another user can change a directory of a skill, or a file in it."""
    path = directory
    refuse_settings_of_others(path)
    for each in parts:
        path = path / each
        refuse_settings_of_others(path)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return sorted(
                (each for each in entries if not each.name.startswith(".") and each.name.isprintable()),
                key=lambda each: each.name,
            )[: 10 * MAX_LISTED]
    except OSError:
        return []  # it was deleted or cannot be read


def _read_text(fd: int, path: str) -> str:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise InvalidValue(f"{make_path_visible(path)} is not a plain file")
    with os.fdopen(fd, "rb") as file:
        if status.st_nlink > 1:
            raise ConfigError(f"{make_path_visible(path)} is a hard link, so it is not used", hint="make a copy of it")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InvalidValue(f"{make_path_visible(path)} has more than {MAX_BYTES} bytes, the limit for a skill")
    if b"\0" in data:
        raise InvalidValue(f"{make_path_visible(path)} is not a text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidValue(f"{make_path_visible(path)} is not UTF-8 text") from None
