"""The session_search tool: search in the owner's past sessions."""

from __future__ import annotations

import json
from typing import Any

from hermes.agent.history.text_limits import MAX_CHARACTERS
from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.registry import Tool
from hermes.agent.tools.results import ToolResult
from hermes.state.messages.transcript import shorten
from hermes.state.recall.tool import RECALL_GUIDANCE, SESSION_SEARCH_SCHEMA
from hermes.state.recall.tool import session_search as search

_SIZES = (2_000, 1_000, 500, 250, 100)
_FAILED = '{"success": false'


def _session_search(context: ToolContext, **arguments: Any) -> ToolResult:
    """Search the past sessions of the context's owner; the model cannot choose another owner."""
    answer = search(
        **arguments,
        db=context.store,
        current_session_id=context.session_id,
        summarize=context.summarize,
    )
    for size in _SIZES:
        if len(answer) <= MAX_CHARACTERS:
            break
        answer = json.dumps(_shorten_contents(json.loads(answer), size), ensure_ascii=False)
    return ToolResult(answer, is_error=answer.startswith(_FAILED))


def _shorten_contents(value: Any, size: int) -> Any:
    """Return a result with long messages cut and marked, so that it fits and stays valid JSON."""
    if isinstance(value, list):
        return [_shorten_contents(each, size) for each in value]
    if not isinstance(value, dict):
        return value
    content = value.get("content")
    if isinstance(content, str) and len(content) > size:
        return value | {"content": shorten(content, size), "truncated": True}
    return {name: _shorten_contents(each, size) for name, each in value.items()}


session_search = Tool(
    name=SESSION_SEARCH_SCHEMA["name"],
    toolset="recall",
    description=SESSION_SEARCH_SCHEMA["description"],
    parameters=SESSION_SEARCH_SCHEMA["parameters"],
    function=_session_search,
    more="ask for fewer conversations or a smaller window",
    guidance=RECALL_GUIDANCE,
)
