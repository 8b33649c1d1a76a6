"""An open session: one that this program talks in, with all that its turns need."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from hermes.agent.listener import Listener
from hermes.agent.memory.notes import memory_block
from hermes.agent.models.model import Cancellation, Model
from hermes.agent.system_prompt import PromptInputs, build_system_prompt
from hermes.agent.tools.context import ToolContext, WorkingDirectory
from hermes.config import EndpointConfig
from hermes.errors import TitleTaken, UnknownSession
from hermes.state.owner import Owner
from hermes.state.sessions.imported import is_foreign, with_mark

if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.agent.compression.compress import CompressionRequest, CompressionResult
    from hermes.agent.safety.approval import Approve
    from hermes.state.owner_view import OwnerView
    from hermes.state.recall.summaries import Summarizer


class OpenSession:
    """Who talks where with which model; it can become another session when the conversation is compressed."""

    def __init__(
        self,
        agent: Agent,
        session_id: str,
        source: str,
        *,
        store: OwnerView,
        owner: Owner,
        user_id: str | None = None,
        cwd: str | None = None,
        approve: Approve | None = None,
        is_stored: bool = False,
    ) -> None:
        self.agent = agent
        self.model = agent.model
        self.session_id = session_id
        self.source = source
        self.store = store
        """The sessions that the conversation and its tools may see."""
        self.owner = owner
        self.user_id = user_id
        self.cwd = cwd
        self.approve = approve
        """Asks the person for permission; None where there is nobody to ask."""
        self.is_stored = is_stored
        """Whether anything was said yet."""
        self.model_name = agent.model.name
        """The model that is noted for the session; that of a resumed one may be another than `model`."""
        self._pending_title: str | None = None
        self._prompt: str | None = None
        self._prompt_tokens = 0
        self._is_broken_off = False
        """Whether the last answer has no end, so that no model is asked for a title."""
        self._busy = Lock()

    @property
    def title(self) -> str | None:
        """The session's title, or the one that it will get with its first message."""
        return self.store.get_session_title(self.session_id) if self.is_stored else self._pending_title

    def set_title(self, text: str) -> str | None:
        """Name the session, at once or with its first message, and answer the name as it is kept; none takes it away.

        Raises `TitleTaken` if another session has it.
        """
        store = self.store
        title = store.sanitize_title(text)
        if self.is_stored:
            store.set_session_title(self.session_id, title)
        elif title is not None and store.get_session_by_title(title) is not None:
            raise TitleTaken(f"the title {title!r} is already in use")
        else:
            self._pending_title = title
        return title

    def use(self, model: Model) -> None:
        """Have the next turns answered by another model; the system prompt stays as it is."""
        self.model = model
        self._prompt_tokens = 0
        if self.is_stored:
            self.store.update_session_model(self.session_id, model.name)
            self.model_name = model.name

    @property
    def prompt(self) -> str:
        """The system prompt: as it was stored when the session began here, whatever has changed since."""
        if self._prompt is None:
            self._prompt = self._stored_prompt() if self.is_stored else self._new_prompt(self.session_id)
        return self._prompt

    @cached_property
    def toolsets(self) -> frozenset[str]:
        """The toolsets that are on here."""
        return self.agent.toolsets(self.source)

    def tool_context(self, cancellation: Cancellation) -> ToolContext:
        """What the tools of a turn work with."""
        agent = self.agent
        return ToolContext(
            session_id=self.session_id,
            source=self.source,
            owner=self.owner,
            toolsets=self.toolsets,
            home=agent.home,
            working_directory=self._working_directory,
            store=self.store,
            database=agent.database,
            memory=agent.memory,
            processes=agent.processes,
            approvals=agent.approvals,
            approve=self.approve,
            cancellation=cancellation,
            clock=agent.clock,
            env_passthrough=agent.config.terminal.env_passthrough,
            summarize=self._summarizer(),
        )

    def shrink(self, listener: Listener, cancellation: Cancellation, *, is_forced: bool) -> CompressionResult:
        """Compress the conversation in the middle of a turn: because it is time, or because it has to be."""
        from hermes.agent.compression.compress import TOO_LITTLE, CompressionRequest

        done = self._compress(CompressionRequest("full" if is_forced else "grown"), listener, cancellation)
        if done.is_changed:
            listener.notice(
                f"the conversation has grown long: it goes on in session {done.session_id}, with a summary of its"
                f" earlier part ({done.messages_before} messages became {done.messages_after})"
            )
        elif is_forced or done.reason != TOO_LITTLE:
            listener.notice(f"the conversation has grown long, but is not compressed: {done.reason}")
        return done

    def _compress(self, wish: CompressionRequest, listener: Listener, cancellation: Cancellation) -> CompressionResult:
        from hermes.agent.compression.compress import Compression

        done = Compression(self.agent, self.store, self.model).run(
            self.session_id, wish, self._new_prompt, listener, cancellation
        )
        self._move(done.session_id)
        return done

    def _move(self, session_id: str) -> None:
        """Be the session that continues this one."""
        if session_id == self.session_id:
            return
        self.agent.approvals.move(self.session_id, session_id)
        self.agent.processes.move(self.session_id, session_id)
        self.session_id = session_id
        self._prompt = None
        self._prompt_tokens = 0

    def _stored_prompt(self) -> str:
        store = self.store
        row = store.get_session(self.session_id)
        if row is None:
            raise UnknownSession(f"session {self.session_id!r} was deleted")
        is_own = not is_foreign(row)
        if is_own and row["system_prompt"]:
            return str(row["system_prompt"])
        prompt = self._new_prompt(self.session_id)
        store.update_system_prompt(self.session_id, prompt)
        if not is_own:
            # From now on the session is continued here, and what is on record of it is true here. The mark comes last.
            store.update_session_cwd(self.session_id, self.cwd or "")
            store.update_session_meta(self.session_id, with_mark(row["model_config"]), self.model.name)
        return prompt

    def _new_prompt(self, session_id: str) -> str:
        agent = self.agent
        return build_system_prompt(
            PromptInputs(
                source=self.source,
                started_at=agent.clock(),
                cwd=self.cwd,
                session_id=session_id if agent.config.agent.pass_session_id else None,
                guidance=agent.tools.guidance(self.toolsets),
                memory=memory_block(agent.memory, self.owner) if "memory" in self.toolsets else "",
            )
        )

    @cached_property
    def _working_directory(self) -> WorkingDirectory:
        if self.cwd and os.path.isdir(self.cwd):
            return WorkingDirectory(Path(self.cwd))
        try:
            return WorkingDirectory(Path.cwd())
        except FileNotFoundError:  # somebody has deleted it
            return WorkingDirectory(self.agent.home)

    def _summarizer(self) -> Summarizer | None:
        """Summarizes what `session_search` finds, where somebody has named an auxiliary model for such things."""
        model = self.agent.auxiliary
        if model is None or self.agent.config.model.auxiliary == EndpointConfig():
            return None
        from hermes.agent.compression.summary import can_summarize, recall_summarizer

        if not can_summarize(model):
            return None
        limit_s = self.agent.config.auxiliary.summary_timeout_s
        return recall_summarizer(model, self.agent.accounts, self.store, self.session_id, limit_s)
