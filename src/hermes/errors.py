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
    ├── WebError
    │   ├── UnsafeUrl
    │   ├── NoWebBackend
    │   ├── WebKeyRefused
    │   ├── WebCreditSpent
    │   ├── WebGarbled
    │   ├── WebBusy              retryable
    │   ├── WebUnavailable       retryable
    │   └── WebTimeout           retryable
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
    "NoWebBackend",
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
    "UnsafeUrl",
    "WebBusy",
    "WebCreditSpent",
    "WebError",
    "WebGarbled",
    "WebKeyRefused",
    "WebTimeout",
    "WebUnavailable",
]


class HermesError(Exception):
    """Hermes could not do what was requested."""

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
    """The value cannot be stored."""

    code = "invalid_value"


class InvalidTitle(InvalidValue):
    """The title is not valid."""

    code = "invalid_title"


class NotFound(HermesError):
    """Not found."""

    code = "not_found"


class UnknownSession(NotFound):
    """There is no such session."""

    code = "unknown_session"
    advice = "see `hermes sessions list`"


class AmbiguousSession(NotFound):
    """Several sessions match."""

    code = "ambiguous_session"
    advice = "use the full session id"


class UnknownMessage(NotFound, ValueError):
    """There is no such message in this session."""

    code = "unknown_message"
    advice = "get_messages shows the messages of a session with their ids"


class Conflict(HermesError):
    """Another caller changed it first."""

    code = "conflict"


class TitleTaken(Conflict, ValueError):
    """Another session has this title."""

    code = "title_taken"
    advice = "choose another title"


class StaleLease(Conflict):
    """The lease on this lane has passed to another holder."""

    code = "stale_lease"


class StoreError(HermesError):
    """The session store failed."""

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
    advice = "`hermes sessions repair --check` shows what can be saved; do not delete the file"


class StoreFull(StoreError):
    """No space is left for the session store."""

    code = "store_full"
    advice = "nothing was written; free some space on the disk and try again"


class StoreReadOnly(StoreError):
    """The session store can only be read."""

    code = "store_read_only"


class NotADatabase(StoreError):
    """The file is not a session database."""

    code = "not_a_database"
    advice = "the file was not changed; use another path, or move the file away"


class StoreTooNew(StoreError):
    """The session store was written by a newer version of Hermes."""

    code = "store_too_new"
    advice = "update Hermes; the file was not changed"


class StoreClosed(StoreError):
    """The session store has been closed."""

    code = "store_closed"
    advice = "open a new SessionDB"


class MessageSpooled(StoreError):
    """The message is saved in the spool file next to the database and will be stored later."""

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
        """How many seconds the endpoint asks to wait, if it says so."""
        super().__init__(message, hint=hint)


class NoModel(ModelError):
    """No usable model is configured."""

    code = "no_model"
    advice = "set OPENAI_API_KEY, OPENROUTER_API_KEY or ANTHROPIC_API_KEY, or model.base_url in config.yaml"


class ModelKeyRefused(ModelError):
    """The model's endpoint rejects the key."""

    code = "model_key_refused"
    advice = "set a valid key for this endpoint"


class CreditSpent(ModelError):
    """The account at the model's endpoint has no credit left."""

    code = "credit_spent"
    advice = "add credit to the account, or use another model"


class UnknownModel(ModelError):
    """The endpoint has no such model."""

    code = "unknown_model"
    advice = "set model.default in config.yaml to a model of this endpoint"


class ContextTooLong(ModelError):
    """The conversation is longer than the model can read."""

    code = "context_too_long"
    advice = "compress the conversation, or use a model with a larger context"


class ModelRefused(ModelError):
    """The model's endpoint rejects the request."""

    code = "model_refused"
    advice = "read the endpoint's message; check model.base_url and model.default in config.yaml"


class ModelGarbled(ModelError):
    """The model's endpoint sent a reply that Hermes cannot read."""

    code = "model_garbled"
    advice = "check that model.base_url is the address of an OpenAI-compatible endpoint; it usually ends with /v1"


class ModelBusy(ModelError):
    """The model's endpoint is overloaded."""

    code = "model_busy"
    retryable = True
    advice = "try again later"


class ModelUnavailable(ModelError):
    """The model's endpoint cannot be reached or is down."""

    code = "model_unavailable"
    retryable = True
    advice = "check the network and model.base_url, or try again later"


class ModelTimeout(ModelError):
    """The model took too long."""

    code = "model_timeout"
    retryable = True
    advice = "try again, or raise the limits under model.timeouts in config.yaml"


class AnswerCut(ModelError):
    """The connection was lost in the middle of the answer."""

    code = "answer_cut"
    retryable = True
    advice = "the text so far is saved; retry, or ask the model to continue"


class WebError(HermesError):
    """The web page or the web search failed."""

    code = "web"

    def __init__(self, message: str = "", *, hint: str | None = None, retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        """How many seconds the service asks to wait, if it says so."""
        super().__init__(message, hint=hint)


class UnsafeUrl(WebError):
    """The address is not allowed."""

    code = "unsafe_url"


class NoWebBackend(WebError):
    """No usable web backend is configured."""

    code = "no_web_backend"
    advice = "set FIRECRAWL_API_KEY, PARALLEL_API_KEY or TAVILY_API_KEY in .env"


class WebKeyRefused(WebError):
    """The web backend rejects the key."""

    code = "web_key_refused"
    advice = "set a valid key for this backend"


class WebCreditSpent(WebError):
    """The account at the web backend has no credit left."""

    code = "web_credit_spent"
    advice = "add credit to the account, or set web.backend in config.yaml to another backend"


class WebGarbled(WebError):
    """The server sent something that Hermes cannot read."""

    code = "web_garbled"


class WebBusy(WebError):
    """The web backend is overloaded."""

    code = "web_busy"
    retryable = True
    advice = "try again later"


class WebUnavailable(WebError):
    """The server cannot be reached or is down."""

    code = "web_unavailable"
    retryable = True
    advice = "try again later"


class WebTimeout(WebError):
    """The server took too long."""

    code = "web_timeout"
    retryable = True
    advice = "try again, or raise web.timeout_s in config.yaml"


class QueryBudgetExceeded(HermesError):
    """The query needs more work than the limit allows."""

    code = "query_budget_exceeded"
    advice = "narrow the query"
