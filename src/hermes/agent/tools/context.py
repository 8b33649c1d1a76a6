"""The context of a tool call: session, user, directory, store and permissions."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.agent.models.model import Cancellation, ToolCall
from hermes.agent.safety.approval import ApprovalRequest, Approvals, Approve, ConversationOrigin, Grant
from hermes.agent.safety.paths import ProtectedPlaces, ResolvedPath, is_too_wide, resolve_path
from hermes.clock import Clock, system_clock
from hermes.config import WebConfig
from hermes.errors import InvalidValue

if TYPE_CHECKING:
    from hermes.agent.memory.notes import MemoryProvider
    from hermes.agent.safety.scanning.scanner import CommandScanner
    from hermes.agent.skills.session_skills import AskSecret, SessionSkills
    from hermes.agent.tools.shell.background_processes import BackgroundProcesses
    from hermes.state.owner import Owner
    from hermes.state.owner_view import OwnerView
    from hermes.state.recall.summaries import Summarizer


class WorkingDirectory:
    """The directory of a session: commands run in `cwd`, and access outside `root` needs approval."""

    def __init__(self, directory: Path) -> None:
        self.root = Path(os.path.realpath(directory))
        self.cwd = self.root


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """A session as the tools see it; nothing in it comes from a model."""

    session_id: str
    source: str
    owner: Owner
    """The owner of the conversation, the notes and the permissions."""
    toolsets: Collection[str]
    """The enabled toolsets; other tools are never run, whatever a model writes."""
    home: Path
    working_directory: WorkingDirectory | None
    """None in a chat that has no directory of its own."""
    store: OwnerView
    """The sessions that may be searched: the owner's, or at the terminal all of them."""
    database: Path | None
    """The file of the store, which tools must not read; None for a store on a server."""
    memory: MemoryProvider
    processes: BackgroundProcesses
    approvals: Approvals
    approve: Approve | None
    """Asks the user at the terminal; None if that is impossible. On a chat platform the operator is asked."""
    cancellation: Cancellation
    clock: Clock = system_clock
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """The environment; commands get its harmless variables and those of `env_passthrough`."""
    env_passthrough: Collection[str] = ()
    scanner: CommandScanner | None = None
    """Checks commands before they run; None: only the patterns that always apply."""
    skills: SessionSkills | None = None
    """The skills of the Hermes home for this session; None if it has none."""
    ask_secret: AskSecret | None = None
    """Asks the user at the terminal for a secret value; None if that is impossible."""
    web: WebConfig = field(default_factory=WebConfig)
    """How the web is searched and read."""
    summarize: Summarizer | None = None
    show_output: Callable[[str], None] | None = None
    """Shows the user the end of the output of a command that runs; None if no one watches."""
    call: ToolCall | None = None
    """The call that is being run; set by the registry."""
    grant: Grant | None = None
    """The permission for this call, if the operator has given it already."""

    @property
    def directory(self) -> WorkingDirectory:
        """The session's directory; raises `InvalidValue` in a chat that has none."""
        if self.working_directory is None:
            raise InvalidValue("this conversation has no directory, so its tools cannot use files or commands")
        return self.working_directory

    def resolve_path(self, path: str, cwd: Path | None = None) -> ResolvedPath:
        """Resolve a path, relative to `cwd` or else to the session's current directory."""
        return resolve_path(path, cwd or self.directory.cwd, self._user_home)

    @cached_property
    def protected(self) -> ProtectedPlaces:
        """The protected places, which are never read."""
        return ProtectedPlaces(self.user_homes, self.home, self.database, self.directory.root)

    def is_free(self, place: ResolvedPath) -> bool:
        """Whether a place may be read without approval: it is in the session's directory, unless that is too wide."""
        root = self.directory.root
        return (
            place.real.is_relative_to(root)
            and not is_too_wide(root, self.user_homes)
            and self.protected.reason(place) is None
        )

    def refusal(self, request: ApprovalRequest) -> str | None:
        """Return why an action is not allowed, in words for the model, or None; this may ask the user."""
        here = "" if self.working_directory is None else str(self.working_directory.cwd)
        origin = ConversationOrigin(self.session_id, self.source, self.owner, self.call, here)
        return self.approvals.refusal(request, origin, self.approve, self.grant)

    @cached_property
    def user_homes(self) -> tuple[Path, ...]:
        """The user's home directories."""
        return user_homes(self.environ)

    @property
    def _user_home(self) -> Path:
        return _home_in(self.environ)


def user_homes(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The user's home directories: that of the environment, and that of the system if it differs."""
    return tuple(dict.fromkeys(each for each in (_home_in(environ), _home_of_system()) if each != Path("/")))


def _home_in(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or os.path.expanduser("~"))


def _home_of_system() -> Path:
    """The home directory of the process's user, independent of its environment."""
    try:
        import pwd

        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):  # another kind of system, or a user without an entry
        return Path(os.path.expanduser("~"))
