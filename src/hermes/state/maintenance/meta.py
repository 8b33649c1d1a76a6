"""Keys and values: small facts about the store itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hermes.errors import InvalidValue
from hermes.state.engine import Transaction
from hermes.state.operations import Operations
from hermes.state.rows import decode_text, optional_text, require_identifier

T = TypeVar("T")

OWN_KEYS = frozenset({"indexed_upto", "index_epoch", "words_epoch", "schema_cookie", "min_reader", "min_writer"})
OWN_PREFIX = "migration-"
"""The prefix of keys that store the progress of a migration into this store."""


class Meta(Operations):
    """Operations on the keys and values of the store."""

    def get_meta(self, key: str) -> str | None:
        """Return the value of a key, or None."""
        value = self._engine.read(lambda tx: tx.value('SELECT value FROM state_meta WHERE "key" = :key', key=key))
        return None if value is None else str(decode_text(value))

    def schema_version(self) -> int:
        """Return the schema version of the store; 0 if the file has none."""
        return int(self._engine.read(lambda tx: tx.value("SELECT MAX(version) FROM schema_version")) or 0)

    def set_meta(self, key: str, value: str | None) -> None:
        """Store the value of a key and replace an older one."""
        if require_identifier(key, "key") in OWN_KEYS or key.startswith(OWN_PREFIX):
            raise InvalidValue(f"{key!r} is reserved for the store itself")
        optional_text(value, "value")
        self._engine.write(lambda tx: tx.run(tx.dialect.upsert("state_meta", ["key"], ["value"]), key=key, value=value))


def change_meta(store: Operations, key: str, change: Callable[[str | None], tuple[str, T]]) -> T:
    """Replace the value of a key by what `change` makes of it, and return its result.

    Callers of all processes change a key one after the other; `change` may be called again, so it only computes.
    """
    require_identifier(key, "key")

    def work(tx: Transaction) -> T:
        row = tx.row(f'SELECT value FROM state_meta WHERE "key" = :key {tx.dialect.for_update}', key=key)
        new, result = change(None if row is None or row[0] is None else str(decode_text(row[0])))
        if row is None:  # nothing is locked: if two callers insert at once, the second one retries
            tx.run('INSERT INTO state_meta ("key", value) VALUES (:key, :value)', key=key, value=new)
        else:
            tx.run('UPDATE state_meta SET value = :value WHERE "key" = :key', key=key, value=new)
        return result

    return store._engine.write(work)
