"""The session that a conversation is in: which one, whose, with which model and system prompt.

It is the only owner of the session id. A compression, here or in another process, makes it another session; the
conversation, its turns and their records ask this object each time.
"""

from __future__ import annotations

import os
from pathlib import Path
from sys import getsizeof
from typing import TYPE_CHECKING

from hermes.agent.instructions import Instructions, files_in_prompt, read_instructions, read_soul
from hermes.agent.listener import Listener
from hermes.agent.memory.notes import memory_block
from hermes.agent.models.model import Cancellation, Model
from hermes.agent.session_tools import SessionTools
from hermes.agent.skills.texts import skill_list
from hermes.agent.system_prompt import PromptInputs, build_system_prompt
from hermes.errors import TitleTaken, UnknownSession
from hermes.ids import new_session_id
from hermes.state.owner import TERMINAL, Asker, Owner, is_terminal_source, owner_from_column
from hermes.state.sessions.imported import is_foreign, with_mark

if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.agent.compression.compress import CompressionRequest, CompressionResult
    from hermes.agent.history.images import Part
    from hermes.agent.safety.approval import Approve
    from hermes.state.owner_view import OwnerView

OF_OTHERS = "unknown"
"""The source of a session that a chat user owns and that names the terminal, as an imported one can."""

_OBJECTS_BYTES = 4_096
"""A conversation without its texts."""


class OpenSession:
    """A session that this program talks in."""

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
        context: str = "",
        is_stored: bool = False,
    ) -> None:
        self.agent = agent
        self.session_id = session_id
        self.source = source
        self.plain_store = store
        """The sessions that the conversation may see, without the fence of a lease."""
        self.store = store
        """The same sessions for the next turns and their tools."""
        self.owner = owner
        self.user_id = user_id
        self.cwd = cwd
        self.context = context
        """The section about the chat for a system prompt that is written from now on."""
        self.approve = approve
        """Asks the user for permission; None if no user can be asked."""
        self.is_stored = is_stored
        """Whether the store has the session, which is so from its first message on."""
        self.model = agent.model
        """Writes the next answers."""
        self.model_name = agent.model.name
        """The model that the store has for the session; for a resumed one it may differ from `model`."""
        self.prompt_tokens = 0
        """The length of the last prompt as the model counted it; 0: unknown."""
        self._pending_title: str | None = None
        self._prompt: str | None = None
        self.tools = SessionTools(self)

    @classmethod
    def new(
        cls,
        agent: Agent,
        source: str,
        *,
        asker: Asker,
        user_id: str | None = None,
        cwd: str | None = None,
        approve: Approve | None = None,
        context: str = "",
    ) -> OpenSession:
        """Return a new session of the asker, which is stored with its first message."""
        store = agent.store.narrowed_to(asker)
        return cls(
            agent,
            new_session_id(agent.clock()),
            source,
            store=store,
            owner=store.owner,
            user_id=user_id,
            cwd=cwd,
            approve=approve,
            context=context,
        )

    @classmethod
    def resumed(
        cls,
        agent: Agent,
        session_id: str,
        *,
        asker: Asker,
        approve: Approve | None = None,
        cwd: str | None = None,
        context: str = "",
    ) -> OpenSession:
        """Open a stored session, or the newest one of its compression chain; `Conversation.resume` explains it."""
        store = agent.store.narrowed_to(asker)
        row = store.get_session(store.get_compression_tip(session_id))
        if row is None:
            raise UnknownSession(f"there is no session {session_id!r}")
        if row["ended_at"] is not None:
            store.reopen_session(row["id"])
        is_own, owner = not is_foreign(row), owner_from_column(row["owner"])
        # The terminal's tools and permissions belong to the terminal, whatever the row of a chat user's session says.
        claims_terminal = is_terminal_source(row["source"]) and owner != TERMINAL
        session = cls(
            agent,
            row["id"],
            OF_OTHERS if claims_terminal else row["source"],
            store=store if owner == TERMINAL else store.narrowed_to(owner),
            owner=owner,
            user_id=row["user_id"],
            cwd=cwd or (row["cwd"] if is_own else None),
            approve=approve,
            context=context,
            is_stored=True,
        )
        if is_own:  # a session that was created without a model gets its name with the first turn
            session.model_name = row["model"] or ""
        return session

    def branch(self, name: str | None) -> OpenSession:
        """Store a copy of this session under a new id, end this one as `branched` and return the copy."""
        child_id = new_session_id(self.agent.clock())
        self.store.branch_session(self.session_id, child_id, name)
        child = OpenSession(
            self.agent,
            child_id,
            self.source,
            store=self.plain_store,
            owner=self.owner,
            user_id=self.user_id,
            cwd=self.cwd,
            approve=self.approve,
            context=self.context,
            is_stored=True,
        )
        child.store, child.model, child.model_name = self.store, self.model, self.model_name
        return child

    def create(self, content: str | list[Part], uid: str, listener: Listener) -> int:
        """Store the session together with its first message and return the id of the message."""
        created = self.store.start_session(
            self.session_id,
            self.source,
            {"role": "user", "content": content, "uid": uid},
            title=self._pending_title,
            model=self.model.name,
            system_prompt=self.prompt,
            user_id=self.user_id,
            owner=self.owner,
            cwd=self.cwd,
        )
        self.is_stored, self.model_name = True, self.model.name
        if self._pending_title is not None and created["title"] is None:
            listener.notice(f"the title {self._pending_title!r} is already in use; this session has none")
        return int(created["message_id"])

    @property
    def title(self) -> str | None:
        """The title of the session, or the one that it gets with its first message."""
        return self.store.get_session_title(self.session_id) if self.is_stored else self._pending_title

    def set_title(self, text: str) -> str | None:
        """Set the title, now or with the first message, and return it as it is stored; empty text removes it.

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
        """Switch to another model for the next turns; the system prompt does not change."""
        self.model = model
        self.prompt_tokens = 0
        if self.is_stored:
            self.store.update_session_model(self.session_id, model.name)
            self.model_name = model.name

    @property
    def prompt(self) -> str:
        """The system prompt, as it was stored when the session started here."""
        if self._prompt is None:
            self._prompt = self._stored_prompt() if self.is_stored else self._new_prompt(self.session_id)
        return self._prompt

    @property
    def toolsets(self) -> frozenset[str]:
        """The enabled toolsets."""
        return self.tools.toolsets

    def weight(self) -> int:
        """Return about how many bytes this object holds."""
        texts = (self._prompt, self.context, self.cwd, self._pending_title)
        return _OBJECTS_BYTES + sum(getsizeof(each) for each in texts if each)

    def follow(self) -> bool:
        """Switch to the newest session of the compression chain; return whether another process has compressed it."""
        tip = self.store.get_compression_tip(self.session_id)
        if tip == self.session_id:
            return False
        self._switch_to(tip)
        return True

    def compress(
        self, request: CompressionRequest, listener: Listener, cancellation: Cancellation
    ) -> CompressionResult:
        """Compress the conversation and switch to the session that continues it."""
        from hermes.agent.compression.compress import Compression

        done = Compression(self.agent, self.store, self.model).run(
            self.session_id, request, self._child_prompt, listener, cancellation
        )
        if done.session_id != self.session_id:
            self._switch_to(done.session_id)
        return done

    def compress_in_turn(self, listener: Listener, cancellation: Cancellation, *, is_forced: bool) -> CompressionResult:
        """Compress in the middle of a turn and notify the user; `is_forced` if the model cannot read the whole."""
        from hermes.agent.compression.compress import TOO_LITTLE, CompressionRequest

        done = self.compress(CompressionRequest("full" if is_forced else "grown"), listener, cancellation)
        if done.is_changed:
            listener.notice(
                f"the conversation was long, so it continues in session {done.session_id} with a summary of its older"
                f" part ({done.messages_before} messages became {done.messages_after})"
            )
        elif is_forced or done.reason != TOO_LITTLE:
            listener.notice(f"the conversation is long, but was not compressed: {done.reason}")
        return done

    def _switch_to(self, session_id: str) -> None:
        """Become the session that continues this one."""
        self.agent.approvals.move(self.session_id, session_id)
        self.agent.processes.move(self.session_id, session_id)
        self.agent.skill_use.move(self.session_id, session_id)
        self.session_id = session_id
        self._prompt = None
        self.prompt_tokens = 0

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
        if is_own and self.cwd and row["cwd"] != self.cwd:
            store.update_session_cwd(self.session_id, self.cwd)
        if not is_own:
            # From now on the session is continued here, and its directory and model are those of this machine. The mark
            # that says so is stored last.
            store.update_session_cwd(self.session_id, self.cwd or "")
            store.update_session_meta(self.session_id, with_mark(row["model_config"]), self.model.name)
        return prompt

    def _child_prompt(self, session_id: str) -> str | None:
        """Return the prompt of a child; a chat whose context is not known now gets it with its next turn."""
        is_known = self.context or is_terminal_source(self.source)
        return self._new_prompt(session_id) if is_known else None

    @property
    def instructions(self) -> Instructions:
        """The instructions that a new session in this directory gets; in chats there are none."""
        directory = self.cwd if is_terminal_source(self.source) else None
        if directory is None or not self.agent.config.agent.project_instructions:
            return Instructions()
        return read_instructions(Path(directory), Path(os.path.expanduser("~")))

    @property
    def instruction_files(self) -> list[str]:
        """The files whose instructions this session follows."""
        row = self.store.get_session(self.session_id) if self.is_stored else None
        if row is None or is_foreign(row) or not row["system_prompt"]:
            return [*read_soul(self.agent.home).files, *self.instructions.files]
        return files_in_prompt(str(row["system_prompt"]))

    def _new_prompt(self, session_id: str) -> str:
        agent = self.agent
        return build_system_prompt(
            PromptInputs(
                source=self.source,
                started_at=agent.clock(),
                cwd=self.tools.prompt_directory,
                session_id=session_id if agent.config.agent.pass_session_id else None,
                identity=read_soul(agent.home).text,
                instructions=self.instructions.text,
                guidance=agent.tools.guidance(self.toolsets),
                skills=skill_list(self.tools.skills.visible()) if "skills" in self.toolsets else "",
                memory=memory_block(agent.memory, self.owner) if "memory" in self.toolsets else "",
                context=self.context,
            )
        )
