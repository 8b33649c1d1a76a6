"""One turn: the model is asked, its tools are run, and so on until it has answered; all is stored as it happens."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, assert_never

from hermes.agent.accounting import Spending
from hermes.agent.history.projection import project
from hermes.agent.history.token_estimate import room_for, tokens_of_conversation
from hermes.agent.history.tool_results import INTERRUPTED
from hermes.agent.listener import Listener
from hermes.agent.models.model import (
    Cancellation,
    Message,
    Model,
    Notice,
    ReasoningDelta,
    Reply,
    Retrying,
    TextDelta,
    TextWasReasoning,
    ToolCall,
    ToolSchema,
    Usage,
)
from hermes.agent.partial_answer import PartialAnswerSaver
from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.results import ToolResult, failure
from hermes.agent.turn_record import TurnRecord, new_uid
from hermes.errors import ContextTooLong, HermesError, ModelGarbled
from hermes.state.messages.partial import PARTIAL

if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.agent.compression.compress import CompressionResult

Status = Literal["done", "interrupted", "failed"]

CUT = "cut"
"""The finish_reason of an answer that broke off."""

LAST_STEP = (
    "[This was the last step of this turn: no tool can be used any more. Answer now with what you have, and say what is"
    " left to do.]"
)
_BROKEN_OFF = failure("interrupted while it ran; what it had done by then stays done")
_RECONSIDERED = "what the model has written until here are its thoughts, as it says now; its answer follows"
_OWN_ENDS = (PARTIAL, INTERRUPTED, CUT)
"""What only a turn can say of an answer, never an endpoint."""
_ODD_ENDS = {
    "length": "the answer ends here because the model may not write more at once",
    "content_filter": "the model's endpoint has held back a part of the answer",
}


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """What came of a turn."""

    status: Status
    session_id: str
    """The session that it ended in, which is another if the conversation was compressed meanwhile."""
    text: str = ""
    """The answer, or what there was of it."""
    error: HermesError | None = None
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    """In US dollars; None if nobody knows."""
    is_estimated: bool = False
    """Whether the endpoint did not count all tokens, so that some are estimated."""
    tool_calls: int = 0
    """How many tools were run."""


class Host(Protocol):
    """The conversation that a turn belongs to."""

    @property
    def prompt(self) -> str:
        """The system prompt of its session."""
        ...

    @property
    def toolsets(self) -> Collection[str]:
        """Those that are on."""
        ...

    def tool_context(self, cancellation: Cancellation) -> ToolContext:
        """What its tools work with."""
        ...

    def shrink(self, listener: Listener, cancellation: Cancellation, *, is_forced: bool) -> CompressionResult:
        """Go on in a shorter session, if that is possible."""
        ...


class _Interrupted(Exception):
    """The person has stopped the turn."""


class Turn:
    """Answers what was said last in a record."""

    def __init__(
        self,
        agent: Agent,
        model: Model,
        host: Host,
        record: TurnRecord,
        listener: Listener,
        cancellation: Cancellation,
        *,
        prompt_tokens: int = 0,
    ) -> None:
        self.prompt_tokens = prompt_tokens
        """How long the conversation was when the model counted last."""
        self._agent = agent
        self._model = model
        self._host = host
        self._record = record
        self._listener = listener
        self._cancellation = cancellation
        self._spent = Spending()
        self._tool_calls = 0
        self._text = ""
        self._asked: Sequence[Message] = ()
        self._pieces: list[str] = []
        self._thoughts: list[str] = []
        """What has been said and thought of an answer that is not stored yet."""
        self._kept = ("", "")
        """What of it is stored all the same, because it takes long."""
        self._uid = new_uid()
        """The name under which it is stored, once, whoever interrupts that."""
        self._may_shrink = agent.config.compression.enabled
        self._may_force = True

    def run(self) -> TurnOutcome:
        """Go through with it; whatever happens, what was said is kept."""
        try:
            self._answer()
        except (_Interrupted, KeyboardInterrupt):
            return self._ended("interrupted", INTERRUPTED)
        except HermesError as error:
            return self._ended("failed", CUT if self._pieces or self._thoughts else None, error)
        except BaseException:  # such as that of a listener whose terminal is gone
            self._ended("failed", INTERRUPTED)
            raise
        return self._ended("done")

    def _answer(self) -> None:
        schemas = self._agent.tools.schemas(self._host.toolsets)
        max_steps = self._agent.config.agent.max_steps
        for _ in range(max_steps):
            reply = self._ask(schemas)
            if not reply.tool_calls:
                return
            self._run_tools(reply.tool_calls)
        self._listener.notice(f"this turn has taken {max_steps} steps (agent.max_steps); the model has to answer now")
        self._ask((), is_last=True)

    def _ask(self, tools: Sequence[ToolSchema], *, is_last: bool = False) -> Reply:
        """One answer of the model, stored and booked."""
        if self._cancellation.is_cancelled:
            raise _Interrupted
        self._make_room(tools, is_last=is_last)
        try:
            reply = self._listen(tools)
        except ContextTooLong:
            if not self._may_force or not self._shrink(is_forced=True):
                raise
            self._asked = self._messages(tools, is_last=is_last)
            reply = self._listen(tools)
        self._text = reply.text
        self._record.add(
            "assistant",
            reply.text or None,
            tool_calls=[] if is_last else [_stored(call) for call in reply.tool_calls],
            finish_reason=None if reply.finish_reason in _OWN_ENDS else reply.finish_reason,
            reasoning=reply.reasoning,
            token_count=reply.usage.output_tokens if reply.usage else None,
            uid=self._uid,
        )
        self._pieces, self._thoughts, self._kept, self._uid = [], [], ("", ""), new_uid()
        self._book(reply, tools)
        if reply.finish_reason in _ODD_ENDS:
            self._listener.notice(_ODD_ENDS[reply.finish_reason])
        elif not reply.text and not reply.tool_calls:
            self._listener.notice("the model answered with nothing")
        return reply

    def _listen(self, tools: Sequence[ToolSchema]) -> Reply:
        """Hear an answer to its end."""
        with PartialAnswerSaver(self._keep_partial) as keeper:
            return self._hear(tools, keeper)

    def _keep_partial(self) -> None:
        """Store what has come of the answer, if that is more than is stored."""
        text, reasoning = "".join(list(self._pieces)), "".join(list(self._thoughts))
        if (text or reasoning) and (text, reasoning) != self._kept:
            self._record.keep_partial(text, reasoning, self._uid)
            self._kept = text, reasoning

    def _hear(self, tools: Sequence[ToolSchema], keeper: PartialAnswerSaver) -> Reply:
        stream = self._model.stream(self._asked, tools, self._cancellation)
        try:
            for event in stream:
                match event:
                    case TextDelta(piece):
                        self._pieces.append(piece)
                        keeper.begin()
                        self._listener.text(piece)
                    case ReasoningDelta(piece):
                        self._thoughts.append(piece)
                        keeper.begin()
                        self._listener.reasoning(piece)
                    case TextWasReasoning():
                        self._pieces, self._thoughts = [], [*self._thoughts, *self._pieces]
                        self._listener.notice(_RECONSIDERED)
                    case Retrying(seconds, why):
                        self._listener.retrying(seconds, why)
                    case Notice(text):
                        self._listener.notice(text)
                    case Reply() as reply:
                        if reply.text and not self._pieces:
                            self._listener.text(reply.text)
                        return reply
                    case never:
                        assert_never(never)
        finally:
            if isinstance(stream, Generator):
                stream.close()  # which hangs up
        if self._cancellation.is_cancelled:
            raise _Interrupted
        raise ModelGarbled(f"{self._model.name} ended without an answer", hint="try again")

    def _run_tools(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            if self._cancellation.is_cancelled:
                raise _Interrupted
            self._listener.tool_started(call)
            try:
                result = self._agent.tools.run(call, self._host.tool_context(self._cancellation))
            except KeyboardInterrupt:
                self._keep_result(call, _BROKEN_OFF)
                raise
            self._keep_result(call, result)

    def _keep_result(self, call: ToolCall, result: ToolResult) -> None:
        self._tool_calls += 1
        self._record.add("tool", result.text, tool_call_id=call.id, tool_name=call.name)
        self._listener.tool_finished(call, result)

    def _make_room(self, tools: Sequence[ToolSchema], *, is_last: bool) -> None:
        """Decide what the model is given, and make the conversation shorter before it is too long."""
        self._asked = self._messages(tools, is_last=is_last)
        if not self._may_shrink:
            return
        size = max(tokens_of_conversation(self._asked, tools), self.prompt_tokens)
        threshold = self._agent.config.compression.threshold
        if size > room_for(self._model.context_tokens, threshold) and self._shrink(is_forced=False):
            self._asked = self._messages(tools, is_last=is_last)

    def _messages(self, tools: Sequence[ToolSchema], *, is_last: bool) -> list[Message]:
        last = [{"role": "user", "content": LAST_STEP}] if is_last else []
        history = project([*self._record.messages, *last], with_tools=bool(tools))
        return [{"role": "system", "content": self._host.prompt}, *history]

    def _shrink(self, *, is_forced: bool) -> bool:
        """Compress the conversation, at most once of its own accord and once because the model cannot read it all."""
        self._may_shrink = False
        self._may_force = self._may_force and not is_forced
        compressed = self._host.shrink(self._listener, self._cancellation, is_forced=is_forced)
        if self._cancellation.is_cancelled:
            raise _Interrupted
        if compressed.is_changed:
            self.prompt_tokens = 0
            self._record.load()
        return compressed.is_changed

    def _book(self, reply: Reply, tools: Sequence[ToolSchema] = ()) -> None:
        spent = self._agent.accounts.book(
            self._record.store, self._record.session_id, self._model, reply, self._asked, tools
        )
        self.prompt_tokens = spent.usage.prompt_tokens
        self._spent += spent

    def _ended(self, status: Status, finish_reason: str | None = None, error: HermesError | None = None) -> TurnOutcome:
        """The outcome; how a turn ended that was not done is stored with what was said until then."""
        if finish_reason is not None:
            self._text, reasoning = "".join(self._pieces), "".join(self._thoughts)
            try:
                self._record.add(
                    "assistant", self._text or None, finish_reason=finish_reason, reasoning=reasoning, uid=self._uid
                )
            except HermesError as failure:
                status, error = "failed", failure
            else:
                if self._text or reasoning:
                    self._book(Reply(self._text, reasoning=reasoning or None))
        return TurnOutcome(
            status,
            self._record.session_id,
            self._text,
            error,
            self._spent.usage,
            self._spent.cost_usd,
            self._spent.is_estimated,
            self._tool_calls,
        )


def _stored(call: ToolCall) -> dict[str, object]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
