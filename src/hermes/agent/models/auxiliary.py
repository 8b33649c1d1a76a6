"""Single questions to a model outside the conversation, with a time limit."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Timer

from hermes.agent.models.model import Cancellation, Message, Model, Reply
from hermes.errors import ModelGarbled, ModelTimeout


def single_prompt(instructions: str, text: str) -> list[Message]:
    """Return the messages for a single question."""
    return [{"role": "system", "content": instructions}, {"role": "user", "content": text}]


def ask_once(
    model: Model, messages: Sequence[Message], limit_s: float, cancellation: Cancellation | None = None
) -> Reply | None:
    """Return the reply of a model, or None if cancelled; raise a `ModelError` if it fails or takes too long."""
    call = Cancellation()
    timer = Timer(limit_s, call.cancel)
    timer.daemon = True
    timer.start()
    unregister = cancellation.on_cancel(call.cancel) if cancellation is not None else None
    reply = None
    try:
        for event in model.stream(messages, (), call):
            if isinstance(event, Reply):
                reply = event
    finally:
        timer.cancel()
        if unregister is not None:
            unregister()
    if reply is None:
        if cancellation is not None and cancellation.is_cancelled:
            return None
        raise ModelTimeout(f"{model.name} did not answer within {limit_s:g} s")
    if not reply.text.strip():
        raise ModelGarbled(f"{model.name} gave an empty answer", hint="try again, or use another model")
    return reply
