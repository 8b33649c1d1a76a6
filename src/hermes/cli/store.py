"""The configured session store, as the commands find it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes.cli.display.terminal import write_stderr
from hermes.config import Config, load_config
from hermes.errors import StoreUnavailable
from hermes.home import get_hermes_home
from hermes.state.provider import SessionDBProvider, open_session_db


def read_config(*, as_json: bool) -> Config:
    """The settings; what the person should know about their files is told on stderr."""
    config = load_config()
    for warning in config.warnings:
        write_stderr(json.dumps({"warning": {"message": warning}}) if as_json else f"Warning: {warning}")
    return config


def database_file(config: Config) -> Path:
    """Where the sessions lie, or would lie."""
    return config.sessiondb.sqlite_file(get_hermes_home())


def no_sessions_message(path: Path) -> str:
    """What is said of a store that has no sessions."""
    return (
        f"No sessions yet: nothing is stored in {path}. They appear here as soon as a program stores one;"
        " if you expected some, check HERMES_HOME and sessiondb.path."
    )


@contextmanager
def open_for_reading(config: Config) -> Iterator[SessionDBProvider | None]:
    """The store, only to be read, or None when nothing has been stored yet: reading creates no database."""
    if config.sessiondb.provider == "sqlite" and not _exists(database_file(config)):
        yield None
        return
    with open_session_db(config, read_only=True) as store:
        yield store


@contextmanager
def open_for_change(config: Config) -> Iterator[SessionDBProvider | None]:
    """The store, or None when nothing has been stored yet: what there is to change is not created first."""
    if config.sessiondb.provider == "sqlite" and not _exists(database_file(config)):
        yield None
        return
    with open_session_db(config) as store:
        yield store


def sessions_dir() -> Path:
    """Where programs keep the transcripts of sessions."""
    return get_hermes_home() / "sessions"


def _exists(path: Path) -> bool:
    """Whether there is something at `path`; a link that leads nowhere counts, for it is a mistake to be told of."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreUnavailable(
            f"the session database {path} cannot be reached: {error.strerror}",
            hint="check the directories on the way to it",
        ) from error
    return True
