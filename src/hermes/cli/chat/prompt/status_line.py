"""The line below the prompt: model, directory and branch, context and cost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.chat.money import format_dollars, session_cost
from hermes.cli.display.terminal import ELLIPSIS, clip, display_width, printable
from hermes.errors import HermesError
from hermes.home import read_plain_file
from hermes.phrases import plural

if TYPE_CHECKING:
    from hermes.cli.chat.chat_loop import Chat

INDENT, SEPARATOR = "  ", " · "
MAX_HEAD_BYTES = 4_096
_REF, _GIT_DIR = "ref: refs/heads/", "gitdir: "
_HASH_CHARACTERS = 7


@dataclass(frozen=True, slots=True)
class Status:
    """What the line says; nothing by default."""

    model: str = ""
    places: Sequence[str] = ("",)
    """The directory and its branch, the longest form first."""
    context: str = ""
    cost: str = ""

    def fit(self, columns: int) -> str:
        """Return the line in the longest form that fits: a long directory does not hide the context and the cost."""
        line = ""
        for place in self.places:
            parts = [printable(each) for each in (self.model, place, self.context, self.cost) if each]
            line = f"{INDENT}{SEPARATOR.join(parts)}" if parts else ""
            if display_width(line) <= columns:
                return line
        return clip(line, columns)


class StatusLine:
    """Describes the conversation for the prompt."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    def __call__(self) -> Status:
        """Return what the line says; nothing if it is turned off."""
        if not self._chat.agent.config.display.status_line:
            return Status()
        try:
            return Status(self._chat.conversation.model.name, self._places(), self._context(), self._cost())
        except HermesError:  # the store is busy or gone, which the next message reports
            return Status()

    def _places(self) -> Sequence[str]:
        """Return the directory in which the tools work, with its branch, and in shorter and shorter forms."""
        directory = self._chat.conversation.session.tools.directory
        if directory is None:
            return ("",)
        name = read_branch(directory.cwd)
        branch = f" ({name})" if name else ""
        whole, last = shorten_home(directory.cwd), directory.cwd.name
        short = f"{ELLIPSIS}/{last}" if last and len(last) + 2 < len(whole) else whole
        return (f"{whole}{branch}", f"{short}{branch}", short, "")

    def _context(self) -> str:
        """Return how much of the model's context the conversation fills."""
        session = self._chat.conversation.session
        tokens, size = session.prompt_tokens, session.model.context_tokens
        if not tokens:
            return ""
        if size:
            return f"{min(100, -(-tokens * 100 // size))}% of context"
        return f"{tokens / 1000:.1f}k tokens" if tokens >= 1_000 else plural(tokens, "token")

    def _cost(self) -> str:
        amount, _ = session_cost(self._chat.conversation.usage())
        return format_dollars(amount) if amount else ""


def shorten_home(path: Path) -> str:
    """Return a path with the user's home directory as `~`."""
    home = os.path.expanduser("~")
    text = str(path)
    return f"~{text[len(home) :]}" if text == home or text.startswith(home.rstrip("/") + "/") else text


def read_branch(directory: Path) -> str:
    """Return the branch of the git repository around a directory, read from its files; empty if there is none.

    Without a branch it is the first characters of the commit. git itself does not run: it would read settings of the
    repository.
    """
    for place in (directory, *directory.parents):
        head = _head_of(place / ".git")
        if head is not None:
            return head.removeprefix(_REF) if head.startswith(_REF) else head[:_HASH_CHARACTERS]
    return ""


def _head_of(git: Path) -> str | None:
    """Return what HEAD of a repository says, or None if this is no repository."""
    try:
        if git.is_file():  # a worktree or a submodule
            link = _first_line(git)
            if not link.startswith(_GIT_DIR):
                return None
            git = git.parent / link.removeprefix(_GIT_DIR)
        return _first_line(git / "HEAD")
    except (OSError, ValueError):
        return None


def _first_line(file: Path) -> str:
    if file.stat().st_size > MAX_HEAD_BYTES:
        raise ValueError("it is no file of git")
    return read_plain_file(file).decode().partition("\n")[0].strip()
