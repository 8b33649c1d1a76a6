"""The interface of a database engine, so that every operation is written once.

SQL is written once too: named parameters (`:name`), and only what SQLite, PostgreSQL, MySQL and MariaDB share.
`Dialect` supplies the SQL that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from hermes.errors import HermesError
    from hermes.query.tree import Node
    from hermes.state.maintenance.disk_usage import DiskUsage
    from hermes.state.messages.spool import Spool
    from hermes.state.owner import Asker
    from hermes.state.rows import Row
    from hermes.state.search.scope import Scope

T = TypeVar("T")

Columns = Sequence[str]
Values = tuple[Any, ...]
Table = tuple[Columns, list[Values]]
"""The column names of a query and all its rows."""


class Guard(NamedTuple):
    """A row that must be there when a transaction is committed, such as the lease under which a node writes."""

    table: str
    condition: str
    values: Mapping[str, Any]
    counter: str
    """The column of the row that changes with every such transaction, where only changes are seen by all servers."""
    error: Callable[[], HermesError]
    """Makes the error for a transaction without this row."""


class Dialect(Protocol):
    """The SQL in which the engines differ."""

    given_uid_condition: str
    """Condition for uids that callers supplied, which have an index of their own."""

    for_update: str
    """End of a SELECT that locks the rows this transaction is going to change."""

    has_indexed_correlation: bool
    """Whether a correlated subquery can use an index."""

    counts_in_index: bool
    """Whether an index has all that is needed to count the messages of a session by time and role."""

    skip_locked: str
    """The same, but rows that another transaction has locked are left out."""

    now: str
    """The time of the database: an expression for Unix epoch seconds, evaluated in its statement."""

    notify_lanes: str
    """SQL that tells listening processes that work waits, for the node `:holder`. Empty if the database cannot."""

    has_telegram_topics: str
    """Condition that is true if the tables of Telegram topics exist."""

    raise_next_id: str
    """SQL that sets the next message id above `:last`. Empty if the database does this on insert."""

    def insert_or_ignore(self, table: str, columns: Columns) -> str:
        """Return an INSERT of one row that does nothing if a unique key exists."""
        ...

    def upsert(self, table: str, key: Columns, columns: Columns, add: Columns = ()) -> str:
        """Return an INSERT of one row that overwrites (for `add`: increases) the other columns if the key exists."""
        ...

    def by_key(self, table: str, alias: str = "") -> str:
        """Return a table reference for a query by session id that reads only the wanted rows."""
        ...

    def from_where_in(self, table: str, column: str, parameters: Iterable[str]) -> str:
        """Return `FROM table WHERE column IN (...)`, without locking other rows."""
        ...

    def delete_where_in(self, table: str, column: str, parameters: Iterable[str]) -> str:
        """Return a DELETE of the same rows."""
        ...

    def starts_with(self, column: str, parameter: str) -> str:
        """Return a case-sensitive, indexed condition that a text column starts with a parameter."""
        ...

    def is_among(self, column: str, numbers: Sequence[int]) -> tuple[str, Mapping[str, Any]]:
        """Return a condition that an integer column has one of some numbers, and its values."""
        ...


class Reading(Protocol):
    """A consistent view of the store."""

    dialect: Dialect

    def rows(self, sql: str, /, **values: Any) -> list[Values]:
        """Return all rows of a query."""
        ...

    def row(self, sql: str, /, **values: Any) -> Values | None:
        """Return the first row of a query."""
        ...

    def value(self, sql: str, /, **values: Any) -> Any:
        """Return the first column of the first row, or None."""
        ...

    def table(self, sql: str, /, **values: Any) -> Table:
        """Return the column names of a query and all its rows."""
        ...

    def tables(self, queries: Sequence[tuple[str, Mapping[str, Any]]], /) -> list[Table]:
        """Return the same for each of several queries, which an engine may send together."""
        ...


class Transaction(Reading, Protocol):
    """A view of the store that can also change it; all its changes become durable together or not at all."""

    is_repeat: bool
    """Whether an earlier attempt may have committed unnoticed: then look for messages before adding them."""

    def run(self, sql: str, /, **values: Any) -> int:
        """Execute one statement and return how many rows it changed."""
        ...

    def send(self, sql: str, /, **values: Any) -> None:
        """Execute one statement without a result; it may be sent together with the next one."""
        ...

    def require(self, guard: Guard, /) -> None:
        """Lock a row until the end of the transaction; if it is not there, raise the guard's error and change nothing.

        An engine may send this together with the next statement, which then raises the error.
        """
        ...

    def lock_and_number(self, sql: str, count: int, /, **values: Any) -> tuple[Values | None, Sequence[int]]:
        """Lock and return the first row of a query, and reserve ids for `count` new messages.

        An engine that assigns ids only on insert returns none.
        """
        ...

    def lock_and_read(self, lock: str, read: str, /, **values: Any) -> tuple[Values | None, list[Values]]:
        """Lock and return the first row of a query, and return the rows of a second query, which runs afterwards.

        In the second one `:locked` is the first column of the locked row, which is text and has the name `locked`.
        """
        ...

    def insert_messages(self, rows: Sequence[Mapping[str, Any]], /) -> Sequence[int]:
        """Insert messages of a locked session, each with the columns that it names, and return their ids."""
        ...

    def add_plain(
        self, session_id: str, rows: Sequence[Mapping[str, Any]], preview: str | None, calls: int, asker: Asker, /
    ) -> Sequence[int] | None:
        """Insert visible messages with new uids and update their session, without reading it first; return their ids.

        Return None, and change nothing, if the session needs more than one update, or if the engine has another way.
        """
        ...

    def note_added_message(self, message_id: int, /) -> None:
        """Note that a message was added, so the indexer runs after the commit."""
        ...

    def run_many(self, sql: str, many: Sequence[dict[str, Any]], /) -> None:
        """Execute one statement for each set of values."""
        ...


CATCH_UP = -1
"""An epoch that no index has."""


class IndexDamaged(Exception):
    """The search index is damaged; the messages are readable."""


class OutOfTime(Exception):
    """A search has reached its time limit."""


class Coverage(NamedTuple):
    """The messages that an index covers: those up to an id, except some."""

    upto: int
    stale: tuple[int, ...] = ()
    epoch: int = 0
    """Changes when the index is rebuilt."""


class Found(NamedTuple):
    """Messages that an index returned for a query, and how far it has searched."""

    ids: list[int]
    reached: int
    """Everything from the start of the range up to this id was searched."""
    is_certain: bool
    """Whether they match without a check of their text."""
    is_scoped: bool
    """Whether they are in the scope without a check of their session; the index never checks times."""


class TimeRange(NamedTuple):
    """A range of message ids, and the oldest and newest time of their messages."""

    low: int
    high: int
    oldest: float
    newest: float


class Index(Protocol):
    """A full-text index over the messages of a store."""

    def coverage(self, tx: Reading, max_stale: int, /) -> Coverage:
        """Return the covered messages, with up to `max_stale` of the exceptions."""
        ...

    def candidates(
        self, tx: Reading, query: Node, scope: Scope, low: int, high: int, limit: int, *, deadline: float
    ) -> Iterator[Found]:
        """Yield the messages with low <= id <= high that may match, newest id first, about `limit` at a time."""
        ...

    def time_ranges(
        self, tx: Reading, scope: Scope, after: TimeRange | None, limit: int, *, newest_first: bool
    ) -> list[TimeRange]:
        """Return the next ranges that may hold messages of the scope's time, by their newest (or oldest) time."""
        ...


Report = Callable[[str, int, int], None]
"""Receives progress: the name of the work, how much is done, and the total (0 if unknown)."""


class Maintenance(Protocol):
    """Maintenance of a store: merge the index, compact, erase. No other operation depends on it."""

    def merge_index(self, report: Report | None = None, /) -> int:
        """Merge each full-text index into its most compact form, while others write; return the number of indexes."""
        ...

    def compact(self, report: Report | None = None, /) -> None:
        """Give unused space back to the disk; other callers wait meanwhile."""
        ...

    def erase(self, report: Report | None = None, /) -> None:
        """Remove all traces of deleted rows from the store's files; other callers wait meanwhile."""
        ...

    def disk_usage(self, limit_s: float, /) -> DiskUsage | None:
        """Return how many bytes the store takes; None if that is unknown or takes longer than `limit_s`."""
        ...


class Capability(StrEnum):
    """Features that not every store has."""

    FILE = "file"
    """The store is a file that can be copied, repaired and compacted."""
    SERVER = "server"
    """Several machines can use the store at once."""
    PARTS = "parts"
    """An index finds parts of words; without it, a search scans all words."""


class LaneListener(Protocol):
    """Waits for notifications about work in lanes."""

    def wait(self, timeout_s: float, /) -> bool:
        """Return whether a notification came within this time."""
        ...

    def close(self) -> None:
        """Stop listening; a second call does nothing."""
        ...


class Engine(Protocol):
    """A database that holds a session store."""

    name: str
    read_only: bool

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The features of this engine that not every engine has."""
        ...

    @property
    def index(self) -> Index:
        """The full-text index."""
        ...

    @property
    def maintenance(self) -> Maintenance:
        """Maintenance operations: merge the index, compact, erase."""
        ...

    @property
    def spool(self) -> Spool | None:
        """The spool for messages that cannot be stored now; None if they must not be stored later."""
        ...

    def read(self, work: Callable[[Reading], T], /) -> T:
        """Run `work` on a consistent view. Readers never wait for writers."""
        ...

    def write(self, work: Callable[[Transaction], T], /) -> T:
        """Run `work` in a transaction; its changes are durable when this returns.

        `work` may run more than once (a retry after a conflict), so it must have no other effects. A write inside a
        write joins it.
        """
        ...

    def append_alone(
        self, session_id: str, values: Row, preview: str | None, asker: Asker, /, guards: Sequence[Guard] = ()
    ) -> int | None:
        """Store a visible message without tool calls and with a new uid, and return its id.

        Return None if this needs a transaction of several statements; then nothing was stored.
        """
        ...

    def heal_index(self, epoch: int, /) -> None:
        """Rebuild a damaged index in the background, unless that was done since `epoch`.

        With `CATCH_UP` as the epoch, only bring the index up to date.
        """
        ...

    def add_telegram_topics(self) -> None:
        """Create the tables of Telegram topics where the schema does not contain them; they may exist already."""
        ...

    def listen_lanes(self, node: str, /) -> LaneListener | None:
        """Return a listener for notifications about work in lanes, for a node; None if the database cannot notify."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return details about the engine for monitoring."""
        ...

    def close(self) -> None:
        """Release every resource; a second call does nothing."""
        ...
