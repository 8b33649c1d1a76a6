"""Check who owns the settings: a file that another user can write could name any program or server."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from hermes.errors import ConfigError

OWNER_VARIABLE = "HERMES_HOME_OWNER"
_ROOT = 0


def refuse_home_of_others(home: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Raise unless the Hermes home belongs to this user, to root, or to the user that HERMES_HOME_OWNER names."""
    if os.name == "posix" and (status := _status(home)) is not None:
        _refuse_owner(home, status, environ)


def refuse_settings_of_others(file: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Raise if another user can write an existing settings file, or can replace it or the target of its link."""
    if os.name != "posix" or (status := _status(file)) is None:
        return
    _refuse_owner(file, status, environ)
    folder = Path(os.path.realpath(file)).parent
    own_mode = "700" if stat.S_ISDIR(status.st_mode) or status.st_mode & stat.S_IXUSR else "600"
    for path, mode in ((file, own_mode), (file.parent, "700"), (folder, "700")):
        found = _status(path)
        if found is not None and path == folder:
            _refuse_owner(path, found, environ)
        if found is not None and _others_can_write(found):
            from shlex import join  # late: only this error needs it

            raise ConfigError(
                f"other users can write to {path}, so its settings are not used",
                hint=f"check its content, then run: {join(['chmod', mode, str(path)])}",
            )


def _refuse_owner(path: Path, status: os.stat_result, environ: Mapping[str, str]) -> None:
    owner = status.st_uid
    if owner in (os.geteuid(), _ROOT) or environ.get(OWNER_VARIABLE, "").strip() == str(owner):
        return
    name = _name_of(owner)
    raise ConfigError(
        f"{path} belongs to {name} and not to you, so it is not used",
        hint=f"run Hermes as {name} (sudo -u, or --user in a container), or set HERMES_HOME to a directory of your own;"
        f" if {name} may decide what runs as you, set {OWNER_VARIABLE}={owner}",
    )


def _others_can_write(status: os.stat_result) -> bool:
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return False  # the sticky bit: a user cannot replace the files of another user
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_group_of_one(status.st_gid, status.st_uid)


def _is_group_of_one(group: int, user: int) -> bool:
    """Whether a group is the private group that many systems create for each user, without other members."""
    import grp
    import pwd

    try:
        found, person = grp.getgrgid(group), pwd.getpwuid(user)
    except KeyError:
        return False
    return found.gr_name == person.pw_name and set(found.gr_mem) <= {person.pw_name}


def _name_of(user: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a path; None if it is missing or cannot be reached, which the code that opens it reports."""
    try:
        return path.stat()
    except OSError:
        return None
