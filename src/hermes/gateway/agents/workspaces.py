"""The directories in which tools of chats work: one for each owner."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

from hermes.agent.safety.paths import WORKSPACES
from hermes.agent.tools.toolsets import NEED_DIRECTORY
from hermes.home import ensure_private_dir
from hermes.state.owner import Owner

_HASH_CHARACTERS = 16


def workspace_path(home: Path, owner: Owner) -> Path | None:
    """Return the directory of an owner; the terminal has none here."""
    if owner.stored is None:
        return None
    name = sha256(owner.stored.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARACTERS]
    return home / WORKSPACES / name


def make_workspace(home: Path, owner: Owner, toolsets: Collection[str]) -> str | None:
    """Create the directory of an owner if a toolset needs one, and return its path; otherwise None."""
    path = workspace_path(home, owner) if NEED_DIRECTORY & set(toolsets) else None
    if path is None:
        return None
    ensure_private_dir(path)
    return str(path)
