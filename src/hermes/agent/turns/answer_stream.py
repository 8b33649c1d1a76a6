"""Receives the answers of a model, and stores the beginning of each while it arrives."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import assert_never

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
    ToolSchema,
)
from hermes.agent.turns.partial_answer import PartialAnswerSaver
from hermes.agent.turns.turn_record import TurnRecord
from hermes.errors import ModelGarbled, StaleLease
from hermes.ids import new_caller_uid

RECONSIDERED = "the text so far was the model's reasoning; its answer follows"
"""The notice after which the listener should forget the text that it has got."""


class TurnInterrupted(Exception):
    """The user has stopped the turn."""


class AnswerStream:
    """Receives one answer after another; `text` and `reasoning` are those of the answer that is not complete yet."""

    def __init__(self, model: Model, record: TurnRecord, listener: Listener, cancellation: Cancellation) -> None:
        self.uid = new_caller_uid()
        """The uid of the answer, so that it is stored once, also after an interruption."""
        self._model = model
        self._record = record
        self._listener = listener
        self._cancellation = cancellation
        self._pieces: list[str] = []
        self._thoughts: list[str] = []
        self._saved = ("", "")
        """How much of both is stored as a partial answer."""
        self._lost_lease: StaleLease | None = None

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(list(self._pieces))

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return "".join(list(self._thoughts))

    def next(self) -> None:
        """Begin the next answer; the last one is complete and stored."""
        self._pieces, self._thoughts, self._saved, self.uid = [], [], ("", ""), new_caller_uid()

    def receive(self, asked: Sequence[Message], tools: Sequence[ToolSchema]) -> Reply:
        """Receive an answer to its end; raise `TurnInterrupted` if the turn is cancelled meanwhile."""
        # A lost lease stops only this call; the cancellation of the turn belongs to its caller.
        call = Cancellation()
        unregister = self._cancellation.on_cancel(call.cancel)
        try:
            with PartialAnswerSaver(lambda: self._save_partial(call)) as saver:
                reply = self._read(asked, tools, saver, call)
        finally:
            unregister()
        if self._lost_lease is not None:
            raise self._lost_lease
        if reply is not None:
            return reply
        if self._cancellation.is_cancelled:
            raise TurnInterrupted
        raise ModelGarbled(f"{self._model.name} ended without an answer", hint="try again")

    def _save_partial(self, call: Cancellation) -> None:
        """Store the text so far, if it has grown; stop the model if another node has the lane now."""
        text, reasoning = self.text, self.reasoning
        if self._lost_lease is not None or not (text or reasoning) or (text, reasoning) == self._saved:
            return
        try:
            self._record.save_partial(text, reasoning, self.uid)
        except StaleLease as error:
            self._lost_lease = error
            call.cancel()
        else:
            self._saved = text, reasoning

    def _read(
        self, asked: Sequence[Message], tools: Sequence[ToolSchema], saver: PartialAnswerSaver, call: Cancellation
    ) -> Reply | None:
        """Read a stream to its end and return the reply; None if it ends without one."""
        stream = self._model.stream(asked, tools, call)
        try:
            for event in stream:
                match event:
                    case TextDelta(piece):
                        self._pieces.append(piece)
                        saver.begin()
                        self._listener.text(piece)
                    case ReasoningDelta(piece):
                        self._thoughts.append(piece)
                        saver.begin()
                        self._listener.reasoning(piece)
                    case TextWasReasoning():
                        self._pieces, self._thoughts = [], [*self._thoughts, *self._pieces]
                        self._listener.notice(RECONSIDERED)
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
                stream.close()  # closes the connection
        return None
