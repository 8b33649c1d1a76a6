"""The tools of a session: which ones it has, the directory in which they work, and their context."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.agent.models.model import Cancellation
from hermes.agent.safety.approval import Grant
from hermes.agent.safety.paths import is_too_wide, is_workspace
from hermes.agent.skills.session_skills import SessionSkills
from hermes.agent.tools.context import ToolContext, WorkingDirectory, user_homes
from hermes.agent.tools.toolsets import NEED_DIRECTORY
from hermes.config import EndpointConfig
from hermes.log import warn
from hermes.state.owner import is_terminal_source

if TYPE_CHECKING:
    from hermes.agent.open_session import OpenSession
    from hermes.state.recall.summaries import Summarizer


class SessionTools:
    """The tools of one session; they keep their current directory from one turn to the next."""

    def __init__(self, session: OpenSession) -> None:
        self._session = session
        self._directory: tuple[str | None, WorkingDirectory | None] | None = None
        """The directory for a value of `session.cwd`."""

    @property
    def toolsets(self) -> frozenset[str]:
        """The enabled toolsets; a chat without a directory has none that works with files or commands."""
        enabled = self._session.agent.toolsets(self._session.source)
        if enabled.isdisjoint(NEED_DIRECTORY) or self.directory is not None:
            return enabled
        return enabled - NEED_DIRECTORY

    @property
    def directory(self) -> WorkingDirectory | None:
        """The directory of the session; None in a chat without one."""
        cwd = self._session.cwd
        if self._directory is None or self._directory[0] != cwd:
            is_terminal = is_terminal_source(self._session.source)
            self._directory = cwd, self._terminal_directory(cwd) if is_terminal else self._chat_directory(cwd)
        return self._directory[1]

    @property
    def prompt_directory(self) -> str | None:
        """The directory for the system prompt; a chat is given it only with tools that use it."""
        if is_terminal_source(self._session.source):
            return self._session.cwd
        directory = None if self.toolsets.isdisjoint(NEED_DIRECTORY) else self.directory
        return None if directory is None else str(directory.root)

    def context(
        self, cancellation: Cancellation, toolsets: Collection[str] | None = None, grant: Grant | None = None
    ) -> ToolContext:
        """Return the context for the tools of a turn, or for one call that the operator has allowed."""
        session, agent = self._session, self._session.agent
        return ToolContext(
            session_id=session.session_id,
            source=session.source,
            owner=session.owner,
            toolsets=self.toolsets if toolsets is None else toolsets,
            home=agent.home,
            working_directory=self.directory if grant is None else self._directory_of(grant),
            store=session.store,
            database=agent.database,
            memory=agent.memory,
            processes=agent.processes,
            approvals=agent.approvals,
            approve=session.approve,
            cancellation=cancellation,
            clock=agent.clock,
            env_passthrough=agent.config.terminal.env_passthrough,
            web=agent.config.web,
            scanner=agent.scanner,
            skills=self.skills,
            ask_secret=agent.ask_secret if is_terminal_source(session.source) else None,
            summarize=self._summarizer(),
            grant=grant,
        )

    @property
    def skills(self) -> SessionSkills:
        """The skills as this session sees them."""
        session, agent, toolsets = self._session, self._session.agent, self.toolsets
        return SessionSkills(
            agent.skills, agent.skill_use, session.session_id, agent.home, toolsets, agent.tools.names(toolsets)
        )

    def _directory_of(self, grant: Grant) -> WorkingDirectory | None:
        """The session's directory as it was when the operator was asked; commands may have changed it since."""
        directory = self.directory
        if directory is None or not grant.directory:
            return directory
        then = WorkingDirectory(directory.root)
        then.cwd = Path(grant.directory)
        return then

    def _terminal_directory(self, cwd: str | None) -> WorkingDirectory:
        if cwd and os.path.isdir(cwd):
            return WorkingDirectory(Path(cwd))
        try:
            return WorkingDirectory(Path.cwd())
        except FileNotFoundError:  # it was deleted
            return WorkingDirectory(self._session.agent.home)

    def _chat_directory(self, cwd: str | None) -> WorkingDirectory | None:
        """Return the directory that the caller has given to a chat, unless more than the chat's files is in it."""
        if not cwd:
            return None
        directory = WorkingDirectory(Path(cwd))
        reason = _refusal(directory.root, self._session.agent.home) if os.path.isabs(cwd) else "it is not absolute"
        if reason is None:
            return directory
        warn(__name__, "session %s gets no directory: %s: %s", self._session.session_id, cwd, reason)
        return None

    def _summarizer(self) -> Summarizer | None:
        """The summarizer of `session_search` results; None unless an auxiliary model is configured."""
        session, agent = self._session, self._session.agent
        model = agent.auxiliary
        if model is None or agent.config.model.auxiliary == EndpointConfig():
            return None
        from hermes.agent.compression.summary import can_summarize, recall_summarizer

        if not can_summarize(model):
            return None
        limit_s = agent.config.auxiliary.summary_timeout_s
        return recall_summarizer(model, agent.accounts, session.store, session.session_id, limit_s)


def _refusal(root: Path, hermes_home: Path) -> str | None:
    """Return why a chat cannot have a directory, or None; the path has no links."""
    if not root.is_dir():
        return "it does not exist"
    if is_too_wide(root, user_homes(os.environ)):
        return "it is a home directory, or contains more than one project"
    home = Path(os.path.realpath(hermes_home))
    if home.is_relative_to(root) or (root.is_relative_to(home) and not is_workspace(root, home)):
        return "Hermes stores its own files there"
    try:
        is_own = Path(os.path.realpath(os.getcwd())).is_relative_to(root)
    except OSError:  # it was deleted
        is_own = False
    return "this program runs there" if is_own else None
