"""Parse the address of a store: a file, or the DSN of a server."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from hermes.config import Config, SessionDBConfig
from hermes.errors import InvalidValue
from hermes.home import get_hermes_home
from hermes.state.operations import Operations, read

_SCHEMES = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
}
_scheme = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_misspelt = re.compile(rf"({'|'.join(_SCHEMES)}):", re.IGNORECASE)
_conninfo = re.compile(r"\s*(host|hostaddr|port|dbname|user|password|service)\s*=")
"""A libpq connection string that is not a URL."""


def config_for(text: str, config: Config) -> Config:
    """Return the configuration for the store at a path or DSN; other settings stay."""
    own = config.sessiondb
    if text == own.dsn and own.provider != "sqlite":
        return config
    if (scheme := _scheme.match(text)) is not None:
        if scheme[1].lower() not in _SCHEMES:
            # Do not show the address itself: it may have a password.
            raise InvalidValue(
                f"unknown kind of store: {scheme[1]}://",
                hint="use a file, or a DSN such as postgresql://user@host/database",
            )
        return _config_at(config, provider=_SCHEMES[scheme[1].lower()], dsn=text)
    if _misspelt.match(text):
        # As a file name it would be shown, perhaps with a password.
        raise InvalidValue(
            "this is neither a file nor a DSN: :// is missing after the kind of database",
            hint="write a DSN such as postgresql://user@host/database, or a file as ./name",
        )
    if _conninfo.match(text):
        return _config_at(config, provider="postgresql", dsn=text)
    return config_for_file(config, Path(text))


def config_for_file(config: Config, path: Path | None = None) -> Config:
    """Return the configuration for a file: this one, or the configured one, or `state.db` in the home."""
    file = config.sessiondb.sqlite_file(get_hermes_home()) if path is None else path.expanduser().absolute()
    return replace(config, sessiondb=replace(config.sessiondb, provider="sqlite", path=str(file), dsn=None))


def display_address(store: Operations) -> str:
    """Return the address of a store, without secrets."""
    known = store._engine.describe()
    if "path" in known:
        return str(Path(known["path"]).resolve())
    return str(known.get("database") or store._engine.name)


def identity_of(store: Operations) -> tuple[str, float | None]:
    """Return the identity of a store: its address, and when it was created, if it is ours."""
    # Two schemas of one database may have the same address.
    return display_address(store), read(store, lambda tx: tx.value("SELECT MIN(applied_at) FROM hermes_ledger"))


def _config_at(config: Config, *, provider: str, dsn: str) -> Config:
    # The configured schema belongs to the configured DSN, not to this one.
    chosen: SessionDBConfig = replace(config.sessiondb, provider=provider, dsn=dsn, schema=None)
    return replace(config, sessiondb=chosen)
