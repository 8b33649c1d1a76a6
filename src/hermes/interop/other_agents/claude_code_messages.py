"""Messages and token usage in a thread of Claude Code, line by line.

The program writes each part of an answer on a line of its own as soon as it arrives. Each such line becomes one
message, so that a file can be imported again after it grew: messages are recognized by the uuids of their lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes.interop.other_agents.message_fields import (
    call_of,
    count_of,
    dict_of,
    dicts_of,
    join_paragraphs,
    moment_of,
    placeholder_for,
    text_of,
)
from hermes.state.rows import Row

PROVIDER = "anthropic"
SYNTHETIC_MODEL = "<synthetic>"
"""The model name on messages that the program itself writes."""
COMPLETE_AFTER_S = 3600.0
"""An answer older than this is complete."""

COUNTED = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
}
ENDINGS = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}

_OUTPUT = "<local-command-"


class Turns:
    """Turns lines into messages; reasoning is kept back and attached to the answer that follows it."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}
        self._thought: Row | None = None
        self._thought_for: Any = None

    def take(self, entry: Mapping[str, Any]) -> list[Row]:
        """Return the messages that this line completes."""
        message = dict_of(entry.get("message"))
        is_answer = entry["type"] == "assistant"
        unanswered = self._drop_pending(unless_for=message.get("id") if is_answer else None)
        messages = [self._answer(message)] if is_answer else list(self._user_messages(entry, message))
        for number, each in enumerate(messages):
            each["uid"] = entry["uuid"] if number == 0 else f"{entry['uuid']}.{number + 1}"
            each["timestamp"] = moment_of(entry.get("timestamp"))
        if is_answer and messages[0]["content"] is None and not messages[0]["tool_calls"]:
            self._keep_reasoning(messages[0], message.get("id"))
            return unanswered
        self._thought = None
        return [*unanswered, *messages]

    def _drop_pending(self, *, unless_for: Any) -> list[Row]:
        """Return pending reasoning that no answer follows, as a message of its own."""
        if self._thought is None or (unless_for is not None and unless_for == self._thought_for):
            return []
        thought, self._thought = self._thought, None
        return [thought]

    def _keep_reasoning(self, answer: Row, answer_id: Any) -> None:
        if self._thought is not None:
            self._thought["reasoning"] = answer["reasoning"]
        elif answer["reasoning"] is not None:
            self._thought, self._thought_for = answer, answer_id

    def _answer(self, message: Mapping[str, Any]) -> Row:
        thoughts = [] if self._thought is None else [self._thought["reasoning"]]
        texts: list[str] = []
        calls: list[Row] = []
        for part in _parts(message):
            match part.get("type"):
                case "thinking":
                    thoughts.append(text_of(part.get("thinking")))
                case "redacted_thinking":
                    continue
                case "text":
                    texts.append(text_of(part.get("text")))
                case "tool_use" | "server_tool_use":
                    calls.append(call_of(part.get("id"), part.get("name"), part.get("input", {})))
                case _:
                    texts.append(placeholder_for(part))
        self._tools |= {call["id"]: call["function"]["name"] for call in calls}
        ending = text_of(message.get("stop_reason"))
        return {
            "role": "assistant",
            "content": join_paragraphs(texts),
            "tool_calls": calls or None,
            "reasoning": join_paragraphs(thoughts),
            "finish_reason": ENDINGS.get(ending, ending) or None,
        }

    def _user_messages(self, entry: Mapping[str, Any], message: Mapping[str, Any]) -> Iterator[Row]:
        """Yield the tool results, then the text of the user (or of the program, in the role of the user)."""
        texts: list[str] = []
        for part in _parts(message):
            if part.get("type") == "tool_result":
                call_id = text_of(part.get("tool_use_id"))
                yield {
                    "role": "tool",
                    "content": join_paragraphs([_text(each) for each in _parts(part)]) or "",
                    "tool_call_id": call_id or None,
                    "tool_name": self._tools.get(call_id),
                }
            else:
                texts.append(_text(part))
        content = join_paragraphs(texts)
        if content is not None:
            is_remark = entry.get("isMeta") is True or entry.get("isCompactSummary") is True
            is_remark = is_remark or content.startswith(_OUTPUT)
            yield {"role": "system" if is_remark else "user", "content": _as_typed(content)}


class Spending:
    """Token usage of the answers; an answer on several lines is counted once."""

    def __init__(self) -> None:
        self.bookings: list[Row] = []
        self._counted: dict[str, Row] = {}
        self._open: Row | None = None
        self._open_id = ""
        self._is_over = False

    def take(self, entry: Mapping[str, Any]) -> None:
        """Record the usage on a line for the answer that the line is part of."""
        message = dict_of(entry.get("message"))
        answer_id, usage = text_of(message.get("id")), dict_of(message.get("usage"))
        moment, model = moment_of(entry.get("timestamp")), text_of(message.get("model"))
        if not answer_id or not usage or moment is None or model == SYNTHETIC_MODEL:
            return
        if answer_id != self._open_id:
            self._close()
            self._open_id = answer_id
            self._open = {"at": moment, "kind": "delta", "model": model or None, "billing_provider": PROVIDER}
        assert self._open is not None
        for ours, theirs in COUNTED.items():
            self._open[ours] = max(self._open.get(ours, 0), count_of(usage.get(theirs)))
        cost = entry.get("costUSD")
        if isinstance(cost, float) and 0 < cost < 1e6:
            self._open["estimated_cost_usd"] = cost
        self._is_over = message.get("stop_reason") is not None

    def finish(self, now: float) -> None:
        """Book the last answer too, unless it may be unfinished: then the next import of the file books it."""
        if self._open is not None and (self._is_over or now - self._open["at"] > COMPLETE_AFTER_S):
            self._close()

    def _close(self) -> None:
        if self._open is None:
            return
        booking, self._open = self._open, None
        counts = {name: booking[name] for name in COUNTED}
        before = self._counted.get(self._open_id)
        self._counted[self._open_id] = counts
        if before is None:
            self.bookings.append({**booking, "api_call_count": 1})
        elif any(counts[name] > before[name] for name in counts):
            more = {name: max(0, counts[name] - before[name]) for name in counts}
            self.bookings.append({**booking, **more, "estimated_cost_usd": None})


def _parts(holder: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = holder.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else dicts_of(content)


def _text(part: Mapping[str, Any]) -> str:
    return text_of(part.get("text")) if part.get("type") == "text" else placeholder_for(part)


def _as_typed(text: str) -> str:
    """The command as the user typed it, without the program's tags."""
    command = _between(text, "<command-name>", "</command-name>")
    if command is None:
        return text
    arguments = _between(text, "<command-args>", "</command-args>") or ""
    return f"{command.strip()} {arguments.strip()}".strip() or text


def _between(text: str, opening: str, closing: str) -> str | None:
    """The text between two tags, or None if one is missing."""
    _, is_open, rest = text.partition(opening)
    inside, is_closed, _ = rest.partition(closing)
    return inside if is_open and is_closed else None
