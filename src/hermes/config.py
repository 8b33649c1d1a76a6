"""The configuration: `config.yaml` in the Hermes home, typed and checked.

A section is one class and one field of `Config`: all that `hermes.settings` needs to read and check it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from hermes.chat_settings import ChatSettings
from hermes.errors import ConfigError
from hermes.home import DB_FILENAME, get_hermes_home
from hermes.section import Section, not_a_setting, setting
from hermes.trust import refuse_home_of_others, refuse_settings_of_others

CONFIG_FILENAME = "config.yaml"
ENV_FILENAME = ".env"
BACKUPS = "backups"

Mode = Literal["ask", "allow", "deny"]
ChatMode = Literal["ask", "deny"]
"""Chat platforms never get `allow`, because strangers can write there."""
CHAT_MODE_HINT = "write `ask` (the operator decides) or `deny`; `allow` works only in the terminal, as approvals.mode"

WebBackend = Literal["firecrawl", "parallel", "tavily", "direct"]

_MAX_BYTES = 256 * 1024


class PostgreSQLConfig(Section):
    """`sessiondb.postgresql`: settings that only PostgreSQL has."""

    synchronous_commit: bool = True
    statement_timeout_s: float | None = setting(default=None, above=0)
    lock_timeout_s: float | None = setting(default=None, above=0)
    stemming: Literal["english"] | None = None


class SessionDBConfig(Section):
    """`sessiondb`: where sessions are stored."""

    provider: str = "sqlite"
    path: str | None = None
    dsn: str | None = setting(default=None, secret=True)
    write_timeout_s: float = setting(default=30.0, above=0)
    schema: str | None = None
    connect_timeout_s: float = setting(default=10.0, above=0)
    pool_min_size: int = setting(default=1, at_least=0)
    pool_max_size: int = setting(default=10, at_least=1)
    pool_timeout_s: float = setting(default=30.0, above=0)
    postgresql: PostgreSQLConfig = setting(default_factory=PostgreSQLConfig)

    def sqlite_file(self, home: Path) -> Path:
        """The SQLite file: `path` (relative to the Hermes home), or `state.db` in the home."""
        return home / os.path.expanduser(self.path or DB_FILENAME)


class SessionsConfig(Section):
    """`sessions`: how long sessions are kept."""

    auto_prune: bool = False
    retention_days: int = setting(default=90, at_least=1)
    min_interval_hours: float = setting(default=24.0, at_least=0)
    vacuum_after_prune: bool = True
    retention_by_source: Mapping[str, float] = setting(default_factory=dict, at_least=0)
    secure_delete: bool = False


class BackupConfig(Section):
    """`backup`: the directory of backups, and how many to keep."""

    directory: str | None = None
    keep: int = setting(default=7, at_least=1)

    def folder(self, home: Path) -> Path:
        """The backup directory: `directory` (relative to the Hermes home), or `backups` in the home."""
        return home / os.path.expanduser(self.directory or BACKUPS)


class EndpointConfig(Section):
    """`model` and `model.auxiliary`: the model and its endpoint."""

    provider: (
        Literal["openai", "openrouter", "anthropic", "ollama", "lmstudio", "llamacpp", "local", "custom", "offline"]
        | None
    ) = None
    default: str | None = None
    base_url: str | None = None
    api_key: str | None = setting(default=None, secret=True)
    allow_http: bool = False


class TimeoutsConfig(Section):
    """`model.timeouts`: how long to wait for a model."""

    connect_s: float = setting(default=10.0, above=0)
    first_token_s: float = setting(default=300.0, above=0)
    between_tokens_s: float = setting(default=120.0, above=0)
    total_s: float = setting(default=1800.0, above=0)


class PricesConfig(Section):
    """`model.prices.<name>`: the price of a model, in US dollars per million tokens."""

    input: float | None = setting(default=None, at_least=0)
    output: float | None = setting(default=None, at_least=0)
    cache_read: float | None = setting(default=None, at_least=0)
    cache_write: float | None = setting(default=None, at_least=0)


class ModelConfig(EndpointConfig):
    """`model`: the model that answers the user."""

    context_tokens: int | None = setting(default=None, at_least=1)
    attempts: int = setting(default=4, at_least=1)
    timeouts: TimeoutsConfig = setting(default_factory=TimeoutsConfig)
    prices: Mapping[str, PricesConfig] = setting(default_factory=dict)
    sees_images: Mapping[str, bool] = setting(default_factory=dict)
    auxiliary: EndpointConfig = setting(default_factory=EndpointConfig)


class TerminalConfig(Section):
    """`terminal`: the commands that an agent runs."""

    env_passthrough: tuple[str, ...] = setting(default_factory=tuple)
    kill_at_exit: bool = False


class ApprovalsConfig(Section):
    """`approvals`: what an agent may do."""

    mode: Mode = "ask"
    """At the terminal."""
    sources: Mapping[str, ChatMode] = setting(default_factory=dict, hint=CHAT_MODE_HINT)
    """On chat platforms. A platform without an entry uses `ask`."""


def is_sha256(text: str) -> bool:
    """Whether a text is a SHA-256 checksum in hexadecimal digits."""
    return len(text) == 64 and set(text.lower()) <= set("0123456789abcdef")


class SecurityConfig(Section):
    """`security`: the scan of commands before they run."""

    tirith_enabled: bool = True
    tirith_path: str = "tirith"
    tirith_timeout: float = setting(default=5.0, above=0)
    tirith_fail_open: bool = True
    tirith_install_url: str | None = None
    tirith_sha256: str | None = setting(default=None, is_id=True, check=is_sha256, expected="64 hexadecimal digits")
    tirith_cosign_key: str | None = None


class WebConfig(Section):
    """`web`: how an agent searches the web and reads pages."""

    backend: WebBackend | None = None
    firecrawl_url: str | None = None
    parallel_url: str | None = None
    tavily_url: str | None = None
    parallel_mode: Literal["fast", "one-shot", "agentic"] | None = None
    max_results: int = setting(default=5, at_least=1, at_most=20)
    max_bytes: int = setting(default=2_000_000, at_least=1_000, at_most=20_000_000)
    timeout_s: float = setting(default=30.0, above=0, at_most=600)
    extra_ports: tuple[int, ...] = setting(default_factory=tuple, at_least=1, at_most=65_535)
    proxy: str | None = setting(default=None, secret=True)


class MemoryConfig(Section):
    """`memory`: what an agent remembers about people."""

    max_characters: int = setting(default=4_000, at_least=200)


class AgentConfig(Section):
    """`agent`: how an agent works."""

    max_steps: int = setting(default=50, at_least=1)
    auto_title: bool = True
    pass_session_id: bool = False
    project_instructions: bool = True
    gateway_timeout: float = setting(default=1800.0, at_least=0)
    gateway_max_seconds: float = setting(default=0.0, at_least=0)
    gateway_notify_interval: float = setting(default=180.0, at_least=0)
    gateway_auto_continue_freshness: float = setting(default=3600.0, at_least=0)
    restart_drain_timeout: float = setting(default=180.0, at_least=0)


class CompressionConfig(Section):
    """`compression`: when to compress a conversation, and which messages to keep unchanged."""

    enabled: bool = True
    threshold: float = setting(default=0.5, above=0)
    target_ratio: float = setting(default=0.2, above=0)
    protect_first_n: int = setting(default=3, at_least=0)
    protect_last_n: int = setting(default=8, at_least=0)


class AuxiliaryConfig(Section):
    """`auxiliary`: how long the auxiliary model may take."""

    title_timeout_s: float = setting(default=30.0, above=0)
    summary_timeout_s: float = setting(default=120.0, above=0)


class DisplayConfig(Section):
    """`display`: what the terminal shows."""

    resume_display: Literal["full", "minimal"] = "full"
    resume_exchanges: int = setting(default=10, at_least=1)
    resume_max_user_chars: int = setting(default=300, at_least=1)
    resume_max_assistant_chars: int = setting(default=200, at_least=1)
    resume_max_assistant_lines: int = setting(default=3, at_least=1)
    resume_skip_tool_only: bool = False
    status_line: bool = True
    editing_mode: Literal["emacs", "vi"] = "emacs"
    notify: Literal["none", "bell", "desktop"] = "none"
    notify_after_s: float = setting(default=10.0, at_least=0)
    busy_input_mode: Literal["interrupt", "queue", "steer", "collect"] = "interrupt"
    busy_ack_enabled: bool = True


class Config(ChatSettings):
    """All settings, and warnings for the user about the files they came from."""

    sessiondb: SessionDBConfig = setting(default_factory=SessionDBConfig)
    sessions: SessionsConfig = setting(default_factory=SessionsConfig)
    backup: BackupConfig = setting(default_factory=BackupConfig)
    model: ModelConfig = setting(default_factory=ModelConfig)
    tools: Mapping[str, tuple[str, ...]] = setting(default_factory=dict)
    terminal: TerminalConfig = setting(default_factory=TerminalConfig)
    approvals: ApprovalsConfig = setting(default_factory=ApprovalsConfig)
    security: SecurityConfig = setting(default_factory=SecurityConfig)
    web: WebConfig = setting(default_factory=WebConfig)
    memory: MemoryConfig = setting(default_factory=MemoryConfig)
    agent: AgentConfig = setting(default_factory=AgentConfig)
    compression: CompressionConfig = setting(default_factory=CompressionConfig)
    auxiliary: AuxiliaryConfig = setting(default_factory=AuxiliaryConfig)
    display: DisplayConfig = setting(default_factory=DisplayConfig)
    warnings: tuple[str, ...] = not_a_setting(default=())


def load_config(home: Path | None = None, *, environ: Mapping[str, str] = os.environ) -> Config:
    """Return the settings in `home`, with defaults for missing ones. `.env` and then `environ` supply `${VAR}`."""
    home = home or get_hermes_home()
    refuse_home_of_others(home)
    env_file, config_file = home / ENV_FILENAME, home / CONFIG_FILENAME
    variables, problems = _read_env(env_file)
    found_in_env = tuple(f"{env_file}, {problem}" for problem in problems)
    text = _decode(_read(config_file) or b"", config_file)
    if not text.strip():
        return Config(warnings=found_in_env)
    from hermes.settings import read_settings

    config, warnings = read_settings(Config, text, file=config_file, variables={**variables, **environ})
    return replace(config, warnings=(*found_in_env, *warnings))


def load_variables(home: Path | None = None, *, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of `.env` in `home`, overridden by `environ`."""
    home = home or get_hermes_home()
    refuse_home_of_others(home)
    variables, _ = _read_env(home / ENV_FILENAME)
    return {**variables, **environ}


def _read_env(file: Path) -> tuple[dict[str, str], list[str]]:
    """Return the variables of a `.env` file, and its problems."""
    data = _read(file)
    if data is None:
        return {}, []
    from hermes.envfile import parse_env

    return parse_env(data)


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
