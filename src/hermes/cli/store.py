"""Opening the configured session store for a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes.cli.display.terminal import write_stderr, write_stderr_json
from hermes.config import Config, load_config
from hermes.errors import StoreUnavailable
from hermes.home import get_hermes_home
from hermes.state.provider import SessionDBProvider, open_session_db


def read_config(*, as_json: bool) -> Config:
    """Load the settings and write their warnings to stderr."""
    config = load_config()
    for warning in config.warnings:
        if as_json:
            write_stderr_json({"warning": {"message": warning}})
        else:
            write_stderr(f"Warning: {warning}")
    return config


def database_file(config: Config) -> Path:
    """The path of the SQLite database, whether or not it exists."""
    return config.sessiondb.sqlite_file(get_hermes_home())


def no_sessions_message(path: Path) -> str:
    """The message about a store that has no sessions."""
    return (
        f"No sessions yet in {path}. Start one with `hermes`; if you expected some, check HERMES_HOME and"
        " sessiondb.path."
    )


@contextmanager
def open_for_reading(config: Config) -> Iterator[SessionDBProvider | None]:
    """Open the store read-only and yield it, or yield None if there is no database: reading never creates one."""
    if config.sessiondb.provider == "sqlite" and not _exists(database_file(config)):
        yield None
        return
    with open_session_db(config, read_only=True) as store:
        yield store


@contextmanager
def open_for_change(config: Config) -> Iterator[SessionDBProvider | None]:
    """Open the store and yield it, or yield None if there is no database: there is nothing to change in a new one."""
    if config.sessiondb.provider == "sqlite" and not _exists(database_file(config)):
        yield None
        return
    with open_session_db(config) as store:
        yield store


def sessions_dir() -> Path:
    """The directory in which programs keep transcripts of sessions."""
    return get_hermes_home() / "sessions"


def _exists(path: Path) -> bool:
    """Whether `path` exists. A broken link counts, so that opening it reports the mistake."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreUnavailable(
            f"the session database {path} cannot be reached: {error.strerror}",
            hint="check its parent directories",
        ) from error
    return True
