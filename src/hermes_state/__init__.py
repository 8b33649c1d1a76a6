"""The documented import path of the session store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hermes.errors import (
    AmbiguousSession,
    AnswerCut,
    ConfigError,
    Conflict,
    ContextTooLong,
    CreditSpent,
    HermesError,
    InvalidTitle,
    InvalidValue,
    MessageSpooled,
    ModelBusy,
    ModelError,
    ModelGarbled,
    ModelKeyRefused,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    NoModel,
    NotADatabase,
    NotFound,
    NoWebBackend,
    QueryBudgetExceeded,
    StaleLease,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
    TitleTaken,
    UnknownMessage,
    UnknownModel,
    UnknownSession,
    UnsafeUrl,
    WebBusy,
    WebCreditSpent,
    WebError,
    WebGarbled,
    WebKeyRefused,
    WebTimeout,
    WebUnavailable,
)
from hermes.ids import new_session_id
from hermes.state.maintenance.receipt import Outlook, Receipt
from hermes.state.owner import EVERYBODY, TERMINAL, Asker, Everybody, Owner, owner_of, owner_of_room
from hermes.state.provider import SessionDBProvider, default_path, open_session_db
from hermes.state.rows import Row
from hermes.state.search.results import SearchResults
from hermes.state.sessions.lineage.kinds import ChildKind
from hermes.state.sqlite.provider import (
    SQLiteSessionDBProvider,
    format_session_db_unavailable,
    get_last_init_error,
)
from hermes.state.sqlite.schema.inspection import SCHEMA_VERSION

if TYPE_CHECKING:
    from hermes.state.asynchronous.session_db import AsyncSessionDB
    from hermes.state.import_export.session_writer import OnConflict
    from hermes.state.row_types import (
        Ancestor,
        AnchoredView,
        ChildKindName,
        Content,
        ContextMessage,
        ContinuedSession,
        ConversationMessage,
        Descendant,
        ExportedSession,
        FoundSession,
        GivenChildKind,
        GivenContent,
        HandoffState,
        HandoffStateName,
        Health,
        HealthError,
        ImportCounts,
        ListedSession,
        MessageFields,
        MessageRow,
        MessagesAround,
        ModelUsage,
        Moment,
        PruneOutcome,
        RewindRow,
        Rewound,
        SearchHit,
        SessionColumns,
        SessionFields,
        SessionRow,
        Sort,
        StartedSession,
        StartFields,
        TelegramTopicBinding,
        TopSession,
        UsageEvent,
        UserMessage,
    )

DEFAULT_DB_PATH: Path

SessionDB = SQLiteSessionDBProvider

__all__ = [
    "DEFAULT_DB_PATH",
    "EVERYBODY",
    "SCHEMA_VERSION",
    "TERMINAL",
    "AmbiguousSession",
    "Ancestor",
    "AnchoredView",
    "AnswerCut",
    "Asker",
    "AsyncSessionDB",
    "ChildKind",
    "ChildKindName",
    "ConfigError",
    "Conflict",
    "Content",
    "ContextMessage",
    "ContextTooLong",
    "ContinuedSession",
    "ConversationMessage",
    "CreditSpent",
    "Descendant",
    "Everybody",
    "ExportedSession",
    "FoundSession",
    "GivenChildKind",
    "GivenContent",
    "HandoffState",
    "HandoffStateName",
    "Health",
    "HealthError",
    "HermesError",
    "ImportCounts",
    "InvalidTitle",
    "InvalidValue",
    "ListedSession",
    "MessageFields",
    "MessageRow",
    "MessageSpooled",
    "MessagesAround",
    "ModelBusy",
    "ModelError",
    "ModelGarbled",
    "ModelKeyRefused",
    "ModelRefused",
    "ModelTimeout",
    "ModelUnavailable",
    "ModelUsage",
    "Moment",
    "NoModel",
    "NoWebBackend",
    "NotADatabase",
    "NotFound",
    "OnConflict",
    "Outlook",
    "Owner",
    "PruneOutcome",
    "QueryBudgetExceeded",
    "Receipt",
    "RewindRow",
    "Rewound",
    "Row",
    "SearchHit",
    "SearchResults",
    "SessionColumns",
    "SessionDB",
    "SessionDBProvider",
    "SessionFields",
    "SessionRow",
    "Sort",
    "StaleLease",
    "StartFields",
    "StartedSession",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreTooNew",
    "StoreUnavailable",
    "TelegramTopicBinding",
    "TitleTaken",
    "TopSession",
    "UnknownMessage",
    "UnknownModel",
    "UnknownSession",
    "UnsafeUrl",
    "UsageEvent",
    "UserMessage",
    "WebBusy",
    "WebCreditSpent",
    "WebError",
    "WebGarbled",
    "WebKeyRefused",
    "WebTimeout",
    "WebUnavailable",
    "format_session_db_unavailable",
    "get_last_init_error",
    "new_session_id",
    "open_session_db",
    "owner_of",
    "owner_of_room",
]

_ELSEWHERE = {
    "AsyncSessionDB": "hermes.state.asynchronous.session_db",
    "OnConflict": "hermes.state.import_export.session_writer",
}

if not TYPE_CHECKING:  # a type checker would believe that every name exists

    def __getattr__(name: str) -> object:
        # On first use, so that the current HERMES_HOME counts, not the one at import.
        if name == "DEFAULT_DB_PATH":
            return default_path()
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # On first use, because most programs have no event loop, and no program needs the types to run.
        from importlib import import_module

        return getattr(import_module(_ELSEWHERE.get(name, "hermes.state.row_types")), name)
