"""The migrations that a store has, and those that are missing."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from hermes.config import Config
from hermes.errors import ConfigError, StoreUnavailable
from hermes.state.operations import Operations, read
from hermes.state.provider import open_session_db
from hermes.state.sql.migration_files import Migration

MODULES = {
    "sqlite": "hermes.state.sqlite.schema.definitions",
    "postgresql": "hermes.state.postgres.schema",
    "mysql": "hermes.state.mysql.schema",
}
EXTRAS = {"postgresql": "postgres", "mysql": "mysql"}


def known_migrations(provider: str) -> list[str]:
    """Return the names of all migrations of a provider, in order; none for a third-party provider."""
    if provider not in MODULES:
        return []
    module = _import_schema(provider)
    return list(module.ledger() if provider == "sqlite" else module.LEDGER)


def server_migrations(provider: str) -> list[Migration]:
    """Return the migrations of a server provider, in order."""
    return list(_import_schema(provider).MIGRATIONS.values())


def applied_migrations(store: Operations) -> list[str]:
    """Return the names of the migrations that a store has, in order."""
    return [name for (name,) in read(store, lambda tx: tx.rows("SELECT name FROM hermes_ledger ORDER BY name"))]


def applied_migrations_or_none(config: Config) -> list[str] | None:
    """Return the migrations of the configured store; None if it does not exist or is unreachable."""
    try:
        with open_session_db(config, read_only=True) as store:
            return applied_migrations(store)
    except StoreUnavailable:
        return None


def missing_migrations(names: Iterable[str], provider: str) -> list[str]:
    """Return the known migrations that are not among `names`."""
    applied = set(names)
    return [name for name in known_migrations(provider) if name not in applied]


def _import_schema(provider: str) -> ModuleType:
    try:
        return import_module(MODULES[provider])
    except ModuleNotFoundError as exc:
        if (exc.name or "").startswith("hermes"):
            raise
        raise ConfigError(
            f"{provider} needs a package that is not installed",
            hint=f"run: pip install 'hermes-sessions[{EXTRAS[provider]}]'",
        ) from None
