"""The model of the tests: a real server, whose behaviour depends on the words that users write."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import cast

from tests.support.modelserver import Behaviour, ModelServer, Received, Say
from tests.support.waiting import LIMIT_S

PATIENCE_S = 3 * LIMIT_S


class Model:
    """Behaviours by the word with which a message begins; without one the model repeats the message."""

    def __init__(self) -> None:
        self.server = ModelServer(otherwise=self._behave)
        self.otherwise: Callable[[Received, list[str]], Behaviour] = lambda _, words: Say(
            f"answer to {' '.join(words)}"
        )
        """What the model does without a script."""
        self._script: dict[str, list[Behaviour]] = {}

    def on(self, word: str, *behaviours: Behaviour) -> None:
        """Behave like this at the next requests about messages that begin with a word."""
        self._script.setdefault(word, []).extend(behaviours)

    def asked(self, word: str) -> list[Received]:
        """The requests about messages that begin with a word."""
        return [each for each in self.server.requests if word in words_of(each)]

    def _behave(self, request: Received) -> Behaviour:
        words = words_of(request)
        for word in words:
            if self._script.get(word):
                return self._script[word].pop(0)
        return self.otherwise(request, words)


def words_of(request: Received) -> list[str]:
    """The first words of the user's messages that a request is about: those after the last complete answer."""
    words: list[str] = []
    for message in request.messages:
        text = str(message.get("content") or "")
        if message["role"] == "user":
            words += [line.split()[0] for line in text.splitlines() if re.match(r"\w+ please", line)]
        elif message["role"] == "assistant" and text.startswith("answer to"):
            words = []
    return words


def held(free: threading.Event, *pieces: str) -> Say:
    """An answer that is complete when a test says so."""

    def send() -> Iterator[str]:
        yield from pieces
        free.wait(PATIENCE_S)

    return Say(pieces=cast("Sequence[str]", send()))
