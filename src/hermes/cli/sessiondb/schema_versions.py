"""Which additions a store has had, and which it has not."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from hermes.config import Config
from hermes.errors import ConfigError, StoreUnavailable
from hermes.state.operations import Operations, read
from hermes.state.provider import open_session_db

MODULES = {
    "sqlite": "hermes.state.sqlite.schema.inspection",
    "postgresql": "hermes.state.postgres.schema",
    "mysql": "hermes.state.mysql.schema",
}
EXTRAS = {"postgresql": "postgres", "mysql": "mysql"}


def known_migrations(provider: str) -> list[str]:
    """The additions that this program knows of, in their order; a provider of others does not say."""
    return list(_import_schema(provider).LEDGER) if provider in MODULES else []


def migration_scripts(provider: str) -> list[tuple[str, str, str]]:
    """The additions of a server's store: name, checksum and statements of each."""
    module = _import_schema(provider)
    return [(name, module.LEDGER[name], module.script(name)) for name in module.ADDITIONS]


def applied_migrations(store: Operations) -> list[str]:
    """The additions that a store has had, in their order."""
    return [name for (name,) in read(store, lambda tx: tx.rows("SELECT name FROM hermes_ledger ORDER BY name"))]


def applied_migrations_or_none(config: Config) -> list[str] | None:
    """The additions that the configured store has had, or None if there is none, or nobody can get at it."""
    try:
        with open_session_db(config, read_only=True) as store:
            return applied_migrations(store)
    except StoreUnavailable:
        return None


def missing_migrations(names: Iterable[str], provider: str) -> list[str]:
    """The additions that are not among these."""
    here = set(names)
    return [name for name in known_migrations(provider) if name not in here]


def _import_schema(provider: str) -> ModuleType:
    try:
        return import_module(MODULES[provider])
    except ModuleNotFoundError as exc:
        if (exc.name or "").startswith("hermes"):
            raise
        raise ConfigError(
            f"{provider} needs a package that is not installed: pip install 'hermes-sessions[{EXTRAS[provider]}]'"
        ) from None
