"""The port under the operations: what a database engine must offer so that every operation is written once.

SQL is written once too: named parameters (`:name`), and only what SQLite, PostgreSQL, MySQL and MariaDB share. The few
phrases that differ come from `Dialect`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from hermes.query.tree import Node
    from hermes.state.maintenance.disk_usage import DiskUsage
    from hermes.state.messages.spool import Spool
    from hermes.state.search.scope import Scope

T = TypeVar("T")

Columns = Sequence[str]
Values = tuple[Any, ...]


class Dialect(Protocol):
    """The phrases in which the engines' SQL differs."""

    given_uid_condition: str
    """Narrows a search for a uid to those that callers gave, where they have an index of their own."""

    for_update: str
    """Ends a SELECT of rows that this transaction is going to change."""

    has_indexed_correlation: bool
    """Whether a subquery finds its place in an index also where a row of the query around it tells it."""

    raise_next_id: str
    """A query by which the messages after `:last` are numbered beyond it; empty where inserting that one does so."""

    def insert_or_ignore(self, table: str, columns: Columns) -> str:
        """An INSERT of one row that does nothing when a unique key is taken."""
        ...

    def upsert(self, table: str, key: Columns, columns: Columns, add: Columns = ()) -> str:
        """An INSERT of one row that overwrites (or, for `add`, increases) the other columns when the key is taken."""
        ...

    def by_key(self, table: str, alias: str = "") -> str:
        """A table in a query that names a session: no other row is read, and none before the first that is wanted."""
        ...

    def from_where_in(self, table: str, column: str, parameters: Iterable[str]) -> str:
        """The end of a query for the rows of which a column is one of some parameters; it waits for no other rows."""
        ...

    def delete_where_in(self, table: str, column: str, parameters: Iterable[str]) -> str:
        """A DELETE of the same rows."""
        ...

    def starts_with(self, column: str, parameter: str) -> str:
        """A case-sensitive condition, answered by the column's index, that a text column begins with a parameter."""
        ...


class Reading(Protocol):
    """A consistent view of the store."""

    dialect: Dialect

    def rows(self, sql: str, /, **values: Any) -> list[Values]:
        """All rows of a query."""
        ...

    def row(self, sql: str, /, **values: Any) -> Values | None:
        """The first row of a query."""
        ...

    def value(self, sql: str, /, **values: Any) -> Any:
        """The first column of the first row, or None."""
        ...

    def table(self, sql: str, /, **values: Any) -> tuple[Columns, list[Values]]:
        """The column names of a query and all its rows."""
        ...


class Transaction(Reading, Protocol):
    """A view of the store that can also change it; all of its changes become durable together or not at all."""

    is_repeat: bool
    """Whether the same work may have been done already, unheard: then messages are looked for before they are added."""

    def run(self, sql: str, /, **values: Any) -> int:
        """Execute one statement and answer how many rows it changed."""
        ...

    def send(self, sql: str, /, **values: Any) -> None:
        """Execute one statement whose outcome nobody needs to know; it may go out together with the next one."""
        ...

    def lock_and_number(self, sql: str, count: int, /, **values: Any) -> tuple[Values | None, Sequence[int]]:
        """The first row of a query that locks it, and then numbers for so many messages that are going to be added.

        An engine that numbers messages only as they are inserted answers none.
        """
        ...

    def insert_messages(self, rows: Sequence[Mapping[str, Any]], /) -> Sequence[int]:
        """Insert messages of a session that is held, each with the columns that it names, and answer their numbers."""
        ...

    def note_added_message(self, message_id: int, /) -> None:
        """Hear of a new message, so that the engine's search index can follow."""
        ...

    def run_many(self, sql: str, many: Sequence[dict[str, Any]], /) -> None:
        """Execute one statement for each set of values."""
        ...


CATCH_UP = -1
"""No epoch of an index."""


class IndexDamaged(Exception):
    """The search index cannot be read; the messages can."""


class OutOfTime(Exception):
    """A search has used up its time."""


class Coverage(NamedTuple):
    """Which messages an index knows: those up to an id, except some."""

    upto: int
    stale: tuple[int, ...] = ()
    epoch: int = 0
    """Changes when the index is made anew."""


class Found(NamedTuple):
    """Messages that an index gave for a query, and how far it has looked."""

    ids: list[int]
    reached: int
    """Everything from the start of the span up to this id has been looked at."""
    is_certain: bool
    """Whether they match without looking at their text."""
    is_scoped: bool
    """Whether they are in the scope without looking at their session; times are never looked at here."""


class TimeRange(NamedTuple):
    """A span of message ids, and the moments between which those messages were said."""

    low: int
    high: int
    oldest: float
    newest: float


class Index(Protocol):
    """A full-text index over the messages of a store."""

    def coverage(self, tx: Reading, max_stale: int, /) -> Coverage:
        """Which messages it knows, with up to `max_stale` of the exceptions."""
        ...

    def candidates(
        self, tx: Reading, query: Node, scope: Scope, low: int, high: int, limit: int, *, deadline: float
    ) -> Iterator[Found]:
        """The messages with low <= id <= high that may match, newest id first, about `limit` at a time."""
        ...

    def time_ranges(
        self, tx: Reading, scope: Scope, after: TimeRange | None, limit: int, *, newest_first: bool
    ) -> list[TimeRange]:
        """The next spans in which messages of the scope's time may lie, by their newest (or oldest) moment."""
        ...


Report = Callable[[str, int, int], None]
"""Hears of long work: what is being done, how much of it, and of how much (0 where that is not known)."""


class Maintenance(Protocol):
    """The upkeep of a store: work that nothing depends on, done when somebody asks for it."""

    def merge_index(self, report: Report | None = None, /) -> int:
        """Bring each full-text index into its shortest form, while others write; answers how many there are."""
        ...

    def compact(self, report: Report | None = None, /) -> None:
        """Give unused room back to the disk; others wait meanwhile."""
        ...

    def erase(self, report: Report | None = None, /) -> None:
        """Leave nothing of what was ever deleted in the store's files; others wait meanwhile."""
        ...

    def disk_usage(self, limit_s: float, /) -> DiskUsage | None:
        """Measure how many bytes the store takes; None if that cannot be told, or not within this time."""
        ...


class Capability(StrEnum):
    """What not every store can do."""

    FILE = "file"
    """It is a file, which can be copied, repaired and made smaller."""
    SERVER = "server"
    """It can be used from several machines at once."""
    PARTS = "parts"
    """Parts of words are found through an index; without one, all words are looked through."""


class Engine(Protocol):
    """A database that holds a session store."""

    name: str
    read_only: bool

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do that not every one can."""
        ...

    @property
    def index(self) -> Index:
        """How messages are found in it."""
        ...

    @property
    def maintenance(self) -> Maintenance:
        """Who keeps it in order."""
        ...

    @property
    def spool(self) -> Spool:
        """Where messages wait that cannot be stored now."""
        ...

    def read(self, work: Callable[[Reading], T], /) -> T:
        """Run `work` on a consistent view. Readers never wait for writers."""
        ...

    def write(self, work: Callable[[Transaction], T], /) -> T:
        """Run `work` in a transaction; what it did is durable when this returns.

        `work` may run more than once (another attempt after a conflict), so it must have no other effects. A write
        inside a write joins it.
        """
        ...

    def heal_index(self, epoch: int, /) -> None:
        """Have an index that was found damaged rebuilt in the background, unless that has been done since.

        `CATCH_UP` for an epoch only has it brought up to date.
        """
        ...

    def describe(self) -> dict[str, Any]:
        """What there is to know about it, for a person or a program that watches over it."""
        ...

    def close(self) -> None:
        """Let go of every resource; a second call does nothing."""
        ...
