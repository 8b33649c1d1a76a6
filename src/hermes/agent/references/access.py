"""Which places a reference may read: those that `read_file` reads, by the same list and the same permissions."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.agent.references.texts import NotAttached
from hermes.agent.safety.approval import ApprovalRequest
from hermes.agent.safety.paths import ResolvedPath
from hermes.agent.safety.visible_text import make_path_visible
from hermes.agent.tools.context import ToolContext
from hermes.state.owner import is_terminal_source

TOOL = "read_file"
"""A permission for a file holds for the tool and for references alike."""
GIT_TOOL = "git_reference"

_OUTSIDE = "it is outside the directory of this chat"
_NOT_ALLOWED = "it is outside the session's directory, and reading it was not allowed"


def is_terminal(context: ToolContext) -> bool:
    """Whether the user sits at the machine; a chat reads only in its own directory, without a question."""
    return is_terminal_source(context.source)


def require_place(context: ToolContext, path: str) -> ResolvedPath:
    """Return a place that may be read; raise `NotAttached` if it is protected, missing or not allowed."""
    place = context.resolve_path(path)
    if not is_terminal(context) and not place.real.is_relative_to(context.directory.root):
        # One reason for everything there: another one would tell the chat what the operator has.
        raise NotAttached(_OUTSIDE)
    reason = context.protected.reason(place)
    if reason is not None:
        raise NotAttached(f"{reason}; no permission changes this")
    if not context.is_free(place):
        if not is_terminal(context):
            raise NotAttached(_OUTSIDE)
        _require_existing(place)
        shown = make_path_visible(place.real)
        named = "" if place.named == place.real else f"\n\ngiven as {make_path_visible(place.named)}"
        request = ApprovalRequest(
            TOOL, summary=f"read {shown}", detail=f"{shown}{named}", risk="normal", subject=str(place.real)
        )
        if context.refusal(request) is not None:
            raise NotAttached(_NOT_ALLOWED)
    _require_existing(place)
    return place


def require_repository_access(context: ToolContext, root: Path) -> None:
    """Ask before changes are read in a directory that holds more than one project; raise `NotAttached` if denied."""
    if context.is_free(ResolvedPath(root, root)):
        return
    if not is_terminal(context):
        raise NotAttached("this chat has no directory of its own")
    shown = make_path_visible(root)
    request = ApprovalRequest(
        GIT_TOOL, summary=f"read the git changes in {shown}", detail=shown, risk="normal", subject=str(root)
    )
    if context.refusal(request) is not None:
        raise NotAttached("reading the changes in this directory was not allowed")


def is_protected(context: ToolContext, path: str) -> str | None:
    """Return why a place must not be shown, or None."""
    return context.protected.reason(context.resolve_path(path))


def _require_existing(place: ResolvedPath) -> None:
    if not os.path.lexists(place.real):
        raise NotAttached("there is no such file or directory")
