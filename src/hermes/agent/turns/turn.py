"""One turn: asks the model and runs its tools until it has answered; every message is stored as it happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from hermes.agent.accounting import Spending
from hermes.agent.history.projection import project
from hermes.agent.history.token_estimate import compression_limit, tokens_of_conversation
from hermes.agent.history.tool_results import INTERRUPTED
from hermes.agent.listener import Listener
from hermes.agent.models.model import Cancellation, Message, Reply, ToolCall, ToolSchema, Usage
from hermes.agent.models.sight import sees_images
from hermes.agent.tools.results import ToolResult, failure
from hermes.agent.turns.answer_stream import AnswerStream, TurnInterrupted
from hermes.agent.turns.steering import Steering
from hermes.agent.turns.turn_record import TurnRecord
from hermes.errors import ContextTooLong, HermesError, StaleLease
from hermes.state.messages.partial import PARTIAL

if TYPE_CHECKING:
    from hermes.agent.open_session import OpenSession

Status = Literal["done", "interrupted", "failed"]

CUT = "cut"
"""The finish_reason of an answer that ended with an error."""

LAST_STEP = (
    "[This was the last step of this turn: no tool can be used any more. Answer now with what you have, and say what is"
    " left to do.]"
)
BETWEEN_ANSWERS = "\n\n"
"""Separates the answers of one turn: before and after a message that the turn took in."""

_INTERRUPTED_TOOL = failure("interrupted while it ran; its effects up to that point remain")
_OWN_ENDS = (PARTIAL, INTERRUPTED, CUT)
"""The finish reasons that only a turn sets, never an endpoint."""
_ODD_ENDS = {
    "length": "the answer stops here: the model has reached its output limit",
    "content_filter": "the model's endpoint has withheld a part of the answer",
}


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """The result of a turn."""

    status: Status
    session_id: str
    """The session in which it ended; another one than before if the conversation was compressed meanwhile."""
    text: str = ""
    """The answer, or its beginning."""
    error: HermesError | None = None
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    """In US dollars; None if unknown."""
    is_estimated: bool = False
    """Whether the endpoint did not count all tokens, so that some are estimated."""
    tool_calls: int = 0
    """How many tools were run."""
    is_known: bool = False
    """Whether the answer was stored before, so that no model was asked."""


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """What a turn may do."""

    toolsets: frozenset[str]
    """The only toolsets that the model gets."""
    max_steps: int
    """How often the model is asked."""
    may_compress: bool = True
    must_answer: bool = True
    """Whether a model that has used all steps is asked once more, for an answer without tools."""


class Turn:
    """One turn of the agent: the model answers the last message of a record, with tool calls on the way."""

    def __init__(
        self,
        session: OpenSession,
        record: TurnRecord,
        listener: Listener,
        cancellation: Cancellation,
        *,
        steering: Steering | None = None,
        limits: TurnLimits | None = None,
    ) -> None:
        settings = session.agent.config
        self.prompt_tokens = session.prompt_tokens
        """The length of the last prompt as the model counted it."""
        self._session = session
        self._agent = session.agent
        self._model = session.model
        self._record = record
        self._listener = listener
        self._cancellation = cancellation
        self._steering = steering or Steering()
        self._limits = limits or TurnLimits(
            session.toolsets, settings.agent.max_steps, may_compress=settings.compression.enabled
        )
        self._answer = AnswerStream(self._model, record, listener, cancellation)
        self._spent = Spending()
        self._tool_calls = 0
        self._texts: list[str] = []
        """The complete answers before messages that the turn took in."""
        self._text = ""
        """The last answer, or its beginning."""
        self._asked: Sequence[Message] = ()
        self._may_compress = self._limits.may_compress
        self._may_force = limits is None or limits.may_compress

    def run(self) -> TurnOutcome:
        """Run the turn and return its outcome; whatever happens, the text so far is stored.

        Only if another node has the lane now, nothing more is stored.
        """
        try:
            self._loop()
        except (TurnInterrupted, KeyboardInterrupt):
            return self._end("interrupted", INTERRUPTED)
        except StaleLease as error:
            return self._end("failed", None, error)
        except HermesError as error:
            return self._end("failed", CUT if self._answer.text or self._answer.reasoning else None, error)
        except BaseException:  # for example of a listener whose terminal was closed
            self._end("failed", INTERRUPTED)
            raise
        return self._end("done")

    def _loop(self) -> None:
        """Ask the model and run its tools, until it calls none or the steps are used up."""
        schemas = self._agent.tools.schemas(self._limits.toolsets)
        max_steps = self._limits.max_steps
        for _ in range(max_steps):
            self._take_offers()
            reply = self._ask(schemas)
            if reply.tool_calls:
                self._run_tools(reply.tool_calls)
            elif self._steering.close_if_empty():
                return
            else:
                self._begin_next_answer()
        if not self._limits.must_answer:
            return
        self._steering.close()
        self._take_offers()
        self._listener.notice(f"this turn has used its {max_steps} steps (agent.max_steps); the model must answer now")
        self._ask((), is_last=True)

    def _take_offers(self) -> None:
        """Store the messages that came during the turn; the model gets them with its next call."""
        offers = self._steering.untaken()
        ids = []
        for each in offers:
            ids.append(self._record.add("user", each.text, uid=each.uid))
            self._steering.mark_taken(each)
        if offers and None not in ids:
            self._record.load()  # a message that was stored before has its old place

    def _begin_next_answer(self) -> None:
        """Keep a complete answer as the first part of the outcome; the answer to later messages follows it."""
        if self._text:
            self._texts.append(self._text)
            self._text = ""
            self._listener.text(BETWEEN_ANSWERS)

    def _ask(self, tools: Sequence[ToolSchema], *, is_last: bool = False) -> Reply:
        """Ask the model once; store and book its reply."""
        if self._cancellation.is_cancelled:
            raise TurnInterrupted
        self._prepare_prompt(tools, is_last=is_last)
        try:
            reply = self._answer.receive(self._asked, tools)
        except ContextTooLong:
            if not self._may_force or not self._compress(is_forced=True):
                raise
            self._asked = self._messages(tools, is_last=is_last)
            reply = self._answer.receive(self._asked, tools)
        self._text = reply.text
        self._record.add(
            "assistant",
            reply.text or None,
            tool_calls=[] if is_last else [_call_json(call) for call in reply.tool_calls],
            finish_reason=None if reply.finish_reason in _OWN_ENDS else reply.finish_reason,
            reasoning=reply.reasoning,
            token_count=reply.usage.output_tokens if reply.usage else None,
            uid=self._answer.uid,
        )
        self._answer.next()
        self._book(reply, tools)
        if reply.finish_reason in _ODD_ENDS:
            self._listener.notice(_ODD_ENDS[reply.finish_reason])
        elif not reply.text and not reply.tool_calls:
            self._listener.notice("the model returned an empty answer")
        return reply

    def _run_tools(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            if self._cancellation.is_cancelled:
                raise TurnInterrupted
            self._listener.tool_started(call)
            try:
                context = self._session.tools.context(self._cancellation, self._limits.toolsets)
                watched = replace(context, show_output=self._listener.tool_output)
                result = self._agent.tools.run(call, watched)
            except KeyboardInterrupt:
                self._store_result(call, _INTERRUPTED_TOOL)
                raise
            self._store_result(call, result)

    def _store_result(self, call: ToolCall, result: ToolResult) -> None:
        self._tool_calls += 1
        self._record.add("tool", result.text, tool_call_id=call.id, tool_name=call.name)
        self._listener.tool_finished(call, result)

    def _prepare_prompt(self, tools: Sequence[ToolSchema], *, is_last: bool) -> None:
        """Prepare the messages for the model, and compress the conversation before it is too long."""
        self._asked = self._messages(tools, is_last=is_last)
        if not self._may_compress:
            return
        size = max(tokens_of_conversation(self._asked, tools), self.prompt_tokens)
        threshold = self._agent.config.compression.threshold
        if size > compression_limit(self._model.context_tokens, threshold) and self._compress(is_forced=False):
            self._asked = self._messages(tools, is_last=is_last)

    def _messages(self, tools: Sequence[ToolSchema], *, is_last: bool) -> list[Message]:
        last = [{"role": "user", "content": LAST_STEP}] if is_last else []
        sees = sees_images(self._model, self._agent.config.model.sees_images)
        history = project([*self._record.messages, *last], with_tools=bool(tools), with_images=sees is not False)
        return [{"role": "system", "content": self._session.prompt}, *history]

    def _compress(self, *, is_forced: bool) -> bool:
        """Compress the conversation, at most once because it is long and once because the model cannot read it all."""
        self._may_compress = False
        self._may_force = self._may_force and not is_forced
        compressed = self._session.compress_in_turn(self._listener, self._cancellation, is_forced=is_forced)
        if self._cancellation.is_cancelled:
            raise TurnInterrupted
        if compressed.is_changed:
            self.prompt_tokens = 0
            self._record.load()
        return compressed.is_changed

    def _book(self, reply: Reply, tools: Sequence[ToolSchema] = ()) -> None:
        session = self._session
        spent = self._agent.accounts.book(session.store, session.session_id, self._model, reply, self._asked, tools)
        self.prompt_tokens = spent.usage.prompt_tokens
        self._spent += spent

    def _end(self, status: Status, finish_reason: str | None = None, error: HermesError | None = None) -> TurnOutcome:
        """Return the outcome; with a finish reason, first store the text so far with it."""
        self._steering.close()
        if status == "failed":
            self._text = self._answer.text or self._text
        if finish_reason is not None:
            self._text, reasoning = self._answer.text, self._answer.reasoning
            try:
                self._record.add(
                    "assistant",
                    self._text or None,
                    finish_reason=finish_reason,
                    reasoning=reasoning,
                    uid=self._answer.uid,
                )
                if self._text or reasoning:
                    self._book(Reply(self._text, reasoning=reasoning or None))
            except HermesError as failure:
                status, error = "failed", failure
        return TurnOutcome(
            status,
            self._session.session_id,
            BETWEEN_ANSWERS.join(each for each in (*self._texts, self._text) if each),
            error,
            self._spent.usage,
            self._spent.cost_usd,
            self._spent.is_estimated,
            self._tool_calls,
        )


def _call_json(call: ToolCall) -> dict[str, object]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
