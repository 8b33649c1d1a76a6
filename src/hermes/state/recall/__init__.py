"""The `session_search` tool: what an agent finds in earlier sessions."""

from hermes.state.recall.tool import session_search

__all__ = ["session_search"]
