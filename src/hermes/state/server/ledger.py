"""Which additions a store on a server has had, and what is to be done about those that it has not."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from hermes.errors import StoreError, StoreTooNew

FORMAT = 1
"""What this code can read and write; a store's `min_reader` and `min_writer` are compared with it."""


class SchemaState(StrEnum):
    """How a store compares with this code."""

    FRESH = "fresh"
    """There is none yet."""
    CURRENT = "current"
    BEHIND = "behind"
    """An addition is missing."""
    NEWER = "newer"
    """It has an addition that this code does not know."""
    CHANGED = "changed"
    """An addition of a name that this code knows was another one."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What stands in a store's ledger; None: there is no ledger."""

    applied: Mapping[str, str] | None
    """The checksum of each addition, by its name."""
    min_reader: int = 0
    min_writer: int = 0
    version: int = 0
    """Of the tables, as `schema_version` has it."""
    born: str = ""
    """When the store was made, which tells it from another one in a place of the same name."""

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, str]]) -> Ledger:
        """What is in rows such as `ledger, <name>, <checksum>` and `note, <what>, <number>`."""
        applied: dict[str, str] = {}
        marks: dict[str, str] = {}
        for kind, name, value in rows:
            (applied if kind == "ledger" else marks)[name] = value
        reader, writer, version = (int(marks.get(name) or 0) for name in ("min_reader", "min_writer", "version"))
        return cls(applied, reader, writer, version, marks.get("born") or "")

    def state(self, known: Mapping[str, str]) -> SchemaState:
        """How the store compares with code that knows these additions."""
        if self.applied is None:
            return SchemaState.FRESH
        if not self.applied.keys() <= known.keys():
            return SchemaState.NEWER
        if any(known[name] != checksum for name, checksum in self.applied.items()):
            return SchemaState.CHANGED
        return SchemaState.CURRENT if self.applied.keys() == known.keys() else SchemaState.BEHIND

    def pending(self, known: Mapping[str, str]) -> list[str]:
        """The additions that are missing, in the order in which they are made."""
        return [name for name in known if name not in (self.applied or {})]

    def require_usable(self, known: Mapping[str, str], where: str, *, read_only: bool) -> None:
        """Raise if this code would do the store harm, or could not understand it."""
        if max(self.min_reader, 0 if read_only else self.min_writer) > FORMAT:
            readable = self.min_reader <= FORMAT
            raise StoreTooNew(
                f"{where} was written by a newer version of Hermes",
                hint=f"update Hermes{', or open it with read_only=True' * readable}; nothing was changed",
            )
        if self.state(known) is SchemaState.CHANGED:
            raise StoreError(
                f"the tables in {where} were made by a different edition of Hermes",
                hint="use that one, or a schema of its own (sessiondb.schema); nothing was changed",
            )


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """What there is of a store, for code that knows some additions."""

    ledger: Ledger
    known: Mapping[str, str]

    @property
    def state(self) -> SchemaState:
        """How the store compares with the code."""
        return self.ledger.state(self.known)

    @property
    def version(self) -> int:
        """The version of its tables; 0: there are none."""
        return self.ledger.version

    @property
    def pending(self) -> list[str]:
        """The additions that are missing."""
        return self.ledger.pending(self.known)


def checksum(script: str) -> str:
    """A checksum of an addition; not to keep a secret but to notice a change."""
    return f"{crc32(script.encode()):08x}"
