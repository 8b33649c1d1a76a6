"""The one corpus of every workload: conversations that are the same on each machine and in each run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import exp, log
from random import Random
from typing import Required, TypedDict

from bench import vocabulary

MEAN_BYTES = 528
SEED = 20_260_101

_SPREAD = 0.7
_USER_BYTES, _ANSWER_BYTES, _REMARK_BYTES, _ARGUMENT_BYTES, _RESULT_BYTES = 262, 726, 70, 90, 958
_TOOL_TURNS = 0.4
_CJK_TURNS = 0.115
_TOOLS = ("terminal", "read_file", "write_file", "search_files", "web_search", "session_search")
_SOURCES = ("cli", "telegram", "discord", "slack", "whatsapp")
_SOURCE_WEIGHTS = (50, 30, 12, 6, 2)


class ToolFunction(TypedDict):
    """The called function, its arguments as JSON text."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """One tool call of an assistant message."""

    id: str
    type: str
    function: ToolFunction


class Message(TypedDict, total=False):
    """The keyword arguments of one `append_message`, without the session."""

    role: Required[str]
    content: str
    tool_name: str
    tool_calls: list[ToolCall]
    tool_call_id: str
    token_count: int
    finish_reason: str
    timestamp: float


@dataclass(frozen=True, slots=True)
class Session:
    """A session to create, and its conversation."""

    number: int
    session_id: str
    source: str

    def messages(self, count: int) -> list[Message]:
        """The first `count` messages of its conversation."""
        return list(islice(conversation(self.number), count))


def sessions(count: int) -> Iterator[Session]:
    """`count` sessions, generated on demand."""
    rng = Random(f"sessions:{SEED}")
    for number in range(count):
        source = rng.choices(_SOURCES, weights=_SOURCE_WEIGHTS)[0]
        yield Session(number, f"20260101_{number // 10_000:06d}_{number:08x}", source)


def messages(count: int) -> list[Message]:
    """`count` messages of one long conversation."""
    return list(islice(conversation(0), count))


def conversation(number: int) -> Iterator[Message]:
    """The endless conversation `number`: a question, perhaps tool calls, an answer, and again."""
    writer = _Writer(Random(f"conversation:{SEED}:{number}"))
    while True:
        yield from writer.turn()


def text_bytes(message: Message) -> int:
    """The UTF-8 bytes that a person or an index reads: content, tool name and tool calls."""
    calls = message.get("tool_calls")
    text = message.get("content", "") + message.get("tool_name", "") + (json.dumps(calls) if calls else "")
    return len(text.encode())


class _Writer:
    """Writes the turns of one conversation."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._latin = vocabulary.latin(SEED)
        self._calls = 0

    def turn(self) -> Iterator[Message]:
        script = self._rng.choices(("han", "kana", "hangul"), weights=(7, 2, 1))[0]
        script = script if self._rng.random() < _CJK_TURNS else "latin"
        yield {"role": "user", "content": self._prose(script, _USER_BYTES)}
        if self._rng.random() < _TOOL_TURNS:
            yield from self._tool_work(script)
        answer = self._prose(script, _ANSWER_BYTES)
        yield {"role": "assistant", "content": answer, "token_count": len(answer) // 4, "finish_reason": "stop"}

    def _tool_work(self, script: str) -> Iterator[Message]:
        self._calls += 1
        call_id = f"call_{self._rng.getrandbits(48):012x}_{self._calls}"
        tool = self._rng.choice(_TOOLS)
        arguments = {"path": self._path(), "query": self._prose("latin", _ARGUMENT_BYTES - 50), "limit": self._calls}
        function: ToolFunction = {"name": tool, "arguments": json.dumps(arguments, ensure_ascii=False)}
        yield {
            "role": "assistant",
            "content": self._prose(script, _REMARK_BYTES),
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            "finish_reason": "tool_calls",
        }
        yield {"role": "tool", "content": self._output(), "tool_name": tool, "tool_call_id": call_id}

    def _length(self, mean: int) -> int:
        drawn = self._rng.lognormvariate(log(mean) - _SPREAD**2 / 2, _SPREAD)
        return int(min(max(drawn, 8.0), mean * exp(3 * _SPREAD)))

    def _prose(self, script: str, mean: int) -> str:
        length = self._length(mean)
        if script == "latin":
            return self._latin_prose(length)
        words = vocabulary.cjk(SEED, script).draw(self._rng, length // 4 + 4)
        space = " " if script == "hangul" else ""
        sentences = [space.join(words[i : i + 9]) for i in range(0, len(words), 9)]
        if self._rng.random() < 0.2:
            sentences.insert(1, self._fragment())
        return _cut("。".join(sentences), length)

    def _latin_prose(self, length: int) -> str:
        words = self._latin.draw(self._rng, length // 5 + 4)
        sentences = []
        for start in range(0, len(words), 13):
            sentences.append(" ".join(words[start : start + 13]).capitalize())
            if self._rng.random() < 0.15:
                sentences.append(self._fragment())
        return _cut(". ".join(sentences), length)

    def _output(self) -> str:
        length = self._length(_RESULT_BYTES)
        lines: list[str] = []
        size = 0
        while size < length:
            line = self._fragment() if self._rng.random() < 0.4 else self._log_line()
            lines.append(line)
            size += len(line) + 1
        return _cut("\n".join(lines), length)

    def _log_line(self) -> str:
        second = self._rng.randrange(86_400)
        stamp = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        return f"{stamp} INFO {' '.join(self._latin.draw(self._rng, 9))} id={self._rng.getrandbits(24):06x}"

    def _fragment(self) -> str:
        one, two, three = self._latin.draw(self._rng, 3)
        number = self._rng.randrange(1, 500)
        match self._rng.randrange(5):
            case 0:
                return self._path() + f":{number}"
            case 1:
                return f"https://{one}.example.com/{two}/{three}?page={number}"
            case 2:
                return f"def {one}_{two}({three}: int = {number}) -> str:"
            case 3:
                return f"    return self.{one}.{two}({three}{two.capitalize()}[{number}])"
            case _:
                return f"{one.capitalize()}{two.capitalize()}Error: {three} v{number % 9}.{number % 23}.0"

    def _path(self) -> str:
        one, two, three = self._latin.draw(self._rng, 3)
        return f"src/{one}/{two}_{three}.py"


def _cut(text: str, length: int) -> str:
    return text.encode()[:length].decode(errors="ignore")
