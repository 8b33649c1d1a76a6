"""The errors of Hermes, one tree.

    HermesError
    ├── ConfigError
    ├── InvalidValue (also ValueError)
    │   └── InvalidTitle
    ├── NotFound
    │   ├── UnknownSession
    │   ├── AmbiguousSession
    │   └── UnknownMessage (also ValueError)
    ├── Conflict
    │   ├── TitleTaken (also ValueError)
    │   └── StaleLease
    ├── StoreError
    │   ├── StoreBusy            retryable
    │   ├── StoreUnavailable     retryable
    │   ├── StoreCorrupt
    │   ├── StoreFull
    │   ├── StoreReadOnly
    │   ├── NotADatabase
    │   ├── StoreTooNew
    │   ├── StoreClosed
    │   └── MessageSpooled
    └── QueryBudgetExceeded

Every error has a stable `code`, says whether the same call may succeed later (`retryable`) and what to do (`hint`).
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AmbiguousSession",
    "ConfigError",
    "Conflict",
    "HermesError",
    "InvalidTitle",
    "InvalidValue",
    "MessageSpooled",
    "NotADatabase",
    "NotFound",
    "QueryBudgetExceeded",
    "StaleLease",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreTooNew",
    "StoreUnavailable",
    "TitleTaken",
    "UnknownMessage",
    "UnknownSession",
]


class HermesError(Exception):
    """Something Hermes was asked to do could not be done."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    advice: ClassVar[str] = ""

    def __init__(self, message: str = "", *, hint: str | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.hint = self.advice if hint is None else hint
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ConfigError(HermesError):
    """The configuration cannot be used."""

    code = "config"


class InvalidValue(HermesError, ValueError):
    """A value is not one that can be stored."""

    code = "invalid_value"


class InvalidTitle(InvalidValue):
    """A title is not acceptable."""

    code = "invalid_title"


class NotFound(HermesError):
    """There is no such thing."""

    code = "not_found"


class UnknownSession(NotFound):
    """There is no such session."""

    code = "unknown_session"
    advice = "`hermes sessions list` shows the sessions there are"


class AmbiguousSession(NotFound):
    """Several sessions can be meant."""

    code = "ambiguous_session"
    advice = "name it by its whole id"


class UnknownMessage(NotFound, ValueError):
    """There is no such message in this session."""

    code = "unknown_message"
    advice = "get_messages shows the messages of a session with their ids"


class Conflict(HermesError):
    """Somebody else was first."""

    code = "conflict"


class TitleTaken(Conflict, ValueError):
    """Another session has this title."""

    code = "title_taken"
    advice = "choose another title"


class StaleLease(Conflict):
    """The lease on this lane has passed to another holder."""

    code = "stale_lease"


class StoreError(HermesError):
    """The session store could not do its work."""

    code = "store"


class StoreBusy(StoreError):
    """Another process held the write lock for too long."""

    code = "store_busy"
    retryable = True
    advice = "nothing was written; try again, or raise sessiondb.write_timeout_s"


class StoreUnavailable(StoreError):
    """The session store cannot be reached."""

    code = "store_unavailable"
    retryable = True


class StoreCorrupt(StoreError):
    """The session store is damaged."""

    code = "store_corrupt"
    advice = "do not delete the file: copy it with its -wal and -shm to a safe place first"


class StoreFull(StoreError):
    """There is no room left for the session store."""

    code = "store_full"
    advice = "nothing was written; free some space on the disk and try again"


class StoreReadOnly(StoreError):
    """The session store can only be read."""

    code = "store_read_only"


class NotADatabase(StoreError):
    """The file is not a session database."""

    code = "not_a_database"
    advice = "the file was left as it is; name another path or move it away"


class StoreTooNew(StoreError):
    """The session store was written by a newer version of Hermes."""

    code = "store_too_new"
    advice = "update Hermes; the file was left as it is"


class StoreClosed(StoreError):
    """The session store has been closed."""

    code = "store_closed"
    advice = "open a new SessionDB"


class MessageSpooled(StoreError):
    """The message is safe in the spool file beside the database and will be stored when it can be."""

    code = "message_spooled"
    advice = "do not send it again"

    def __init__(self, uid: str, message: str = "", *, hint: str | None = None) -> None:
        self.uid = uid
        super().__init__(message, hint=hint)


class QueryBudgetExceeded(HermesError):
    """The query needs more work than it is allowed."""

    code = "query_budget_exceeded"
    advice = "narrow the query"
