"""How much attached context a message may have: a share of what the model can read."""

from __future__ import annotations

from hermes.agent.history.token_estimate import BYTES_PER_TOKEN, CONTEXT_TOKENS, PER_IMAGE, tokens_of
from hermes.errors import InvalidValue

WARNED_PERCENT = 25
"""With more of the model's context, the user gets a warning."""
MAX_PERCENT = 50
"""With more of it, the message is refused."""
MAX_REFERENCES = 20
"""How many references of one message are read."""
MAX_SECONDS = 60.0
"""After this time no further reference of a turn is read."""


class TooMuchContext(Exception):
    """The references name more than the model may get."""


class Budget:
    """The tokens that the references of one turn may use."""

    def __init__(self, context_tokens: int | None) -> None:
        self.context_tokens = context_tokens or CONTEXT_TOKENS
        self.max_tokens = self.context_tokens * MAX_PERCENT // 100
        self.spent = 0

    @property
    def left_bytes(self) -> int:
        """More bytes than this are certainly too many."""
        return max(0, self.max_tokens - self.spent) * BYTES_PER_TOKEN

    def spend(self, text: str, images: int = 0) -> int:
        """Count a text and images and return their tokens; raise `TooMuchContext` if they do not fit."""
        tokens = tokens_of(text) + images * PER_IMAGE
        if self.spent + tokens > self.max_tokens:
            raise TooMuchContext
        self.spent += tokens
        return tokens

    @property
    def warning(self) -> str | None:
        """A sentence for the user if the attached context is large, or None."""
        if self.spent * 100 <= self.context_tokens * WARNED_PERCENT:
            return None
        percent = self.spent * 100 // self.context_tokens
        return (
            f"the attached context has about {self.spent} tokens, which is {percent} % of what the model can read"
            f" ({self.context_tokens})"
        )

    @property
    def refusal(self) -> InvalidValue:
        """The error for a message whose references do not fit."""
        return InvalidValue(
            f"the references name more than {MAX_PERCENT} % of what the model can read"
            f" ({self.max_tokens} of {self.context_tokens} tokens); nothing was sent",
            hint="name fewer files, or only some lines: @file:PATH:10-40",
        )
