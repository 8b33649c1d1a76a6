"""Key and value: small facts about the store itself."""

from __future__ import annotations

from hermes.errors import InvalidValue
from hermes.state.operations import Operations
from hermes.state.rows import decode_text, optional_text, require_identifier

OWN_KEYS = frozenset({"indexed_upto", "index_epoch", "words_epoch", "schema_cookie", "min_reader", "min_writer"})
OWN_PREFIX = "migration-"
"""So begin the keys under which it is noted how far a migration into this store has come."""


class Meta(Operations):
    """Operations on the store's own notes."""

    def get_meta(self, key: str) -> str | None:
        """A note, or None."""
        value = self._engine.read(lambda tx: tx.value('SELECT value FROM state_meta WHERE "key" = :key', key=key))
        return None if value is None else str(decode_text(value))

    def schema_version(self) -> int:
        """The version of the tables in the store; 0 for a file that does not say."""
        return int(self._engine.read(lambda tx: tx.value("SELECT MAX(version) FROM schema_version")) or 0)

    def set_meta(self, key: str, value: str | None) -> None:
        """Write a note, over an older one of the same key."""
        if require_identifier(key, "key") in OWN_KEYS or key.startswith(OWN_PREFIX):
            raise InvalidValue(f"{key!r} is kept by the store itself")
        optional_text(value, "value")
        self._engine.write(lambda tx: tx.run(tx.dialect.upsert("state_meta", ["key"], ["value"]), key=key, value=value))
