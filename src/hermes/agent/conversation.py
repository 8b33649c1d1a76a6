"""A conversation: what a surface holds while a user talks to the agent.

It has a session and little else: every turn reads the messages from the store, so that several programs can talk in one
session, and a process can hold many conversations at almost no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Self

from hermes.agent.listener import Listener
from hermes.agent.models.model import Cancellation
from hermes.agent.open_session import OpenSession
from hermes.agent.session_facts import SessionFacts
from hermes.agent.turns.answering import Request, store_messages
from hermes.agent.turns.incoming import Incoming
from hermes.agent.turns.steering import Steering
from hermes.agent.turns.turn import Turn, TurnOutcome
from hermes.agent.turns.turn_record import TurnRecord
from hermes.errors import Conflict, HermesError, InvalidValue, NotFound
from hermes.ids import new_caller_uid
from hermes.state.owner import Asker
from hermes.state.rows import flatten_text

if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.agent.compression.compress import CompressionResult
    from hermes.agent.history.images import Image
    from hermes.agent.models.model import ToolCall
    from hermes.agent.safety.approval import Approve, Grant
    from hermes.agent.tools.results import ToolResult
    from hermes.state.owner_view import OwnerView


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What `undo` has undone."""

    turns: int
    messages: int = 0
    text: str = ""
    """The first undone message of the user, to be edited and sent again."""
    files: Sequence[str] = ()
    """What became of the files that the turns had changed, a sentence for each change, the last one first."""


class Conversation(SessionFacts):
    """Talks in one session, one turn at a time, from any thread."""

    def __init__(self, session: OpenSession) -> None:
        super().__init__(session)
        self._busy = Lock()
        self._is_broken_off = False
        """Whether the last answer is incomplete, so that no model writes a title."""

    @classmethod
    def start(
        cls,
        agent: Agent,
        source: str = "cli",
        *,
        asker: Asker,
        user_id: str | None = None,
        cwd: str | None = None,
        title: str | None = None,
        approve: Approve | None = None,
        context: str = "",
    ) -> Self:
        """Start a new conversation, which is stored with its first message.

        It belongs to the asker, and its tools see the asker's sessions: those of one owner, or at the terminal those of
        `EVERYBODY`. The context is a section about the chat for its system prompt.
        """
        session = OpenSession.new(
            agent, source, asker=asker, user_id=user_id, cwd=cwd, approve=approve, context=context
        )
        if title is not None:
            session.set_title(title)
        return cls(session)

    @classmethod
    def resume(
        cls,
        agent: Agent,
        session_id: str,
        *,
        asker: Asker,
        approve: Approve | None = None,
        cwd: str | None = None,
        context: str = "",
    ) -> Self:
        """Resume a session and reopen it if it had ended; a compressed one continues in its newest session.

        Only sessions of the asker are found; in a session of a chat, the terminal too sees only what its owner sees. An
        imported session that was never continued here gets the agent's model and no directory, because the stored ones
        are those of the machine where it was made. The context is for a session that has no system prompt yet.
        """
        return cls(OpenSession.resumed(agent, session_id, asker=asker, approve=approve, cwd=cwd, context=context))

    def use_store(self, view: OwnerView | None) -> None:
        """Use this view for the next turns and their tools, such as one fenced by a lease; None: the plain one."""
        plain = self.session.plain_store
        with self._turn(Listener()):
            self.session.store = plain if view is None else view.narrowed_to(plain.asker)

    def say(
        self,
        text: str,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
        *,
        uid: str | None = None,
        attached: str = "",
        images: Sequence[Image] = (),
    ) -> TurnOutcome:
        """Run one turn: store the user's message and have the model answer it.

        A `uid` names the message: one that comes again is not stored again, and if it was answered, that is the answer.
        The images are a part of the message. The attached context is stored after it, as a message of its own.
        """
        message = Incoming(text, uid or new_caller_uid(), attached, images)
        return self._run_request(Request([message], may_be_stored=uid is not None), listener, cancellation)

    def answer(
        self,
        messages: Sequence[Incoming],
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
        *,
        steering: Steering | None = None,
        notes: Sequence[str] = (),
        context: str = "",
    ) -> TurnOutcome:
        """Run one turn that answers several messages together; those that are stored already are not stored again.

        If they have a complete answer, that is the outcome. If a turn has begun to answer them, this one continues it.
        Without messages, the conversation continues because of the notes, which the model reads in this turn only. The
        context is a section for the system prompt of a session that has none yet.
        """
        if not messages and not any(each.strip() for each in notes):
            raise InvalidValue("a turn needs a message or a note")
        self.session.context = context or self.session.context
        request = Request(messages, notes, steering or Steering())
        try:
            return self._run_request(request, listener, cancellation)
        finally:
            request.steering.close()

    def run_approved(self, call: ToolCall, grant: Grant, cancellation: Cancellation | None = None) -> ToolResult:
        """Run one tool call with a permission that the operator has given later; the result is not stored."""
        with self._turn(listener := Listener()):
            self._follow(listener)
            context = self.session.tools.context(cancellation or Cancellation(), grant=grant)
            return self.agent.tools.run(call, context)

    def save_memories(self, limit_s: float, cancellation: Cancellation | None = None) -> bool:
        """Let the model store what should be remembered, before the session ends; return whether it stored anything.

        The transcript does not change. The offline model stores nothing, nor does any model without the memory tool.
        """
        from hermes.agent.memory.saving import save_memories

        with self._turn(listener := Listener()):
            self._follow(listener)
            return save_memories(self.session, limit_s, cancellation or Cancellation())

    def retry(self, listener: Listener | None = None, cancellation: Cancellation | None = None) -> TurnOutcome:
        """Regenerate the last answer; the old one is undone, unless the new one fails."""
        listener, cancellation = listener or Listener(), cancellation or Cancellation()
        with self._turn(listener) as record:
            return self._outcome_of(lambda: self._retry(record, listener, cancellation))

    def undo(self, n: int = 1) -> UndoResult:
        """Undo the last `n` turns: the user's messages, everything after them, and the changes of files.

        A file that is not as the turn has written it stays as it is.
        """
        from hermes.agent.tools.editing.undo import undo_changes

        if n < 1:
            raise InvalidValue(f"{n} turns cannot be undone")
        with self._turn(listener := Listener()):
            self._follow(listener)
            undone = self.store.list_recent_user_messages(self.session_id, n)
            if not undone:
                return UndoResult(0)
            first_id = undone[-1]["id"]
            rows = self.store.get_messages(self.session_id, after_id=first_id)
            result = self.store.rewind_to_message(self.session_id, first_id)
            self.session.prompt_tokens = 0
            text = flatten_text(result["target_message"]["content"])
            files = tuple(map(str, undo_changes(self.session, rows)))
            return UndoResult(len(undone), result["rewound_count"], text, files)

    def branch(self, name: str | None = None) -> Conversation:
        """Return a conversation that starts as a copy of this one; the session of this one ends as `branched`."""
        if not self.is_stored:
            raise NotFound("there is nothing to branch from yet", hint="send a message first")
        with self._turn(listener := Listener()):
            self._follow(listener)
            return Conversation(self.session.branch(name))

    def compress(
        self,
        focus: str | None = None,
        keep: int | None = None,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
    ) -> CompressionResult:
        """Continue in a new session with a summary of all but the last `keep` exchanges (default: 2)."""
        from hermes.agent.compression.compress import CompressionRequest

        listener = listener or Listener()
        with self._turn(listener):
            self._follow(listener)
            request = CompressionRequest(focus=focus, keep=keep)
            return self.session.compress(request, listener, cancellation or Cancellation())

    def end(self, reason: str) -> None:
        """End the session; one without messages leaves nothing behind.

        A session without a complete answer gets its first words as a title, because no model will write one.
        """
        if self.is_stored:
            self.name_by_words(only_unanswered=not self._is_broken_off)
            self.store.end_session(self.session_id, reason)
        self.agent.approvals.forget(self.session_id)
        self.agent.skill_use.forget(self.session_id)

    def name_by_words(self, *, only_unanswered: bool = False) -> None:
        """Give a session without a title its first words as one, without asking a model."""
        from hermes.agent.auto_title import give_title_from_words

        give_title_from_words(self.agent, self.store, self.session_id, only_unanswered=only_unanswered)

    @contextmanager
    def _turn(self, listener: Listener) -> Iterator[TurnRecord]:
        """Lock out other turns of this object and yield a record."""
        if not self._busy.acquire(blocking=False):
            raise Conflict("this conversation is in the middle of a turn", hint="wait until it ends, or stop it")
        try:
            yield TurnRecord(self.session, listener)
        finally:
            self._busy.release()

    def _outcome_of(self, work: Callable[[], TurnOutcome]) -> TurnOutcome:
        """Run the work of a turn and return its outcome, also if it fails before the model is asked."""
        try:
            return work()
        except KeyboardInterrupt:
            return TurnOutcome("interrupted", self.session_id)
        except HermesError as error:
            return TurnOutcome("failed", self.session_id, error=error)

    def _run_request(
        self, request: Request, listener: Listener | None, cancellation: Cancellation | None
    ) -> TurnOutcome:
        listener, cancellation = listener or Listener(), cancellation or Cancellation()
        with self._turn(listener) as record:
            return self._outcome_of(lambda: self._answer(record, request, listener, cancellation))

    def _answer(
        self, record: TurnRecord, request: Request, listener: Listener, cancellation: Cancellation
    ) -> TurnOutcome:
        self._follow(listener)
        found = store_messages(self.session, record, request, listener)
        if found.known is not None and request.steering.close_if_empty():
            return TurnOutcome("done", self.session_id, found.known, is_known=True)
        notes = [*request.notes, *found.notes]
        return self._run_turn(record, listener, cancellation, request.steering, notes)

    def _retry(self, record: TurnRecord, listener: Listener, cancellation: Cancellation) -> TurnOutcome:
        self._follow(listener)
        store = self.store
        last = store.list_recent_user_messages(self.session_id, 1)
        if not last:
            raise NotFound("there is no message to answer again", hint="send a message first")
        old = store.get_messages(self.session_id, after_id=last[0]["id"], limit=1)
        store.rewind_to_message(self.session_id, last[0]["id"], keep_target=True)
        outcome = self._run_turn(record, listener, cancellation)
        if old and outcome.status == "failed" and not record.has_grown:
            store.restore_rewound(self.session_id, old[0]["id"])
        return outcome

    def _follow(self, listener: Listener) -> None:
        """Switch to the newest session of the conversation, which another process may have compressed."""
        if self.is_stored and self.session.follow():
            listener.notice(f"another process compressed the conversation; it continues in session {self.session_id}")

    def _run_turn(
        self,
        record: TurnRecord,
        listener: Listener,
        cancellation: Cancellation,
        steering: Steering | None = None,
        notes: Sequence[str] = (),
    ) -> TurnOutcome:
        """Have the model answer the last message, and store which model it is."""
        session = self.session
        if session.model_name != session.model.name:
            session.use(session.model)
        record.begin(notes)
        turn = Turn(session, record, listener, cancellation, steering=steering)
        outcome = turn.run()
        session.prompt_tokens = turn.prompt_tokens
        self._is_broken_off = outcome.status != "done"
        if not self._is_broken_off:
            from hermes.agent.auto_title import request_title

            request_title(session, record.messages, outcome.text)
        return outcome
