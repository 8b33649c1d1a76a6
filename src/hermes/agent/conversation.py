"""A conversation: what a surface holds while a user talks to the agent.

It has a session and little else: every turn reads the messages from the store, so that several programs can talk in one
session, and a process can hold many conversations at almost no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Self

from hermes.agent.history.tool_results import INTERRUPTED
from hermes.agent.listener import Listener
from hermes.agent.models.model import Cancellation, Model
from hermes.agent.open_session import OpenSession
from hermes.agent.turn import CUT, Turn, TurnOutcome
from hermes.agent.turn_record import TurnRecord
from hermes.errors import Conflict, HermesError, InvalidValue, NotFound
from hermes.ids import new_caller_uid
from hermes.state.messages.partial import PARTIAL
from hermes.state.owner import Asker
from hermes.state.rows import AnyRow, Row, flatten_text
from hermes.state.usage.counters import COSTS, COUNTERS

if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.agent.compression.compress import CompressionResult
    from hermes.agent.safety.approval import Approve
    from hermes.state.owner_view import OwnerView
    from hermes.state.row_types import ConversationMessage

TITLED_WITHIN = 2
"""A title is written after the first exchange, or after the second if the first has no topic, such as a greeting."""

SESSION_META = "session_meta"
"""The role under which other programs store data about a session among its messages."""

USAGE_COLUMNS = (*COUNTERS, *COSTS, "cost_status")


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What `undo` has undone."""

    turns: int
    messages: int = 0
    text: str = ""
    """The first undone message of the user, to be edited and sent again."""


class Conversation:
    """Talks in one session, one turn at a time, from any thread."""

    def __init__(self, session: OpenSession) -> None:
        self.session = session
        """The session that the conversation is in now."""
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
    ) -> Self:
        """Start a new conversation, which is stored with its first message.

        It belongs to the asker, and its tools see the asker's sessions: those of one owner, or at the terminal those of
        `EVERYBODY`.
        """
        session = OpenSession.new(agent, source, asker=asker, user_id=user_id, cwd=cwd, approve=approve)
        if title is not None:
            session.set_title(title)
        return cls(session)

    @classmethod
    def resume(cls, agent: Agent, session_id: str, *, asker: Asker, approve: Approve | None = None) -> Self:
        """Resume a session and reopen it if it had ended; a compressed one continues in its newest session.

        Only sessions of the asker are found; in a session of a chat, the terminal too sees only what its owner sees. An
        imported session that was never continued here gets the agent's model and no directory, because the stored ones
        are those of the machine where it was made.
        """
        return cls(OpenSession.resumed(agent, session_id, asker=asker, approve=approve))

    @property
    def agent(self) -> Agent:
        """The agent that the conversation uses."""
        return self.session.agent

    @property
    def store(self) -> OwnerView:
        """The sessions that the conversation and its tools may see."""
        return self.session.store

    @property
    def session_id(self) -> str:
        """The id of the current session; a compression changes it."""
        return self.session.session_id

    @property
    def is_stored(self) -> bool:
        """Whether the conversation has a message yet."""
        return self.session.is_stored

    @property
    def title(self) -> str | None:
        """The title of the session, or the one that it gets with its first message."""
        return self.session.title

    @property
    def model(self) -> Model:
        """The model that writes the next answers."""
        return self.session.model

    @property
    def history(self) -> list[ConversationMessage]:
        """The messages of the session, as `get_messages_as_conversation` returns them, without `session_meta`."""
        rows = self.store.get_messages_as_conversation(self.session_id)
        return [row for row in rows if row["role"] != SESSION_META]

    def set_title(self, text: str) -> str | None:
        """Set the title, now or with the first message, and return it as it is stored; empty text removes it.

        Raises `TitleTaken` if another session has it.
        """
        return self.session.set_title(text)

    def use(self, model: Model) -> None:
        """Switch to another model for the next turns; the system prompt does not change."""
        self.session.use(model)

    def say(
        self,
        text: str,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
        *,
        uid: str | None = None,
    ) -> TurnOutcome:
        """Run one turn: store the user's message and have the model answer it.

        A `uid` names the message: one that comes again is not stored again, and if it was answered, that is the answer.
        """
        if not text.strip():
            raise InvalidValue("the message is empty")
        listener, cancellation = listener or Listener(), cancellation or Cancellation()
        with self._turn(listener) as record:
            return self._outcome_of(lambda: self._say(record, text, uid, listener, cancellation))

    def retry(self, listener: Listener | None = None, cancellation: Cancellation | None = None) -> TurnOutcome:
        """Regenerate the last answer; the old one is undone, unless the new one fails."""
        listener, cancellation = listener or Listener(), cancellation or Cancellation()
        with self._turn(listener) as record:
            return self._outcome_of(lambda: self._retry(record, listener, cancellation))

    def undo(self, n: int = 1) -> UndoResult:
        """Undo the last `n` turns: the user's messages and everything after them."""
        if n < 1:
            raise InvalidValue(f"{n} turns cannot be undone")
        with self._turn(listener := Listener()):
            self._follow(listener)
            undone = self.store.list_recent_user_messages(self.session_id, n)
            if not undone:
                return UndoResult(0)
            result = self.store.rewind_to_message(self.session_id, undone[-1]["id"])
            self.session.prompt_tokens = 0
            return UndoResult(len(undone), result["rewound_count"], flatten_text(result["target_message"]["content"]))

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

    def usage(self) -> Row:
        """The token and cost counters of the session; empty before the first message."""
        row: AnyRow = self.store.get_session(self.session_id) or {}
        return {name: row[name] for name in USAGE_COLUMNS if name in row}

    def end(self, reason: str) -> None:
        """End the session; one without messages leaves nothing behind.

        A session without a complete answer gets its first words as a title, because no model will write one.
        """
        if self.is_stored:
            self.name_by_words(only_unanswered=not self._is_broken_off)
            self.store.end_session(self.session_id, reason)
        self.agent.approvals.forget(self.session_id)

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

    def _say(
        self, record: TurnRecord, text: str, uid: str | None, listener: Listener, cancellation: Cancellation
    ) -> TurnOutcome:
        self._follow(listener)
        if self.is_stored:
            message_id = record.add("user", text, uid=uid or new_caller_uid())
        else:
            message_id = self.session.create(text, uid or new_caller_uid(), listener)
        known = None if uid is None or message_id is None else self._stored_answer(message_id)
        if known is not None:
            return TurnOutcome("done", self.session_id, known)
        return self._run_turn(record, listener, cancellation)

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

    def _stored_answer(self, message_id: int) -> str | None:
        """Return the complete answer to a stored message, or None; an undone message has an empty one."""
        rows = self.store.get_messages(self.session_id, after_id=message_id - 1)
        if not rows or rows[0]["id"] != message_id:
            return ""
        for row in rows[1:]:
            is_last = row["role"] == "assistant" and not row["tool_calls"]
            if is_last and row["finish_reason"] not in (INTERRUPTED, CUT, PARTIAL):
                return flatten_text(row["content"])
        return None

    def _run_turn(self, record: TurnRecord, listener: Listener, cancellation: Cancellation) -> TurnOutcome:
        """Have the model answer the last message, and store which model it is."""
        session = self.session
        if session.model_name != session.model.name:
            session.use(session.model)
        record.load()
        turn = Turn(session, record, listener, cancellation)
        outcome = turn.run()
        session.prompt_tokens = turn.prompt_tokens
        self._is_broken_off = outcome.status != "done"
        if not self._is_broken_off:
            self._request_title(record, outcome)
        return outcome

    def _request_title(self, record: TurnRecord, outcome: TurnOutcome) -> None:
        """Have a title written in the background, if the session is young."""
        questions = [row["content"] for row in record.messages if row["role"] == "user"]
        if not self.agent.config.agent.auto_title or len(questions) > TITLED_WITHIN or not outcome.text:
            return
        from hermes.agent.auto_title import give_title

        model, session_id, question = self.model, outcome.session_id, "\n".join(map(flatten_text, questions))
        self.agent.background.submit(
            lambda: give_title(self.agent, self.store, model, session_id, question, outcome.text)
        )
