"""Shortcuts to call the recall tool, and to read its results."""

from __future__ import annotations

import json
import time
from typing import Any

from hermes.state.provider import SessionDBProvider
from hermes.state.recall.tool import session_search
from tests.support.conversations import Row, column

NO_NUMBERS: list[Any] = [None, "many", True, [], {}, float("nan"), float("inf")]
"""Values that a model may pass instead of a number."""


def recall(store: SessionDBProvider | None, **arguments: Any) -> Row:
    """The result of the tool."""
    answer = json.loads(session_search(db=store, **arguments))
    assert isinstance(answer, dict)
    return answer


def found(answer: Row) -> list[str]:
    """The sessions in a successful result."""
    assert answer["success"] is True, answer
    return column(answer["results"], "session_id")


def error(answer: Row) -> str:
    """The error in a failed result."""
    assert answer.keys() == {"success", "error"}, answer
    assert answer["success"] is False
    assert answer["error"]
    return str(answer["error"])


def local(moment: float) -> str:
    """A moment in the format of results."""
    return time.strftime("%B %d, %Y at %I:%M %p", time.localtime(moment))


class Summarizer:
    """A summarizer that remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[str, str, Row]] = []

    def __call__(self, transcript: str, topic: str, metadata: Row) -> str:
        self.given.append((transcript, topic, metadata))
        return f"About {topic}."

    @property
    def transcript(self) -> str:
        """The only transcript it was given."""
        ((transcript, _, _),) = self.given
        return transcript
