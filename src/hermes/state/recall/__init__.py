"""The `session_search` tool, with which an agent searches earlier sessions."""

from hermes.state.recall.tool import session_search

__all__ = ["session_search"]
