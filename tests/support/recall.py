"""Short ways to ask the recall tool, and to look at what it answers."""

from __future__ import annotations

import json
import time
from typing import Any

from hermes.state.provider import SessionDBProvider
from hermes.state.recall.tool import session_search
from tests.support.conversations import Row, column

NO_NUMBERS: list[Any] = [None, "many", True, [], {}, float("nan"), float("inf")]
"""What a model may put where a number belongs."""


def recall(store: SessionDBProvider | None, **arguments: Any) -> Row:
    """What the tool answers."""
    answer = json.loads(session_search(db=store, **arguments))
    assert isinstance(answer, dict)
    return answer


def found(answer: Row) -> list[str]:
    """The sessions of an answer that must have succeeded."""
    assert answer["success"] is True, answer
    return column(answer["results"], "session_id")


def error(answer: Row) -> str:
    """What a failed answer says."""
    assert answer.keys() == {"success", "error"}, answer
    assert answer["success"] is False
    assert answer["error"]
    return str(answer["error"])


def local(moment: float) -> str:
    """A moment as an answer says it."""
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
        """The only one it was given."""
        ((transcript, _, _),) = self.given
        return transcript
