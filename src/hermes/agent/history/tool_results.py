"""Tool calls and their results, brought together: whatever a model wrote, and whatever became of it."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermes.agent.history.text_limits import valid_text
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
class PairedCall:
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


class ToolCallPairing:
    """The calls of a history, each with an id of its own and its one result; each message is looked at once."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._used: set[str] = set()
        self._next_number = 0
        self._results: dict[str, deque[int]] = defaultdict(deque)
        """The places of the results that name a call, by its id, until they are taken."""
        self._nameless: dict[int, deque[int]] = defaultdict(deque)
        """Those that name none, by the place of the message before them."""
        self._callers: dict[str | None, list[int]] = defaultdict(list)
        """The places of the messages that call something under an id."""
        self._speaker: list[int] = []
        """For each place, that of the last message that is no result."""
        for place, row in enumerate(history):
            self._note(place, row)
        self._stops = _stops(history)

    def _note(self, place: int, row: Mapping[str, Any]) -> None:
        if row["role"] != "tool":
            self._speaker.append(place)
            for call_id in {_id_of(each) for each in _calls_in(row.get("tool_calls"))}:
                self._callers[call_id].append(place)
            return
        self._speaker.append(self._speaker[-1] if self._speaker else -1)
        named = row.get("tool_call_id")
        if isinstance(named, str) and named:
            self._results[named].append(place)
        else:
            self._nameless[self._speaker[-1]].append(place)

    def calls_at(self, place: int) -> list[PairedCall]:
        """The calls of the message at a place; to be asked for in the order of the history, once each."""
        return [self._called(each, place) for each in _calls_in(self._history[place].get("tool_calls"))]

    def _called(self, written: Mapping[str, Any], place: int) -> PairedCall:
        function = written.get("function")
        source = function if isinstance(function, Mapping) else written
        call_id = _id_of(written)
        return PairedCall(
            id=self._unique_id(call_id),
            name=valid_name(source.get("name")),
            arguments=valid_arguments(source.get("arguments")),
            result=self._result(call_id, place),
        )

    def _unique_id(self, given: str | None) -> str:
        """The id that was given if endpoints take it and no call before has it; else a number among all calls."""
        unique = given if given is not None and _ID.fullmatch(given) else ""
        if not unique or unique in self._used:
            self._next_number = max(self._next_number, len(self._used))
            while (unique := f"call_{self._next_number}") in self._used:
                self._next_number += 1
        self._used.add(unique)
        return unique

    def _result(self, call_id: str | None, place: int) -> Any:
        """The content of the first message that answers a call and answers no other."""
        callers = self._callers[call_id]
        again = bisect_right(callers, place)
        # From there on the id means another call.
        end = callers[again] if again < len(callers) else len(self._history)
        queues = [self._nameless[self._speaker[place]]]
        if call_id is not None:
            queues.append(self._results[call_id])
        for queue in queues:
            while queue and queue[0] <= place:
                queue.popleft()
        open_queues = [queue for queue in queues if queue and queue[0] < end]
        if open_queues:
            return self._history[min(open_queues, key=lambda queue: queue[0]).popleft()]["content"]
        stop = self._stops[place]
        return NOT_RUN if stop is not None and stop < end else LOST


def _stops(history: History) -> list[int | None]:
    """For each place, where the turn that it is in was stopped after it, if it was."""
    stops: list[int | None] = []
    stop: int | None = None
    for place in range(len(history) - 1, -1, -1):
        stops.append(stop)
        row = history[place]
        if row["role"] == "user":
            stop = None
        elif row["role"] != "tool" and row.get("finish_reason") == INTERRUPTED:
            stop = place
    return stops[::-1]


def _id_of(written: Mapping[str, Any]) -> str | None:
    """The id of a call; None for one that no result can name."""
    given = written.get("id")
    return given if isinstance(given, str) and given else None


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
        parsed = json.loads(given, parse_constant=_refuse_constant)
        if isinstance(parsed, dict):
            # An escape can hide half a character, which only some endpoints notice.
            written = json.dumps(parsed, ensure_ascii=False)
            return given if valid_text(written) == written else valid_text(written)
    except (ValueError, RecursionError):
        pass
    return json.dumps({UNREADABLE: valid_text(given)}, ensure_ascii=False)


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _calls_in(calls: Any) -> Iterator[Mapping[str, Any]]:
    listed = calls if isinstance(calls, list | tuple) else [calls]
    return (each for each in listed if isinstance(each, Mapping))
