"""The environment variables of commands that an agent runs: what they need, and no secrets."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Mapping
from pathlib import Path

NEEDED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "LANG", "LANGUAGE", "NO_COLOR"),
        *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
        "HERMES_HOME",  # so that `hermes` in a command uses the same store
    }
)
_LOCALE = "LC_"
_OWN_STATUS, _ENVIRONMENT_START = Path("/proc/self/stat"), 47
"""The file with the addresses of a process's memory, and the place of two of them behind the name of the program."""
_SECRET = re.compile(r"PASSW|SECRET|CREDENTIAL|APIKEY|(?:^|_)(?:KEY|TOKEN|PASS|AUTH|DSN)S?(?:$|_)", re.IGNORECASE)


def command_environment(environ: Mapping[str, str], passed: Collection[str] = ()) -> dict[str, str]:
    """Return the variables for a command: the harmless ones that it needs, and those in `passed`."""
    kept = {name: value for name, value in environ.items() if name in passed or _is_harmless(name)}
    if "PATH" in kept:
        # A relative entry would run any program named `ls` in a downloaded directory.
        kept["PATH"] = os.pathsep.join(each for each in kept["PATH"].split(os.pathsep) if os.path.isabs(each))
    return kept


def read_only_environment(environ: Mapping[str, str], untrusted: Collection[Path]) -> dict[str, str] | None:
    """Return the variables for a command that runs without approval, or None if no program directory is trusted.

    PATH has only directories of the system outside `untrusted`: a program named `ls` in a project or in the user's
    own directory is another program.
    """
    kept = command_environment(environ)
    trusted = [each for each in kept.get("PATH", "").split(os.pathsep) if each and _is_of_system(each, untrusted)]
    return {**kept, "PATH": os.pathsep.join(trusted)} if trusted else None


def holds_secret(name: str, value: str) -> bool:
    """Whether a variable holds a secret, by its name, or because its value is an address with a password."""
    return is_secret_name(name) or any(map(_has_password, value.split()))


def _has_password(text: str) -> bool:
    """Whether a text without blanks is an address with a password."""
    _, mark, rest = text.partition("://")
    user, at, _ = rest.rpartition("@")
    return bool(mark and at and ":" in user)


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name usually holds a secret."""
    return _SECRET.search(name) is not None


def hide_own_secrets() -> None:
    """Overwrite the secrets that `/proc` shows of this process, so that no command can read them there.

    The system shows the memory in which a process got its variables. Their values are set once more elsewhere, so this
    process and its libraries still have them. Only Linux has this memory in a known place.
    """
    names = [name for name, value in os.environ.items() if holds_secret(name, value)]
    if not names or not _OWN_STATUS.exists():
        return
    import ctypes  # takes milliseconds that only those with a secret need to spend

    fields = _OWN_STATUS.read_text().rpartition(")")[2].split()
    start, end = (int(each) for each in fields[_ENVIRONMENT_START : _ENVIRONMENT_START + 2])
    at = start
    for entry in ctypes.string_at(start, end - start).split(b"\0"):
        name, separator, value = entry.partition(b"=")
        if separator and os.fsdecode(name) in names:
            ctypes.memset(at + len(name) + 1, ord("*"), len(value))
        at += len(entry) + 1
    for secret in names:
        os.environ[secret] = os.environ[secret]


def _is_of_system(directory: str, untrusted: Collection[Path]) -> bool:
    """Whether only the administrator can write to a directory."""
    real = Path(os.path.realpath(directory))
    if any(real.is_relative_to(each) for each in untrusted):
        return False
    try:
        status = real.stat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == 0 and not status.st_mode & 0o022


def _is_harmless(name: str) -> bool:
    return name in NEEDED or (name.startswith(_LOCALE) and not is_secret_name(name))
