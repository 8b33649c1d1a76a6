"""Profiles: other Hermes homes of the same user, each with its own store.

The profile `default` is the Hermes home itself; any other is in `profiles/<name>` below it.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from hermes.errors import HermesError, InvalidValue, NotFound, StoreUnavailable
from hermes.home import get_hermes_home
from hermes.state.provider import SessionDBProvider, open_session_db

DEFAULT = "default"
DIRECTORY = "profiles"

_name = re.compile("[a-z0-9_-]+")


def profile_names() -> list[str]:
    """Return the names of all profiles, the default one first."""
    try:
        found = os.listdir(_root() / DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return [DEFAULT]
    except OSError as error:
        raise StoreUnavailable(f"the profiles cannot be listed: {error.strerror}") from error
    return [DEFAULT, *sorted(each for each in found if each != DEFAULT and _is_profile(each))]


def open_profile(name: str) -> SessionDBProvider:
    """Open the store of a profile read-only."""
    from hermes.config import load_config

    home = _home(name)
    try:
        config = load_config(home)
        settings = replace(config.sessiondb, path=str(config.sessiondb.sqlite_file(home)))
        return open_session_db(replace(config, sessiondb=settings), read_only=True)
    except HermesError as error:
        raise StoreUnavailable(f"profile {name!r} cannot be read: {error}") from error


def _home(name: str) -> Path:
    if not _name.fullmatch(name):
        raise InvalidValue(
            f"{name!r} is not the name of a profile", hint="use lower-case letters, digits, hyphens and underscores"
        )
    if name != DEFAULT and not _is_profile(name):
        raise NotFound(f"there is no profile {name!r}", hint=f"profiles: {', '.join(profile_names())}")
    return _root() if name == DEFAULT else _root() / DIRECTORY / name


def _is_profile(name: str) -> bool:
    return _name.fullmatch(name) is not None and os.path.isdir(_root() / DIRECTORY / name)


def _root() -> Path:
    """Return the home of the default profile, also while another profile is in use."""
    home = get_hermes_home()
    return home.parent.parent if home.parent.name == DIRECTORY else home
