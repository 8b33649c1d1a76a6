"""The configuration: `config.yaml` in the Hermes home, typed and checked.

A section is one frozen dataclass and one field of `Config`: all that `hermes.settings` needs to read and check it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from hermes.envfile import parse_env
from hermes.errors import ConfigError
from hermes.home import DB_FILENAME, get_hermes_home
from hermes.settings import not_a_setting, read_settings, setting, settings_by_name

CONFIG_FILENAME = "config.yaml"
ENV_FILENAME = ".env"

_MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class SessionDBConfig:
    """`sessiondb`: where sessions are kept."""

    provider: Literal["sqlite", "postgresql", "mysql"] = "sqlite"
    path: str | None = None
    dsn: str | None = setting(None, secret=True)
    write_timeout_s: float = setting(30.0, above=0)

    def sqlite_file(self, home: Path) -> Path:
        """The SQLite database: `path`, taken from the Hermes home when it is relative, or `state.db` there."""
        return home / os.path.expanduser(self.path or DB_FILENAME)


@dataclass(frozen=True, slots=True)
class SessionsConfig:
    """`sessions`: how long sessions are kept."""

    auto_prune: bool = False
    retention_days: int = setting(90, at_least=1)
    min_interval_hours: float = setting(24.0, at_least=0)
    vacuum_after_prune: bool = True
    retention_by_source: Mapping[str, float] = settings_by_name(at_least=0)
    secure_delete: bool = False


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, and what the person should be told about the files they came from."""

    sessiondb: SessionDBConfig = field(default_factory=SessionDBConfig)
    sessions: SessionsConfig = field(default_factory=SessionsConfig)
    warnings: tuple[str, ...] = not_a_setting(())


def load_config(home: Path | None = None, *, environ: Mapping[str, str] = os.environ) -> Config:
    """The settings of `home`, defaults where it says nothing; `.env` and then `environ` feed `${VAR}`."""
    home = home or get_hermes_home()
    env_file, config_file = home / ENV_FILENAME, home / CONFIG_FILENAME
    variables, problems = parse_env(_read(env_file) or b"")
    config, warnings = read_settings(
        Config, _decode(_read(config_file) or b"", config_file), file=config_file, variables={**variables, **environ}
    )
    return replace(config, warnings=(*(f"{env_file}, {problem}" for problem in problems), *warnings))


def _read(path: Path) -> bytes | None:
    """The content of `path`, or None when there is no such file."""
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_BYTES:
            return path.read_bytes()
    except FileNotFoundError:
        if not path.is_symlink():
            return None
        raise ConfigError(f"{path} is a link to {os.readlink(path)}, which does not exist") from None
    except NotADirectoryError:
        raise ConfigError(
            f"{path.parent} should be a directory, but it is a file",
            hint="move it away, or set HERMES_HOME to another directory",
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"{path} should be a file, but it is something else", hint="move it away")
    raise ConfigError(f"{path} has {status.st_size} bytes, more than the {_MAX_BYTES} that are read")


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8 text", hint="save the file as UTF-8") from None
