"""Where a store is that somebody names: a file, or an address of a server."""

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
"""How libpq writes an address that is no URL."""


def config_for(text: str, config: Config) -> Config:
    """The settings by which the store of this path or DSN is opened; what else is configured stays."""
    own = config.sessiondb
    if text == own.dsn and own.provider != "sqlite":
        return config
    if (scheme := _scheme.match(text)) is not None:
        if scheme[1].lower() not in _SCHEMES:
            # Not the address itself: there may be a password in it.
            raise InvalidValue(
                f"there is no store behind addresses that begin with {scheme[1]}://",
                hint="name a file, or a DSN such as postgresql://user@host/database",
            )
        return _config_at(config, provider=_SCHEMES[scheme[1].lower()], dsn=text)
    if _misspelt.match(text):
        # As the name of a file it would be shown, with the password that may be in it.
        raise InvalidValue(
            "this is neither a file nor a DSN: :// is missing after the kind of database",
            hint="write a DSN such as postgresql://user@host/database, or a file as ./name",
        )
    if _conninfo.match(text):
        return _config_at(config, provider="postgresql", dsn=text)
    return config_for_file(config, Path(text))


def config_for_file(config: Config, path: Path | None = None) -> Config:
    """The settings by which a file is opened: this one, or the one that sessions are kept in unless on a server."""
    file = config.sessiondb.sqlite_file(get_hermes_home()) if path is None else path.expanduser().absolute()
    return replace(config, sessiondb=replace(config.sessiondb, provider="sqlite", path=str(file), dsn=None))


def display_address(store: Operations) -> str:
    """Where a store is, without secrets."""
    known = store._engine.describe()
    if "path" in known:
        return str(Path(known["path"]).resolve())
    return str(known.get("database") or store._engine.name)


def identity_of(store: Operations) -> tuple[str, float | None]:
    """By what a store is told apart from others: where it is, and when it was made, if it is ours."""
    # Two schemas of a database may be in the same place, as far as it can be shown.
    return display_address(store), read(store, lambda tx: tx.value("SELECT MIN(applied_at) FROM hermes_ledger"))


def _config_at(config: Config, *, provider: str, dsn: str) -> Config:
    # An address that somebody writes stands for itself: the schema that is configured belongs to the configured one.
    chosen: SessionDBConfig = replace(config.sessiondb, provider=provider, dsn=dsn, schema=None)
    return replace(config, sessiondb=chosen)
