"""Compression: a conversation that grew too long goes on in a child session, with a summary of what is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, assert_never

from hermes.agent.compression.division import Division, count_kept, divide, exchanges_of, tokens_of_rows
from hermes.agent.compression.extract import extract
from hermes.agent.compression.lock_renewal import LockRenewal
from hermes.agent.compression.summary import can_summarize, summary_message, summary_prompt
from hermes.agent.history.token_estimate import room_for
from hermes.agent.listener import Listener
from hermes.agent.models.auxiliary import ask_once
from hermes.agent.models.model import Cancellation, Model
from hermes.errors import Conflict, ModelError
from hermes.ids import new_session_id
from hermes.state.rows import AnyRow

if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.state.owner_view import OwnerView

LOCK_TTL_S = 60.0
KEPT_BY_HAND = 2
MAX_KEPT = 100
MIN_GAIN = 0.2
"""A compression that nobody has asked for must free so much of the room that there is."""

TOO_LITTLE = "there is too little to compress"
BUSY = "another process is compressing this session at this moment"
LOST = "another process has taken over the compression of this session"
LONGER = "with its summary the conversation would be no shorter"
STOPPED = "the compression was stopped"


@dataclass(frozen=True, slots=True)
class CompressionRequest:
    """Why a conversation is to be compressed, and how."""

    why: Literal["asked", "grown", "full"] = "asked"
    """A person has asked for it; it has grown long, but can go on without; or the model cannot read it any more."""
    focus: str | None = None
    """What the summary should tell most about."""
    keep: int | None = None
    """How many of the last exchanges stay word for word, if somebody has a number in mind."""


@dataclass(frozen=True, slots=True)
class CompressionResult:
    """What became of a compression."""

    session_id: str
    """The session to go on with; the old one if nothing has changed."""
    messages_before: int = 0
    messages_after: int = 0
    tokens_before: int = 0
    """An estimate, as is that of the tokens after it."""
    tokens_after: int = 0
    title: str | None = None
    reason: str = ""
    """Why nothing has changed, if nothing has."""

    @property
    def is_changed(self) -> bool:
        """Whether the conversation goes on in another session."""
        return not self.reason


class _Unchanged(Exception):
    """Nothing has changed, for a reason."""


def _tokens_with(division: Division, summary: str) -> int:
    """About how long a conversation is with a summary in the place of its middle."""
    told = {**division.middle[0], "role": "system", "content": summary, "tool_calls": None}
    return tokens_of_rows([*division.head, told, *division.tail])


class Compression:
    """Compresses the conversations of an agent, one process at a time each."""

    def __init__(self, agent: Agent, store: OwnerView, model: Model, *, lock_ttl_s: float = LOCK_TTL_S) -> None:
        self._agent = agent
        self._store = store
        self._model = model
        self._room = room_for(model.context_tokens, agent.config.compression.threshold)
        self._lock_ttl_s = lock_ttl_s

    def run(
        self,
        session_id: str,
        wish: CompressionRequest,
        prompt: Callable[[str], str],
        listener: Listener,
        cancellation: Cancellation,
    ) -> CompressionResult:
        """Compress a session; `prompt` answers the system prompt of the child by its id."""
        store = self._store
        rows = store.get_messages(session_id)
        try:
            division = self._divide(rows, wish)
            call = Cancellation()
            with LockRenewal(store, session_id, self._lock_ttl_s, lost=call.cancel) as renewal:
                if not renewal.is_held:
                    raise _Unchanged(BUSY)
                forget = cancellation.on_cancel(call.cancel)
                try:
                    summary = self._summarize(session_id, division.middle, wish, listener, call)
                finally:
                    forget()
                if summary is None:
                    raise _Unchanged(STOPPED if renewal.is_held else LOST)
                summary = summary_message(summary, session_id)
                # Where the model cannot read it any more, an estimate is no reason not to try.
                if wish.why != "full" and _tokens_with(division, summary) >= tokens_of_rows(rows):
                    raise _Unchanged(LONGER)
                child_id = new_session_id(self._agent.clock())
                made = store.compress_session(
                    session_id,
                    child_id,
                    summary,
                    head_upto=division.head_upto,
                    tail_from=division.tail[0]["id"],
                    system_prompt=prompt(child_id),
                    holder=renewal.holder,
                )
        except (_Unchanged, Conflict) as unchanged:
            return CompressionResult(session_id, reason=str(unchanged))
        return CompressionResult(
            child_id,
            messages_before=len(rows),
            messages_after=made["message_count"],
            tokens_before=tokens_of_rows(rows),
            tokens_after=tokens_of_rows(store.get_messages(child_id)),
            title=made["title"],
        )

    def _divide(self, rows: Sequence[AnyRow], wish: CompressionRequest) -> Division:
        """What stays and what does not."""
        settings = self._agent.config.compression
        exchanges = exchanges_of(rows)
        budget = int(self._room * min(settings.target_ratio, 1.0))
        match wish.why:
            case "asked":
                kept = min(max(1, KEPT_BY_HAND if wish.keep is None else wish.keep), MAX_KEPT)
            case "grown":
                kept = count_kept(exchanges, tokens=budget, messages=settings.protect_last_n)
            case "full":
                kept, budget = 1, 0
            case never:
                assert_never(never)
        division = divide(exchanges, head_messages=settings.protect_first_n, head_tokens=budget, kept=kept)
        is_worth_it = wish.why != "grown" or tokens_of_rows(division.middle) >= MIN_GAIN * self._room
        if not division.middle or not is_worth_it:
            raise _Unchanged(TOO_LITTLE)
        return division

    def _summarize(
        self,
        session_id: str,
        rows: Sequence[AnyRow],
        wish: CompressionRequest,
        listener: Listener,
        cancellation: Cancellation,
    ) -> str | None:
        """A summary by a model, or else an extract; None when it was stopped."""
        model = self._agent.auxiliary or self._model
        if not can_summarize(model):
            return extract(rows, wish.focus)
        asked = summary_prompt(rows, wish.focus, model.context_tokens)
        try:
            reply = ask_once(model, asked, self._agent.config.auxiliary.summary_timeout_s, cancellation)
        except ModelError as error:
            if wish.why == "grown":  # there will be another occasion
                raise _Unchanged(f"{model.name} gave no summary: {error.message}") from error
            listener.notice(f"{model.name} gave no summary ({error.message}); its main points are picked out instead")
            return extract(rows, wish.focus)
        if reply is None:
            return None
        self._agent.accounts.book(self._store, session_id, model, reply, asked)
        return reply.text
