"""Lasting permissions: one JSON file per owner, which people may read and edit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from hermes.agent.memory.lock_file import hold_lock
from hermes.agent.memory.owner_files import owner_file_stem
from hermes.agent.safety.visible_text import make_path_visible
from hermes.errors import ConfigError
from hermes.home import ensure_private_dir, read_plain_file, write_private_atomic
from hermes.log import warn
from hermes.state.owner import Owner

DIRECTORY = "approvals"
EDITING = "edit_file"
"""The tool of a permission to change a file."""
VERSION = 2

_EXACT, _OPTIONS = "exact", "options"
_OLD_VERSION = 1
"""Permissions of this version applied in every directory, and some to every command with the same first words."""


@dataclass(frozen=True, slots=True)
class Permit:
    """A permission of the user."""

    tool: str
    text: str
    directory: str = ""
    """The only directory in which it applies; empty if the directory does not matter."""
    with_options: bool = False
    """Whether it also covers other harmless options, or only the identical command."""
    is_for_kind: bool = False
    """Whether `text` is a kind of commands (`similar_commands`), all of which it covers; never stored in a file."""

    def __str__(self) -> str:
        if self.tool == EDITING:
            return "every change of this file"
        where = f" in {make_path_visible(self.directory)}" if self.directory else ""
        if self.is_for_kind:
            return f"`{self.text} *`{where}"
        if not self.with_options:
            return f"exactly this{where}"
        from hermes.agent.safety.commands import harmless_options

        return f"`{self.text}`{where}, also with {', '.join(harmless_options(self.text.split()))}"


class Permits:
    """The lasting permissions, in a directory of the Hermes home."""

    def __init__(self, home: Path) -> None:
        self._directory = home / DIRECTORY

    def of(self, owner: Owner) -> list[Permit]:
        """Return the permissions of an owner; an invalid file gives none and is logged."""
        try:
            return _parse_permits(self._read(owner))
        except ConfigError as error:
            warn(__name__, "%s; its permissions are ignored", error)
            return []

    def note(self, owner: Owner) -> str:
        """Return a remark if the owner's file is of an earlier version, else an empty string."""
        try:
            is_old = _is_old(self._read(owner))
        except ConfigError:
            return ""  # `of` logs it
        if not is_old:
            return ""
        return (
            f"The permissions in {self._path(owner)} are ignored: an earlier version wrote the file, without the"
            " directories in which they apply."
        )

    def add(self, owner: Owner, permit: Permit) -> None:
        """Store a lasting permission; raise `ConfigError` if the file is invalid."""
        ensure_private_dir(self._directory)
        path = self._path(owner)
        with hold_lock(path.with_suffix(".lock")):
            kept = self._read(owner)
            permits = _parse_permits(kept)
            if permit in permits:
                return
            if _is_old(kept):
                path.rename(_free_name(path))
            data = {"version": VERSION, "allowed": [_as_json(each) for each in [*permits, permit]]}
            write_private_atomic(path, json.dumps(data, indent=2).encode() + b"\n")

    def _read(self, owner: Owner) -> dict[str, Any]:
        """Return a file's content, of this version or an earlier one; raise `ConfigError` for anything else."""
        path = self._path(owner)
        try:
            data = json.loads(read_plain_file(path))
            if not _is_old(data):
                _parse_permits(data)
        except FileNotFoundError:
            return {"version": VERSION, "allowed": []}
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ConfigError(f"{path} is not a list of permissions", hint="correct it, or move it away") from None
        return dict(data)

    def _path(self, owner: Owner) -> Path:
        return self._directory / f"{owner_file_stem(owner)}.json"


def _is_old(data: Any) -> bool:
    return bool(data["version"] == _OLD_VERSION)


def _parse_permits(data: Any) -> list[Permit]:
    """Return the permissions in a file; a file of an earlier version gives none."""
    if _is_old(data):
        return []
    if data["version"] != VERSION:
        raise ValueError
    return [
        Permit(
            _require_text(each["tool"]),
            _require_text(each["text"]),
            _require_text(each["directory"]) if "directory" in each else "",
            with_options={_EXACT: False, _OPTIONS: True}[each["covers"]],
        )
        for each in data["allowed"]
    ]


def _as_json(permit: Permit) -> dict[str, str]:
    directory = {"directory": permit.directory} if permit.directory else {}
    covers = _OPTIONS if permit.with_options else _EXACT
    return {"tool": permit.tool, "text": permit.text, **directory, "covers": covers}


def _free_name(path: Path) -> Path:
    """Return an unused name for keeping a file of the old version."""
    endings = ("" if number == 1 else f"-{number}" for number in count(1))
    names = (path.with_suffix(f".version-{_OLD_VERSION}{ending}.json") for ending in endings)
    return next(each for each in names if not each.exists())


def _require_text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value
