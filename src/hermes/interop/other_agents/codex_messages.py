"""Messages and token usage in a session of the Codex CLI, line by line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hermes.interop.other_agents.message_fields import (
    call_of,
    count_of,
    dict_of,
    dicts_of,
    join_paragraphs,
    placeholder_for,
    text_of,
)
from hermes.state.rows import Row

REMARKS = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
)
"""The first words of texts that the program writes in the role of the user."""

IGNORED_KINDS = frozenset(("message", "ghost_snapshot", "compaction", "other"))
"""Known item types that may contain no message."""


class Turns:
    """Turns items into messages; reasoning is kept back and attached to the next answer or tool call."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}
        self._thought: Row | None = None

    def take(self, item: Mapping[str, Any], uid: str, at: float | None) -> list[Row] | None:
        """Return the messages that this item completes, or None if the item is unknown."""
        if item.get("type") == "reasoning":
            self._think(item, uid, at)
            return []
        message = self._message_of(item)
        if message is None:
            return [] if text_of(item.get("type")) in IGNORED_KINDS else None
        message |= {"uid": uid, "timestamp": at}
        thought, self._thought = self._thought, None
        if thought is None:
            return [message]
        if message["role"] != "assistant":
            return [thought, message]
        return [{**message, "reasoning": thought["reasoning"]}]

    def _think(self, item: Mapping[str, Any], uid: str, at: float | None) -> None:
        parts = dicts_of(item.get("content")) or dicts_of(item.get("summary"))
        text = join_paragraphs([text_of(part.get("text")) for part in parts])
        if text is None:
            return
        if self._thought is None:
            self._thought = {"role": "assistant", "reasoning": text, "uid": uid, "timestamp": at}
        else:
            self._thought["reasoning"] += f"\n\n{text}"

    def _message_of(self, item: Mapping[str, Any]) -> Row | None:
        match item.get("type"):
            case "message":
                return _message(item)
            case "function_call":
                return self._call(item, item.get("name"), item.get("arguments", "{}"))
            case "custom_tool_call":
                return self._call(item, item.get("name"), {"input": item.get("input")})
            case "local_shell_call":
                return self._call(item, "shell", dict_of(item.get("action")))
            case "web_search_call":
                return {
                    "role": "assistant",
                    "content": f"[web search: {text_of(dict_of(item.get('action')).get('query'))}]",
                }
            case "function_call_output" | "custom_tool_call_output":
                call_id = text_of(item.get("call_id"))
                return {
                    "role": "tool",
                    "content": _output(item.get("output")),
                    "tool_call_id": call_id or None,
                    "tool_name": self._tools.get(call_id),
                }
            case None if isinstance(item.get("message"), str):
                return {"role": "system", "content": item["message"]}
            case _:
                return None

    def _call(self, item: Mapping[str, Any], name: Any, arguments: Any) -> Row:
        call = call_of(item.get("call_id") or item.get("id"), name, arguments)
        self._tools[call["id"]] = call["function"]["name"]
        return {"role": "assistant", "tool_calls": [call]}


class Spending:
    """Token usage of the model calls."""

    def __init__(self) -> None:
        self.bookings: list[Row] = []
        self._total: Any = None

    def take(self, event: Mapping[str, Any], at: float | None, model: str | None) -> None:
        """Record the token counts of an event, unless it repeats the previous ones."""
        info = dict_of(event.get("info"))
        total, last = info.get("total_token_usage"), dict_of(info.get("last_token_usage"))
        if event.get("type") != "token_count" or not last or at is None or total == self._total:
            return
        self._total = total
        cached = count_of(last.get("cached_input_tokens"))
        self.bookings.append(
            {
                "at": at,
                "kind": "delta",
                "model": model,
                "api_call_count": 1,
                "input_tokens": max(0, count_of(last.get("input_tokens")) - cached),
                "output_tokens": count_of(last.get("output_tokens")),
                "cache_read_tokens": cached,
                "reasoning_tokens": count_of(last.get("reasoning_output_tokens")),
            }
        )


def _message(item: Mapping[str, Any]) -> Row | None:
    content = item.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else dicts_of(content)
    text = join_paragraphs(
        [part["text"] if isinstance(part.get("text"), str) else placeholder_for(part) for part in parts]
    )
    role = item.get("role")
    if text is None or role not in ("user", "assistant", "system", "developer"):
        return None
    is_remark = role == "developer" or (role == "user" and text.startswith(REMARKS))
    return {"role": "system" if is_remark else role, "content": text}


def _output(output: Any) -> str:
    """The output of a tool, without the program's wrapping."""
    if isinstance(output, str) and output.startswith("{"):
        try:
            wrapped = json.loads(output)
        except (ValueError, RecursionError):
            return output
        return text_of(wrapped.get("output")) or output if isinstance(wrapped, dict) else output
    if isinstance(output, str):
        return output
    if isinstance(output, dict):
        return _output(output.get("content"))
    return join_paragraphs([text_of(part.get("text")) or placeholder_for(part) for part in dicts_of(output)]) or ""
