"""Places that an agent does not read, whoever allows it: where keys, passwords and other people's words are kept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hermes.errors import InvalidValue

_OF_SYSTEM = (
    *("/proc", "/sys", "/dev", "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-"),
    *("/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private"),
)
_OF_PERSON = (
    *(".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".password-store"),
    *(".config/gh", ".config/gcloud", ".local/share/keyrings", "Library/Keychains"),
    *(".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zprofile", ".zshenv", ".zlogin"),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history"),
    *(".npmrc", ".pypirc", ".my.cnf", ".vault-token"),
)
OF_HERMES = ("memories", "approvals", "sessions", "profiles", "backups", "logs")
_NAMES = re.compile(
    r"\.env(?:rc|\..+)?|\.netrc|\.pgpass|\.git-credentials|\.htpasswd"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:\..+)?"
    r"|.+\.(?:pem|key|p12|pfx|jks|keystore|kdbx)"
    r"|.+\.(?:db|sqlite|sqlite3)(?:-(?:wal|shm|journal))?"
)
_HARMLESS = re.compile(r"\.env\.(?:example|sample|template|dist)|id_\w+\.pub")
_BESIDE_DATABASE = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Place:
    """A path as it was named, and where it leads through all links."""

    named: Path
    real: Path


def place_of(text: str, cwd: Path, user_home: Path) -> Place:
    """The place that somebody in `cwd` means."""
    if not text or "\0" in text:
        raise InvalidValue(f"{text!r} is not a path")
    if text == "~" or text.startswith("~/"):
        text = f"{user_home}{text[1:]}"
    return Place(Path(os.path.normpath(cwd / text)), Path(os.path.realpath(cwd / text)))


class ProtectedPlaces:
    """What is not read for one person, one Hermes home and one store."""

    def __init__(self, user_home: Path, hermes_home: Path, database: Path | None = None) -> None:
        self._databases = [f"{database}{suffix}" for suffix in _BESIDE_DATABASE] if database else []
        self._of_person = _both_ways(user_home / each for each in _OF_PERSON)
        self._of_hermes = _both_ways(hermes_home / each for each in OF_HERMES)
        self._homes = _both_ways([hermes_home])
        self._of_system = _both_ways(map(Path, _OF_SYSTEM))

    def reason(self, place: Place) -> str | None:
        """Why a place is not read, in words that follow "because", or None if it may be."""
        return self._reason(place.named) or self._reason(place.real)

    def _reason(self, path: Path) -> str | None:
        folded = _folded(path)
        if _is_in(folded, self._of_system):
            return "it belongs to the system"
        if _is_in(folded, self._of_person):
            return "keys, passwords and shell settings are kept there"
        is_in_home = os.path.dirname(folded) in self._homes and not path.is_dir()
        if is_in_home or _is_in(folded, self._of_hermes) or self._is_database(path):
            return "Hermes keeps its own files there"
        name = os.path.basename(folded)
        if _NAMES.fullmatch(name) and not _HARMLESS.fullmatch(name):
            return "files of such names hold secrets or databases"
        return None

    def _is_database(self, path: Path) -> bool:
        """Whether it is a file of the store under any name: to open and close it here would drop SQLite's locks."""
        for each in self._databases:
            try:
                if os.path.samefile(path, each):
                    return True
            except OSError:
                continue  # one of the two does not exist
        return False


def _both_ways(paths: Iterable[Path]) -> frozenset[str]:
    """Places as they are named and where they lead."""
    listed = list(paths)
    return frozenset(map(_folded, [*listed, *(Path(os.path.realpath(each)) for each in listed)]))


def _folded(path: Path) -> str:
    """A path as file systems that ignore case compare it."""
    return str(path).casefold()


def _is_in(folded: str, places: frozenset[str]) -> bool:
    """Whether a path is one of the places or lies in one."""
    return folded in places or any(folded.startswith(f"{place}/") for place in places)
