"""Compression: a long conversation continues in a child session, with a summary of its older messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, assert_never

from hermes.agent.compression.division import Division, count_kept, divide, exchanges_of, tokens_of_rows
from hermes.agent.compression.extract import extract
from hermes.agent.compression.lock_renewal import LockRenewal
from hermes.agent.compression.summary import can_summarize, summary_message, summary_prompt
from hermes.agent.history.token_estimate import compression_limit
from hermes.agent.listener import Listener
from hermes.agent.models.auxiliary import ask_once
from hermes.agent.models.model import Cancellation, Model
from hermes.errors import Conflict, ModelError, StaleLease
from hermes.ids import new_session_id
from hermes.state.rows import AnyRow

if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.state.owner_view import OwnerView

LOCK_TTL_S = 60.0
DEFAULT_KEPT = 2
MAX_KEPT = 100
MIN_GAIN = 0.2
"""An automatic compression must free at least this share of the context window."""

TOO_LITTLE = "there is too little to compress"
BUSY = "another process is compressing this session"
LOST = "another process has taken over the compression of this session"
LONGER = "the conversation would not be shorter with a summary"
STOPPED = "the compression was stopped"


@dataclass(frozen=True, slots=True)
class CompressionRequest:
    """Why to compress a conversation, and how."""

    why: Literal["asked", "grown", "full"] = "asked"
    """The user asked for it; it is long, but still fits the model; or it no longer fits the model."""
    focus: str | None = None
    """The topic that the summary should concentrate on."""
    keep: int | None = None
    """How many of the last exchanges stay unchanged; None for the default."""


@dataclass(frozen=True, slots=True)
class CompressionResult:
    """The result of a compression."""

    session_id: str
    """The session to continue; the old one if nothing changed."""
    messages_before: int = 0
    messages_after: int = 0
    tokens_before: int = 0
    """An estimate, like `tokens_after`."""
    tokens_after: int = 0
    title: str | None = None
    reason: str = ""
    """Why nothing changed; empty if the conversation was compressed."""

    @property
    def is_changed(self) -> bool:
        """Whether the conversation continues in another session."""
        return not self.reason


class _Unchanged(Exception):
    """Raised when the conversation stays unchanged; the message is the reason."""


def _tokens_with(division: Division, summary: str) -> int:
    """Estimate the tokens of a conversation with a summary instead of its middle."""
    row = {**division.middle[0], "role": "system", "content": summary, "tool_calls": None}
    return tokens_of_rows([*division.head, row, *division.tail])


class Compression:
    """Compresses conversations; a lock lets only one process at a time compress a session."""

    def __init__(self, agent: Agent, store: OwnerView, model: Model, *, lock_ttl_s: float = LOCK_TTL_S) -> None:
        self._agent = agent
        self._store = store
        self._model = model
        self._limit_tokens = compression_limit(model.context_tokens, agent.config.compression.threshold)
        self._lock_ttl_s = lock_ttl_s

    def run(
        self,
        session_id: str,
        request: CompressionRequest,
        prompt: Callable[[str], str | None],
        listener: Listener,
        cancellation: Cancellation,
    ) -> CompressionResult:
        """Compress a session; `prompt` returns the system prompt for the child's id, or None to write it later."""
        store = self._store
        rows = store.get_messages(session_id)
        try:
            division = self._divide(rows, request)
            call = Cancellation()
            with LockRenewal(store, session_id, self._lock_ttl_s, lost=call.cancel) as renewal:
                if not renewal.is_held:
                    raise _Unchanged(BUSY)
                unregister = cancellation.on_cancel(call.cancel)
                try:
                    summary = self._summarize(session_id, division.middle, request, listener, call)
                finally:
                    unregister()
                if summary is None:
                    raise _Unchanged(STOPPED if renewal.is_held else LOST)
                summary = summary_message(summary, session_id)
                # If it no longer fits the model, try in any case: the token count is only an estimate.
                if request.why != "full" and _tokens_with(division, summary) >= tokens_of_rows(rows):
                    raise _Unchanged(LONGER)
                child_id = new_session_id(self._agent.clock())
                child = store.compress_session(
                    session_id,
                    child_id,
                    summary,
                    head_upto=division.head_upto,
                    tail_from=division.tail[0]["id"],
                    system_prompt=prompt(child_id),
                    holder=renewal.holder,
                )
        except StaleLease:  # another node has the lane now: the whole turn ends
            raise
        except (_Unchanged, Conflict) as unchanged:
            return CompressionResult(session_id, reason=str(unchanged))
        return CompressionResult(
            child_id,
            messages_before=len(rows),
            messages_after=child["message_count"],
            tokens_before=tokens_of_rows(rows),
            tokens_after=tokens_of_rows(store.get_messages(child_id)),
            title=child["title"],
        )

    def _divide(self, rows: Sequence[AnyRow], request: CompressionRequest) -> Division:
        """Divide the conversation; raise _Unchanged if there is too little to compress."""
        settings = self._agent.config.compression
        exchanges = exchanges_of(rows)
        budget = int(self._limit_tokens * min(settings.target_ratio, 1.0))
        match request.why:
            case "asked":
                kept = min(max(1, DEFAULT_KEPT if request.keep is None else request.keep), MAX_KEPT)
            case "grown":
                kept = count_kept(exchanges, tokens=budget, messages=settings.protect_last_n)
            case "full":
                kept, budget = 1, 0
            case never:
                assert_never(never)
        division = divide(exchanges, head_messages=settings.protect_first_n, head_tokens=budget, kept=kept)
        is_worth_it = request.why != "grown" or tokens_of_rows(division.middle) >= MIN_GAIN * self._limit_tokens
        if not division.middle or not is_worth_it:
            raise _Unchanged(TOO_LITTLE)
        return division

    def _summarize(
        self,
        session_id: str,
        rows: Sequence[AnyRow],
        request: CompressionRequest,
        listener: Listener,
        cancellation: Cancellation,
    ) -> str | None:
        """Return a summary by a model, or an extract if that fails; None if the call was cancelled."""
        model = self._agent.auxiliary or self._model
        if not can_summarize(model):
            return extract(rows, request.focus)
        prompt = summary_prompt(rows, request.focus, model.context_tokens)
        try:
            reply = ask_once(model, prompt, self._agent.config.auxiliary.summary_timeout_s, cancellation)
        except ModelError as error:
            if request.why == "grown":  # a later turn tries again
                raise _Unchanged(f"{model.name} could not write a summary: {error.message}") from error
            listener.notice(
                f"{model.name} could not write a summary ({error.message}); using extracted main points instead"
            )
            return extract(rows, request.focus)
        if reply is None:
            return None
        self._agent.accounts.book(self._store, session_id, model, reply, prompt)
        return reply.text
