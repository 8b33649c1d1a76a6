"""Pairs each tool call of a history with its result, however malformed or incomplete the history is."""

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
"""Messages as `get_messages_as_conversation` returns them."""

INTERRUPTED = "interrupted"
"""The finish_reason of the last message of a turn that the user stopped."""

NOT_RUN = failure("not run: interrupted").text
LOST = failure(
    "the result was lost when the program ended. The tool may have run: check what it did before you run it again"
).text

UNREADABLE = "unreadable_arguments"
"""The key under which the model sees arguments that were not valid JSON."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_NAME = 64


@dataclass(frozen=True, slots=True)
class PairedCall:
    """A tool call in a form that every endpoint accepts."""

    id: str
    name: str
    arguments: str
    result: Any
    """The content of the tool message with the result."""

    @property
    def call(self) -> dict[str, Any]:
        """The call as an entry of a message's `tool_calls`."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


class ToolCallPairing:
    """The tool calls of a history, each with a unique id and exactly one result; each message is read once."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._used: set[str] = set()
        self._next_number = 0
        self._results: dict[str, deque[int]] = defaultdict(deque)
        """The positions of results with a call id, by that id, until they are paired."""
        self._without_id: dict[int, deque[int]] = defaultdict(deque)
        """The positions of results without a call id, by the position of the message before them."""
        self._callers: dict[str | None, list[int]] = defaultdict(list)
        """The positions of the messages with a call of that id."""
        self._last_speaker: list[int] = []
        """For each position, that of the last message that is not a result."""
        for place, row in enumerate(history):
            self._note(place, row)
        self._stops = _stops(history)

    def _note(self, place: int, row: Mapping[str, Any]) -> None:
        if row["role"] != "tool":
            self._last_speaker.append(place)
            for call_id in {_id_of(each) for each in _calls_in(row.get("tool_calls"))}:
                self._callers[call_id].append(place)
            return
        self._last_speaker.append(self._last_speaker[-1] if self._last_speaker else -1)
        call_id = row.get("tool_call_id")
        if isinstance(call_id, str) and call_id:
            self._results[call_id].append(place)
        else:
            self._without_id[self._last_speaker[-1]].append(place)

    def calls_at(self, place: int) -> list[PairedCall]:
        """Return the calls of the message at a position; call this once per message, in order."""
        return [self._pair_call(each, place) for each in _calls_in(self._history[place].get("tool_calls"))]

    def _pair_call(self, written: Mapping[str, Any], place: int) -> PairedCall:
        function = written.get("function")
        source = function if isinstance(function, Mapping) else written
        call_id = _id_of(written)
        return PairedCall(
            id=self._unique_id(call_id),
            name=valid_name(source.get("name")),
            arguments=valid_arguments(source.get("arguments")),
            result=self._result(call_id, place),
        )

    def _unique_id(self, value: str | None) -> str:
        """Return the given id if endpoints accept it and no earlier call has it; else a new numbered id."""
        unique = value if value is not None and _ID.fullmatch(value) else ""
        if not unique or unique in self._used:
            self._next_number = max(self._next_number, len(self._used))
            while (unique := f"call_{self._next_number}") in self._used:
                self._next_number += 1
        self._used.add(unique)
        return unique

    def _result(self, call_id: str | None, place: int) -> Any:
        """Return the content of the first unpaired result of a call."""
        callers = self._callers[call_id]
        again = bisect_right(callers, place)
        # From this position on, the id belongs to another call.
        end = callers[again] if again < len(callers) else len(self._history)
        queues = [self._without_id[self._last_speaker[place]]]
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
    """For each position, the position at which its turn was interrupted, or None."""
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
    """The id of a call, or None if it has none."""
    value = written.get("id")
    return value if isinstance(value, str) and value else None


def valid_name(value: Any) -> str:
    """Return a tool's name without the characters that endpoints refuse."""
    return (_NOT_IN_NAMES.sub("_", value) if isinstance(value, str) else "")[:_MAX_NAME] or "unknown"


def valid_arguments(value: Any) -> str:
    """Return arguments as a JSON object; other text is wrapped unchanged, so that the model sees it."""
    if value is None or value == "":
        return "{}"
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    try:
        parsed = json.loads(value, parse_constant=_refuse_constant)
        if isinstance(parsed, dict):
            # An escape can hide a lone surrogate, which only some endpoints refuse.
            written = json.dumps(parsed, ensure_ascii=False)
            return value if valid_text(written) == written else valid_text(written)
    except (ValueError, RecursionError):
        pass
    return json.dumps({UNREADABLE: valid_text(value)}, ensure_ascii=False)


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _calls_in(calls: Any) -> Iterator[Mapping[str, Any]]:
    listed = calls if isinstance(calls, list | tuple) else [calls]
    return (each for each in listed if isinstance(each, Mapping))
