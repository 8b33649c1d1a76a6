"""Keys and values: small facts about the store itself."""

from __future__ import annotations

from hermes.errors import InvalidValue
from hermes.state.operations import Operations
from hermes.state.rows import decode_text, optional_text, require_identifier

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
