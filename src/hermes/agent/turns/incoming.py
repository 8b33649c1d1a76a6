"""Messages of the user that a turn answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hermes.agent.history.images import Image, Part, content_with
from hermes.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message of the user; its uid names it, so that it is stored once, however often it is given."""

    text: str
    uid: str
    attached: str = ""
    """What the references in the text name, for the model."""
    images: Sequence[Image] = ()

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InvalidValue("the message is empty")

    @property
    def content(self) -> str | list[Part]:
        """The content of the stored message."""
        return content_with(self.text, self.images)
