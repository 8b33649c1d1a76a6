"""Messages of the user that a turn answers."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message of the user; its uid names it, so that it is stored once, however often it is given."""

    text: str
    uid: str
    attached: str = ""
    """What the references in the text name, for the model."""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InvalidValue("the message is empty")
