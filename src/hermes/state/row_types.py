"""The types of the rows that a store returns and of the fields that it accepts, for type checkers.

The store runs without these types, so modules import them for type checking only. Annotations are evaluated, so that
programs that inspect these types at run time see which keys may be missing.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NotRequired, Required, TypedDict

from hermes.state.owner import OwnerName
from hermes.state.sessions.lineage.kinds import ChildKind

Content = str | list[Any] | dict[str, Any] | None
"""The content of a stored message: text, or the parts of structured content."""

GivenContent = str | list[Any] | tuple[Any, ...] | Mapping[str, Any] | None
"""The content that callers may store."""

Moment = float | str | datetime
"""A time that a caller passes: seconds since 1970, the same as text, or a datetime."""

ChildKindName = Literal["compression", "branch", "delegate", "reset", "import"]
GivenChildKind = ChildKind | ChildKindName
Sort = Literal["relevance", "newest", "oldest"]
HandoffStateName = Literal["pending", "running", "completed", "failed"]


class SessionFields(TypedDict, total=False):
    """The fields of a new session, without id, source and model."""

    model_config: dict[str, Any] | str | None
    system_prompt: str | None
    user_id: str | None
    parent_session_id: str | None
    cwd: str | None
    owner: OwnerName
    child_kind: GivenChildKind | None
    started_at: Moment | None


class StartFields(SessionFields, total=False):
    """The fields of a new session, without id and source."""

    model: str | None


class MessageFields(TypedDict, total=False):
    """A new message: the arguments of `append_message` without the session."""

    role: Required[str]
    content: GivenContent
    tool_name: str | None
    tool_calls: Any
    tool_call_id: str | None
    token_count: int | None
    finish_reason: str | None
    reasoning: str | None
    reasoning_content: str | None
    reasoning_details: Any
    codex_reasoning_items: Any
    codex_message_items: Any
    platform_message_id: str | int | None
    observed: bool
    timestamp: Moment | None
    uid: str | None


class SessionColumns(TypedDict):
    """The columns that all session rows have."""

    id: str
    source: str
    user_id: str | None
    owner: str | None
    parent_session_id: str | None
    child_kind: ChildKindName | Literal["?"] | None
    chain_root: str | None
    listed: int
    archived: int
    pinned: int
    started_at: float
    last_active: float
    chain_active: float
    active_tick: int
    ended_at: float | None
    end_reason: str | None
    message_count: int
    tool_call_count: int
    rewind_count: int
    api_call_count: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    estimated_cost_usd: float | None
    actual_cost_usd: float | None
    cost_status: str | None
    cost_source: str | None
    pricing_version: str | None
    billing_provider: str | None
    billing_base_url: str | None
    billing_mode: str | None
    title: str | None
    model: str | None
    handoff_state: HandoffStateName | None
    handoff_platform: str | None
    handoff_error: str | None
    cwd: str | None
    model_config: str | None
    system_prompt: str | None
    imported_from: str | None


class SessionRow(SessionColumns):
    """A session: one row of `sessions`."""

    preview: str | None


class FoundSession(SessionColumns):
    """A session in a list."""

    preview: str


class ListedSession(FoundSession):
    """A conversation in a list, with the cursor for the next page."""

    cursor: str
    _lineage_root_id: NotRequired[str]


class MessageRow(TypedDict):
    """A message: one row of `messages`, with its content and its tool calls decoded."""

    id: int
    session_id: str
    role: str
    uid: str
    timestamp: float
    active: int
    observed: int
    token_count: int | None
    finish_reason: str | None
    platform_message_id: str | None
    tool_call_id: str | None
    tool_name: str | None
    tool_calls: list[dict[str, Any]] | None
    content: Content
    reasoning: str | None
    reasoning_content: str | None
    reasoning_details: str | None
    codex_reasoning_items: str | None
    codex_message_items: str | None


class ConversationMessage(TypedDict):
    """A message in the form that models take; absent values have no key."""

    role: str
    content: Content
    timestamp: NotRequired[float]
    tool_call_id: NotRequired[str]
    tool_name: NotRequired[str]
    tool_calls: NotRequired[list[dict[str, Any]]]
    message_id: NotRequired[str]
    observed: NotRequired[bool]
    finish_reason: NotRequired[str]
    reasoning: NotRequired[str]
    reasoning_content: NotRequired[str]
    reasoning_details: NotRequired[Any]
    codex_reasoning_items: NotRequired[Any]
    codex_message_items: NotRequired[Any]


class ExportedSession(SessionRow):
    """A session with its messages, in the form that `import_session` reads."""

    messages: list[MessageRow]


class UserMessage(TypedDict):
    """The text of a user's message, on one line."""

    id: int
    timestamp: float
    preview: str


class MessagesAround(TypedDict):
    """The messages around one message."""

    window: list[MessageRow]
    messages_before: int
    messages_after: int


class AnchoredView(MessagesAround):
    """The messages around one message, with the first and last messages of the session."""

    bookend_start: list[MessageRow]
    bookend_end: list[MessageRow]


class ContextMessage(TypedDict):
    """A shortened message before or after a search hit."""

    role: str
    content: str


class SearchHit(TypedDict):
    """A message that a search found, with its session and the messages around it."""

    id: int
    session_id: str
    role: str
    timestamp: float
    tool_name: str | None
    source: str
    model: str | None
    session_started: float
    title: str | None
    snippet: str
    context: list[ContextMessage]


class StartedSession(TypedDict):
    """A session that was created with its first message."""

    message_id: int
    title: str | None


class ContinuedSession(TypedDict):
    """A session that continues another."""

    title: str | None
    message_count: int


class Rewound(TypedDict):
    """The messages that an undo has hidden."""

    rewound_count: int
    target_message: MessageRow
    new_head_id: int | None


class RewindRow(TypedDict):
    """One entry in the audit trail of undone messages."""

    id: int
    action: Literal["rewind", "restore"]
    target_message_id: int
    message_count: int
    at: float


class Ancestor(TypedDict):
    """An ancestor of a session."""

    id: str
    title: str | None
    started_at: float
    parent_session_id: str | None


class Descendant(TypedDict):
    """A descendant of a session."""

    id: str
    title: str | None
    started_at: float


class ModelUsage(TypedDict):
    """The usage of one model."""

    model: str
    session_count: int
    total_input: int
    total_output: int
    total_cost: float | None


class TopSession(TypedDict):
    """A session and its token count."""

    id: str
    title: str | None
    model: str | None
    total_tokens: int
    estimated_cost_usd: float | None


class UsageEvent(TypedDict):
    """One record of tokens and costs."""

    id: int
    session_id: str
    at: float
    kind: Literal["delta", "absolute", "opening"]
    model: str | None
    billing_provider: str | None
    api_call_count: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    estimated_cost_usd: float | None
    actual_cost_usd: float | None


class HandoffState(TypedDict):
    """The state of a session's handoff to another platform."""

    state: HandoffStateName | None
    platform: str | None
    error: str | None


class TelegramTopicBinding(TypedDict):
    """Which session a topic of a private Telegram chat continues."""

    chat_id: str
    thread_id: str
    user_id: str
    session_key: str
    session_id: str
    managed_mode: str
    linked_at: float
    """When the topic was linked to this session."""
    updated_at: float


class PruneOutcome(TypedDict):
    """The result of an automatic prune."""

    skipped: bool
    pruned: int
    vacuumed: bool
    error: NotRequired[str]


class ImportCounts(TypedDict):
    """How many rows an imported database added."""

    sessions: int
    messages: int
    sessions_seen: int


class HealthError(TypedDict):
    """Why a store fails."""

    code: str
    message: str
    hint: str


class Health(TypedDict):
    """Whether a store works, and details about it."""

    provider: str
    ok: bool
    latency_ms: NotRequired[float]
    schema_version: NotRequired[int]
    error: NotRequired[HealthError]
    path: NotRequired[str]
    database: NotRequired[str]
    server: NotRequired[str]
    is_behind_pooler: NotRequired[bool]
    pool: NotRequired[dict[str, Any]]
    waiting_for_index: NotRequired[int]
