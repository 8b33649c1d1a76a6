"""Lasting permissions: one file of JSON for each owner, which people may read and edit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes.agent.lockfile import locked
from hermes.agent.owners import owner_file_stem
from hermes.errors import ConfigError
from hermes.home import ensure_private_dir, write_private_atomic
from hermes.log import warn

DIRECTORY = "approvals"
VERSION = 1

_EXACT, _PREFIX = "exact", "prefix"


@dataclass(frozen=True, slots=True)
class Permit:
    """Something that a person has allowed."""

    tool: str
    text: str
    is_prefix: bool = False
    """Whether everything is allowed that begins with these words, or only the very same."""

    def __str__(self) -> str:
        return f"everything that begins with `{self.text}`" if self.is_prefix else "exactly this"


class Permits:
    """The permissions for good, in a directory of the Hermes home."""

    def __init__(self, home: Path) -> None:
        self._directory = home / DIRECTORY

    def of(self, owner: str | None) -> list[Permit]:
        """What an owner has allowed; a file that cannot be understood allows nothing, and a log record says so."""
        try:
            return self._read(owner)
        except ConfigError as error:
            warn(__name__, "%s; nothing that it may allow is allowed", error)
            return []

    def add(self, owner: str | None, permit: Permit) -> None:
        """Allow something for good; raises `ConfigError` if that cannot be kept."""
        ensure_private_dir(self._directory)
        path = self._path(owner)
        with locked(path.with_suffix(".lock")):
            permits = self._read(owner)
            if permit in permits:
                return
            allowed = [
                {"tool": each.tool, "text": each.text, "covers": _PREFIX if each.is_prefix else _EXACT}
                for each in [*permits, permit]
            ]
            write_private_atomic(path, json.dumps({"version": VERSION, "allowed": allowed}, indent=2).encode() + b"\n")

    def _read(self, owner: str | None) -> list[Permit]:
        path = self._path(owner)
        try:
            return _parsed(json.loads(path.read_bytes()))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ConfigError(f"{path} is not a list of permissions", hint="correct it, or move it away") from None

    def _path(self, owner: str | None) -> Path:
        return self._directory / f"{owner_file_stem(owner)}.json"


def _parsed(data: Any) -> list[Permit]:
    if data["version"] != VERSION:
        raise ValueError
    return [
        Permit(_text(each["tool"]), _text(each["text"]), is_prefix={_EXACT: False, _PREFIX: True}[each["covers"]])
        for each in data["allowed"]
    ]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value
