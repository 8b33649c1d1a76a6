"""Tool calls and their results, brought together: whatever a model wrote, and whatever became of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermes.agent.text import valid_text
from hermes.agent.tools.results import failure

History = Sequence[Mapping[str, Any]]
"""Messages as `get_messages_as_conversation` answers them."""

INTERRUPTED = "interrupted"
"""The finish_reason of the last message of a turn that a person has stopped."""

NOT_RUN = failure("not run: interrupted").text
LOST = failure(
    "the result was lost when the program ended. This may have run; check first what it did before you run it again"
).text

UNREADABLE = "unreadable_arguments"
"""The name under which a model sees again what it wrote in the place of arguments."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_NAME = 64


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call in a form that every endpoint takes."""

    id: str
    name: str
    arguments: str
    result: Any
    """The content of the message that answers it."""

    @property
    def call(self) -> dict[str, Any]:
        """The call as a part of a message."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


class Pairing:
    """The calls of a history, each with an id of its own and its one result."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._used: set[str] = set()
        self._answered: set[int] = set()

    def calls_at(self, place: int) -> list[Called]:
        """The calls of the message at a place; to be asked for in the order of the history, once each."""
        return [self._called(each, place) for each in _written(self._history[place].get("tool_calls"))]

    def _called(self, written: Mapping[str, Any], place: int) -> Called:
        function = written.get("function")
        source = function if isinstance(function, Mapping) else written
        given = written.get("id")
        return Called(
            id=self._unique_id(given),
            name=valid_name(source.get("name")),
            arguments=valid_arguments(source.get("arguments")),
            result=self._result(given, place),
        )

    def _unique_id(self, given: Any) -> str:
        """The id that was given if endpoints take it and no call before has it; else a number among all calls."""
        number = len(self._used)
        unique = given if isinstance(given, str) and _ID.fullmatch(given) else f"call_{number}"
        while unique in self._used:
            unique, number = f"call_{number}", number + 1
        self._used.add(unique)
        return unique

    def _result(self, given: Any, place: int) -> Any:
        """The content of the first message that answers a call and answers no other."""
        is_adjacent, is_same_turn, is_interrupted = True, True, False
        for at in range(place + 1, len(self._history)):
            row = self._history[at]
            if row["role"] == "tool":
                # A result without an id belongs to whoever stands before it.
                is_answer = row["tool_call_id"] == given if row.get("tool_call_id") else is_adjacent
                if is_answer and at not in self._answered:
                    self._answered.add(at)
                    return row["content"]
                continue
            if any(each.get("id") == given for each in _written(row.get("tool_calls"))):
                break  # from here on the id means another call
            is_adjacent = False
            is_same_turn &= row["role"] != "user"
            is_interrupted |= is_same_turn and row.get("finish_reason") == INTERRUPTED
        return NOT_RUN if is_interrupted else LOST


def valid_name(given: Any) -> str:
    """A tool's name without the characters that endpoints refuse."""
    return (_NOT_IN_NAMES.sub("_", given) if isinstance(given, str) else "")[:_MAX_NAME] or "unknown"


def valid_arguments(given: Any) -> str:
    """Arguments as JSON of an object; what is none is shown to the model as it was."""
    if given is None or given == "":
        return "{}"
    if not isinstance(given, str):
        given = json.dumps(given, ensure_ascii=False)
    try:
        parsed = json.loads(given, parse_constant=_refuse)
        if isinstance(parsed, dict):
            # An escape can hide half a character, which only some endpoints notice.
            written = json.dumps(parsed, ensure_ascii=False)
            return given if valid_text(written) == written else valid_text(written)
    except (ValueError, RecursionError):
        pass
    return json.dumps({UNREADABLE: valid_text(given)}, ensure_ascii=False)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _written(calls: Any) -> Iterator[Mapping[str, Any]]:
    listed = calls if isinstance(calls, list | tuple) else [calls]
    return (each for each in listed if isinstance(each, Mapping))
