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
from hermes.trust import refuse_home_of_others, refuse_settings_of_others

CONFIG_FILENAME = "config.yaml"
ENV_FILENAME = ".env"
BACKUPS = "backups"

Mode = Literal["ask", "allow", "deny"]
ChatMode = Literal["ask", "deny"]
"""Chat platforms never get `allow`, because strangers can write there."""
CHAT_MODE_HINT = "write `ask` (the operator decides) or `deny`; `allow` works only in the terminal, as approvals.mode"

_MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class PostgreSQLConfig:
    """`sessiondb.postgresql`: settings that only PostgreSQL has."""

    synchronous_commit: bool = True
    statement_timeout_s: float | None = setting(None, above=0)
    lock_timeout_s: float | None = setting(None, above=0)
    stemming: Literal["english"] | None = None


@dataclass(frozen=True, slots=True)
class SessionDBConfig:
    """`sessiondb`: where sessions are stored."""

    provider: str = "sqlite"
    path: str | None = None
    dsn: str | None = setting(None, secret=True)
    write_timeout_s: float = setting(30.0, above=0)
    schema: str | None = None
    connect_timeout_s: float = setting(10.0, above=0)
    pool_min_size: int = setting(1, at_least=0)
    pool_max_size: int = setting(10, at_least=1)
    pool_timeout_s: float = setting(30.0, above=0)
    postgresql: PostgreSQLConfig = field(default_factory=PostgreSQLConfig)

    def sqlite_file(self, home: Path) -> Path:
        """The SQLite file: `path` (relative to the Hermes home), or `state.db` in the home."""
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
class BackupConfig:
    """`backup`: the directory of backups, and how many to keep."""

    directory: str | None = None
    keep: int = setting(7, at_least=1)

    def folder(self, home: Path) -> Path:
        """The backup directory: `directory` (relative to the Hermes home), or `backups` in the home."""
        return home / os.path.expanduser(self.directory or BACKUPS)


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """`model` and `model.auxiliary`: the model and its endpoint."""

    provider: (
        Literal["openai", "openrouter", "anthropic", "ollama", "lmstudio", "llamacpp", "local", "custom", "offline"]
        | None
    ) = None
    default: str | None = None
    base_url: str | None = None
    api_key: str | None = setting(None, secret=True)
    allow_http: bool = False


@dataclass(frozen=True, slots=True)
class TimeoutsConfig:
    """`model.timeouts`: how long to wait for a model."""

    connect_s: float = setting(10.0, above=0)
    first_token_s: float = setting(300.0, above=0)
    between_tokens_s: float = setting(120.0, above=0)
    total_s: float = setting(1800.0, above=0)


@dataclass(frozen=True, slots=True)
class PricesConfig:
    """`model.prices.<name>`: the price of a model, in US dollars per million tokens."""

    input: float | None = setting(None, at_least=0)
    output: float | None = setting(None, at_least=0)
    cache_read: float | None = setting(None, at_least=0)
    cache_write: float | None = setting(None, at_least=0)


@dataclass(frozen=True, slots=True)
class ModelConfig(EndpointConfig):
    """`model`: the model that answers the user."""

    context_tokens: int | None = setting(None, at_least=1)
    attempts: int = setting(4, at_least=1)
    timeouts: TimeoutsConfig = field(default_factory=TimeoutsConfig)
    prices: Mapping[str, PricesConfig] = settings_by_name()
    auxiliary: EndpointConfig = field(default_factory=EndpointConfig)


@dataclass(frozen=True, slots=True)
class TerminalConfig:
    """`terminal`: the commands that an agent runs."""

    env_passthrough: tuple[str, ...] = field(default_factory=tuple)
    kill_at_exit: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalsConfig:
    """`approvals`: what an agent may do."""

    mode: Mode = "ask"
    """At the terminal."""
    sources: Mapping[str, ChatMode] = settings_by_name(hint=CHAT_MODE_HINT)
    """On chat platforms. A platform without an entry uses `ask`."""


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """`memory`: what an agent remembers about people."""

    max_characters: int = setting(4_000, at_least=200)


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """`agent`: how an agent works."""

    max_steps: int = setting(50, at_least=1)
    auto_title: bool = True
    pass_session_id: bool = False


@dataclass(frozen=True, slots=True)
class CompressionConfig:
    """`compression`: when to compress a conversation, and which messages to keep unchanged."""

    enabled: bool = True
    threshold: float = setting(0.5, above=0)
    target_ratio: float = setting(0.2, above=0)
    protect_first_n: int = setting(3, at_least=0)
    protect_last_n: int = setting(8, at_least=0)


@dataclass(frozen=True, slots=True)
class AuxiliaryConfig:
    """`auxiliary`: how long the auxiliary model may take."""

    title_timeout_s: float = setting(30.0, above=0)
    summary_timeout_s: float = setting(120.0, above=0)


@dataclass(frozen=True, slots=True)
class DisplayConfig:
    """`display`: what the terminal shows."""

    resume_display: Literal["full", "minimal"] = "full"
    resume_exchanges: int = setting(10, at_least=1)
    resume_max_user_chars: int = setting(300, at_least=1)
    resume_max_assistant_chars: int = setting(200, at_least=1)
    resume_max_assistant_lines: int = setting(3, at_least=1)
    resume_skip_tool_only: bool = False


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, and warnings for the user about the files they came from."""

    sessiondb: SessionDBConfig = field(default_factory=SessionDBConfig)
    sessions: SessionsConfig = field(default_factory=SessionsConfig)
    backup: BackupConfig = field(default_factory=BackupConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    tools: Mapping[str, tuple[str, ...]] = settings_by_name()
    terminal: TerminalConfig = field(default_factory=TerminalConfig)
    approvals: ApprovalsConfig = field(default_factory=ApprovalsConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    compression: CompressionConfig = field(default_factory=CompressionConfig)
    auxiliary: AuxiliaryConfig = field(default_factory=AuxiliaryConfig)
    display: DisplayConfig = field(default_factory=DisplayConfig)
    warnings: tuple[str, ...] = not_a_setting(())


def load_config(home: Path | None = None, *, environ: Mapping[str, str] = os.environ) -> Config:
    """Return the settings in `home`, with defaults for missing ones. `.env` and then `environ` supply `${VAR}`."""
    home = home or get_hermes_home()
    refuse_home_of_others(home)
    env_file, config_file = home / ENV_FILENAME, home / CONFIG_FILENAME
    variables, problems = parse_env(_read(env_file) or b"")
    config, warnings = read_settings(
        Config, _decode(_read(config_file) or b"", config_file), file=config_file, variables={**variables, **environ}
    )
    return replace(config, warnings=(*(f"{env_file}, {problem}" for problem in problems), *warnings))


def load_variables(home: Path | None = None, *, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of `.env` in `home`, overridden by `environ`."""
    home = home or get_hermes_home()
    refuse_home_of_others(home)
    variables, _ = parse_env(_read(home / ENV_FILENAME) or b"")
    return {**variables, **environ}


def _read(path: Path) -> bytes | None:
    """Return the content of `path`, or None if the file does not exist."""
    refuse_settings_of_others(path)
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
        raise ConfigError(f"{path} should be a file, but it is not", hint="move it away")
    raise ConfigError(f"{path} has {status.st_size} bytes; the limit is {_MAX_BYTES}")


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8 text", hint="save the file as UTF-8") from None
