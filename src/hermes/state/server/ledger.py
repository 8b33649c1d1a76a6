"""The ledger of a store on a server: which migrations were applied, and which are pending."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from hermes.errors import StoreError, StoreTooNew

FORMAT = 1
"""The format that this code can read and write; a store's `min_reader` and `min_writer` are compared with it."""


class SchemaState(StrEnum):
    """How a store compares with this code."""

    FRESH = "fresh"
    """There is no store yet."""
    CURRENT = "current"
    BEHIND = "behind"
    """A migration is pending."""
    NEWER = "newer"
    """It has a migration that this code does not know."""
    CHANGED = "changed"
    """It has a migration of a known name, but with another checksum."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger of a store."""

    applied: Mapping[str, str] | None
    """The checksum of each applied migration, by name; None: there is no ledger."""
    min_reader: int = 0
    min_writer: int = 0
    version: int = 0
    """The schema version of the tables."""
    born: str = ""
    """When the store was created, which distinguishes it from a later one of the same address."""

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, str]]) -> Ledger:
        """Read a ledger from rows such as `ledger, <name>, <checksum>` and `note, <what>, <number>`."""
        applied: dict[str, str] = {}
        marks: dict[str, str] = {}
        for kind, name, value in rows:
            (applied if kind == "ledger" else marks)[name] = value
        reader, writer, version = (int(marks.get(name) or 0) for name in ("min_reader", "min_writer", "version"))
        return cls(applied, reader, writer, version, marks.get("born") or "")

    def state(self, known: Mapping[str, str]) -> SchemaState:
        """How the store compares with code that knows these migrations."""
        if self.applied is None:
            return SchemaState.FRESH
        if not self.applied.keys() <= known.keys():
            return SchemaState.NEWER
        if any(known[name] != checksum for name, checksum in self.applied.items()):
            return SchemaState.CHANGED
        return SchemaState.CURRENT if self.applied.keys() == known.keys() else SchemaState.BEHIND

    def pending(self, known: Mapping[str, str]) -> list[str]:
        """The migrations that are missing, in the order in which they are applied."""
        return [name for name in known if name not in (self.applied or {})]

    def require_usable(self, known: Mapping[str, str], where: str, *, read_only: bool) -> None:
        """Raise if this code could damage the store, or cannot read it."""
        if max(self.min_reader, 0 if read_only else self.min_writer) > FORMAT:
            readable = self.min_reader <= FORMAT
            raise StoreTooNew(
                f"{where} was written by a newer version of Hermes",
                hint=f"update Hermes{', or open it with read_only=True' * readable}; nothing was changed",
            )
        if self.state(known) is SchemaState.CHANGED:
            raise StoreError(
                f"the tables in {where} were created by a different edition of Hermes",
                hint="use that one, or another schema for this one (sessiondb.schema); nothing was changed",
            )


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The state of a store, for code that knows some migrations."""

    ledger: Ledger
    known: Mapping[str, str]

    @property
    def state(self) -> SchemaState:
        """How the store compares with the code."""
        return self.ledger.state(self.known)

    @property
    def version(self) -> int:
        """The schema version of its tables; 0: there are none."""
        return self.ledger.version

    @property
    def pending(self) -> list[str]:
        """The migrations that are missing."""
        return self.ledger.pending(self.known)
