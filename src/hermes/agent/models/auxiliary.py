"""Small questions beside the conversation: one text in, one text out, within a time limit."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Timer

from hermes.agent.models.model import Cancellation, Message, Model, Reply
from hermes.errors import ModelGarbled, ModelTimeout


def single_prompt(instructions: str, text: str) -> list[Message]:
    """A conversation that asks one thing."""
    return [{"role": "system", "content": instructions}, {"role": "user", "content": text}]


def ask_once(
    model: Model, messages: Sequence[Message], limit_s: float, cancellation: Cancellation | None = None
) -> Reply | None:
    """What a model answers; None when the stop was wished. Raises a `ModelError` when there is no answer in time."""
    call = Cancellation()
    timer = Timer(limit_s, call.cancel)
    timer.daemon = True
    timer.start()
    forget = cancellation.on_cancel(call.cancel) if cancellation is not None else None
    reply = None
    try:
        for event in model.stream(messages, (), call):
            if isinstance(event, Reply):
                reply = event
    finally:
        timer.cancel()
        if forget is not None:
            forget()
    if reply is None:
        if cancellation is not None and cancellation.is_cancelled:
            return None
        raise ModelTimeout(f"{model.name} did not answer within {limit_s:g} s")
    if not reply.text.strip():
        raise ModelGarbled(f"{model.name} answered with nothing", hint="try again, or use another model")
    return reply
