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
    ├── ModelError
    │   ├── NoModel
    │   ├── ModelKeyRefused
    │   ├── CreditSpent
    │   ├── UnknownModel
    │   ├── ContextTooLong
    │   ├── ModelRefused
    │   ├── ModelGarbled
    │   ├── ModelBusy            retryable
    │   ├── ModelUnavailable     retryable
    │   ├── ModelTimeout         retryable
    │   └── AnswerCut            retryable
    └── QueryBudgetExceeded

Every error has a stable `code`, says whether the same call may succeed later (`retryable`) and what to do (`hint`).
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AmbiguousSession",
    "AnswerCut",
    "ConfigError",
    "Conflict",
    "ContextTooLong",
    "CreditSpent",
    "HermesError",
    "InvalidTitle",
    "InvalidValue",
    "MessageSpooled",
    "ModelBusy",
    "ModelError",
    "ModelGarbled",
    "ModelKeyRefused",
    "ModelRefused",
    "ModelTimeout",
    "ModelUnavailable",
    "NoModel",
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
    "UnknownModel",
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
    advice = "`hermes sessions repair --check` tells what can be saved; do not delete the file"


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


class ModelError(HermesError):
    """The model gave no answer."""

    code = "model"

    def __init__(self, message: str = "", *, hint: str | None = None, retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        """How long the endpoint wants to be left alone, where it says so."""
        super().__init__(message, hint=hint)


class NoModel(ModelError):
    """No model can be used as it is configured."""

    code = "no_model"
    advice = "set OPENAI_API_KEY, OPENROUTER_API_KEY or ANTHROPIC_API_KEY, or model.base_url in config.yaml"


class ModelKeyRefused(ModelError):
    """The model's endpoint does not accept the key."""

    code = "model_key_refused"
    advice = "set a key that is valid there"


class CreditSpent(ModelError):
    """The account at the model's endpoint has no credit left."""

    code = "credit_spent"
    advice = "add credit to the account there, or use another model"


class UnknownModel(ModelError):
    """The endpoint has no such model."""

    code = "unknown_model"
    advice = "set model.default in config.yaml to a model that it has"


class ContextTooLong(ModelError):
    """The conversation is longer than the model can read."""

    code = "context_too_long"
    advice = "compress the conversation, or use a model that can read more"


class ModelRefused(ModelError):
    """The model's endpoint does not accept the request."""

    code = "model_refused"
    advice = "see what it says; model.base_url and model.default in config.yaml decide what is asked of whom"


class ModelGarbled(ModelError):
    """The model's endpoint answered something that cannot be understood."""

    code = "model_garbled"
    advice = "check that model.base_url is the address of an OpenAI-compatible endpoint; it usually ends with /v1"


class ModelBusy(ModelError):
    """The model's endpoint has too much to do."""

    code = "model_busy"
    retryable = True
    advice = "try again later"


class ModelUnavailable(ModelError):
    """The model's endpoint cannot be reached, or is out of order."""

    code = "model_unavailable"
    retryable = True
    advice = "check the network and model.base_url, or try again later"


class ModelTimeout(ModelError):
    """The model took too long."""

    code = "model_timeout"
    retryable = True
    advice = "try again, or raise the limits under model.timeouts in config.yaml"


class AnswerCut(ModelError):
    """The answer broke off; what was said until then is all there is."""

    code = "answer_cut"
    retryable = True
    advice = "what was said is kept; ask the model to go on, or ask again"


class QueryBudgetExceeded(HermesError):
    """The query needs more work than it is allowed."""

    code = "query_budget_exceeded"
    advice = "narrow the query"
