"""Images in messages: the form in which they are stored and sent, and how many of them a model gets."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Part = dict[str, Any]

MAX_SENT_CHARACTERS = 24_000_000
"""Of the images of a conversation, the newest are sent up to this size: endpoints refuse larger requests."""
_DATA = "data:image/"
UNSEEN = "[An image, which this model cannot see.]"
NOT_SENT = "[An earlier image, which is not sent any more.]"


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the user."""

    media_type: str
    width: int
    height: int
    data: bytes

    @property
    def label(self) -> str:
        """What it is, in a few words."""
        kind = self.media_type.rpartition("/")[2].upper()
        return f"{kind} image, {self.width} x {self.height}"

    @property
    def part(self) -> Part:
        """The image as a part of a message."""
        address = f"data:{self.media_type};base64,{b64encode(self.data).decode('ascii')}"
        return {"type": "image_url", "image_url": {"url": address}}


def content_with(text: str, images: Sequence[Image]) -> str | list[Part]:
    """Return the content of a message: the text as it was typed, and after it the images."""
    return [{"type": "text", "text": text}, *(each.part for each in images)] if images else text


def is_image(part: Any) -> bool:
    """Whether a part of a message is an image that can be sent: with its data, and not an address.

    The endpoint would fetch an address, and one in an imported session may lead to the user's network.
    """
    if not isinstance(part, dict) or part.get("type") != "image_url" or not isinstance(part.get("image_url"), dict):
        return False
    return isinstance(url := part["image_url"].get("url"), str) and url.startswith(_DATA)


def limit_images(contents: Sequence[list[Part]]) -> None:
    """Replace the oldest images by a text, so that a request does not become too large."""
    left = MAX_SENT_CHARACTERS
    for parts in reversed(contents):
        for place in range(len(parts) - 1, -1, -1):
            if parts[place]["type"] != "image_url":
                continue
            left -= len(parts[place]["image_url"]["url"])
            if left < 0:
                parts[place] = {"type": "text", "text": NOT_SENT}
