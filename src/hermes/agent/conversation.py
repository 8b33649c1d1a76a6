"""A conversation: what a surface holds while somebody talks to the agent.

It knows its session and how that is to be answered, and little else: what was said is read from the store at every
turn, so that several programs can talk in one session, and holding many conversations costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from hermes.agent.history.tool_results import INTERRUPTED
from hermes.agent.listener import Listener
from hermes.agent.models.model import Cancellation
from hermes.agent.open_session import OpenSession
from hermes.agent.turn import CUT, Turn, TurnOutcome
from hermes.agent.turn_record import TurnRecord, new_uid
from hermes.errors import Conflict, HermesError, InvalidValue, NotFound, UnknownSession
from hermes.ids import new_session_id
from hermes.state.messages.partial import PARTIAL
from hermes.state.owner import TERMINAL, Asker, owner_from_column
from hermes.state.rows import AnyRow, Row, flatten_text
from hermes.state.sessions.imported import is_foreign

if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.agent.compression.compress import CompressionResult
    from hermes.agent.safety.approval import Approve
    from hermes.state.row_types import ConversationMessage

TITLED_WITHIN = 2
"""A title comes after the first exchange, or after the second if the first was about nothing, such as a greeting."""

SESSION_META = "session_meta"
"""The role under which other programs keep notes about a session among its messages."""

COUNTERS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "api_call_count",
    "estimated_cost_usd",
    "actual_cost_usd",
    "cost_status",
)


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What an undo has set aside."""

    turns: int
    messages: int = 0
    text: str = ""
    """What the person had said first of it, to be said in another way."""


class Conversation(OpenSession):
    """One session to be talked in, one turn at a time, from any thread."""

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
        """A new conversation; nothing is stored until something is said.

        It is the asker's, and its tools see the asker's sessions: those of one owner, or at the terminal `EVERYBODY`'s.
        """
        store = agent.store.narrowed_to(asker)
        made = cls(
            agent,
            new_session_id(agent.clock()),
            source,
            store=store,
            owner=store.owner,
            user_id=user_id,
            cwd=cwd,
            approve=approve,
        )
        if title is not None:
            made.set_title(title)
        return made

    @classmethod
    def resume(cls, agent: Agent, session_id: str, *, asker: Asker, approve: Approve | None = None) -> Self:
        """Go on with a session; if it was compressed, with the newest one, since older ones are not shown any more.

        Only the asker's sessions are there; in a session of a chat, the terminal too sees no more than its owner does.
        A session that had ended is open again. One that was imported and never continued here has the agent's model
        and no directory: those on record are a file's.
        """
        store = agent.store.narrowed_to(asker)
        row = store.get_session(store.get_compression_tip(session_id))
        if row is None:
            raise UnknownSession(f"there is no session {session_id!r}")
        if row["ended_at"] is not None:
            store.reopen_session(row["id"])
        is_own, owner = not is_foreign(row), owner_from_column(row["owner"])
        made = cls(
            agent,
            row["id"],
            row["source"],
            store=store if owner == TERMINAL else store.narrowed_to(owner),
            owner=owner,
            user_id=row["user_id"],
            cwd=row["cwd"] if is_own else None,
            approve=approve,
            is_stored=True,
        )
        made.model_name = (row["model"] if is_own else None) or made.model.name
        return made

    @property
    def history(self) -> list[ConversationMessage]:
        """The messages of the session, as `get_messages_as_conversation` returns them, without notes that are none."""
        rows = self.store.get_messages_as_conversation(self.session_id)
        return [row for row in rows if row["role"] != SESSION_META]

    def say(
        self,
        text: str,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
        *,
        uid: str | None = None,
    ) -> TurnOutcome:
        """One turn: store what a person says, and have it answered.

        A `uid` names the message: one that comes again is not stored again, and if it was answered, that is the answer.
        """
        if not text.strip():
            raise InvalidValue("there is nothing to answer in an empty message")
        with self._turn(listener) as record:

            def answer() -> TurnOutcome:
                self._catch_up(record)
                message_id = self._receive(record, text, uid or new_uid())
                known = None if uid is None or message_id is None else self._known_answer(message_id)
                if known is not None:
                    return TurnOutcome("done", self.session_id, known)
                return self._answer(record, listener, cancellation)

            return self._outcome_of(answer)

    def retry(self, listener: Listener | None = None, cancellation: Cancellation | None = None) -> TurnOutcome:
        """Have what was said last answered once more; the answer that there was is set aside, once there is another."""
        store = self.store
        with self._turn(listener) as record:

            def answer() -> TurnOutcome:
                self._catch_up(record)
                last = store.list_recent_user_messages(self.session_id, 1)
                if not last:
                    raise NotFound("nothing was said that could be answered again", hint="say something")
                old = store.get_messages(self.session_id, after_id=last[0]["id"], limit=1)
                store.rewind_to_message(self.session_id, last[0]["id"], keep_target=True)
                outcome = self._answer(record, listener, cancellation)
                if old and outcome.status == "failed" and not record.has_grown:
                    store.restore_rewound(self.session_id, old[0]["id"])
                return outcome

            return self._outcome_of(answer)

    def undo(self, n: int = 1) -> UndoResult:
        """Set the last `n` turns aside: what was said, and all that came of it."""
        if n < 1:
            raise InvalidValue(f"{n} turns cannot be undone")
        with self._turn() as record:
            self._catch_up(record)
            said = self.store.list_recent_user_messages(self.session_id, n)
            if not said:
                return UndoResult(0)
            undone = self.store.rewind_to_message(self.session_id, said[-1]["id"])
            self._prompt_tokens = 0
            return UndoResult(len(said), undone["rewound_count"], flatten_text(undone["target_message"]["content"]))

    def branch(self, name: str | None = None) -> Conversation:
        """A conversation that begins as a copy of this one; the session of this one ends as `branched`."""
        if not self.is_stored:
            raise NotFound("nothing was said that could be gone on from", hint="say something")
        with self._turn() as record:
            self._catch_up(record)
            child_id = new_session_id(self.agent.clock())
            self.store.branch_session(self.session_id, child_id, name)
        child = Conversation(
            self.agent,
            child_id,
            self.source,
            store=self.store,
            owner=self.owner,
            user_id=self.user_id,
            cwd=self.cwd,
            approve=self.approve,
            is_stored=True,
        )
        child.model, child.model_name = self.model, self.model_name
        return child

    def compress(
        self,
        focus: str | None = None,
        keep: int | None = None,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
    ) -> CompressionResult:
        """Go on in a new session that has a summary of all but the last `keep` exchanges (2 if nothing is said)."""
        from hermes.agent.compression.compress import CompressionRequest

        with self._turn(listener) as record:
            self._catch_up(record)
            return self._compress(
                CompressionRequest(focus=focus, keep=keep), listener or Listener(), cancellation or Cancellation()
            )

    def usage(self) -> Row:
        """The session's counters of tokens and money; nothing if nothing was said yet."""
        row: AnyRow = self.store.get_session(self.session_id) or {}
        return {name: row[name] for name in COUNTERS if name in row}

    def end(self, reason: str) -> None:
        """Close the session; one in which nothing was said leaves nothing behind.

        A session that was never answered, or not to the end, gets its first words as a title, because no model is going
        to name it.
        """
        if self.is_stored:
            self.name_by_words(only_unanswered=not self._is_broken_off)
            self.store.end_session(self.session_id, reason)
        self.agent.approvals.forget(self.session_id)

    def name_by_words(self, *, only_unanswered: bool = False) -> None:
        """Give a session that has no title its first words, without asking a model."""
        from hermes.agent.auto_title import give_title_from_words

        give_title_from_words(self.agent, self.store, self.session_id, only_unanswered=only_unanswered)

    @contextmanager
    def _turn(self, listener: Listener | None = None) -> Iterator[TurnRecord]:
        """The record of a turn that nothing else runs beside."""
        if not self._busy.acquire(blocking=False):
            raise Conflict("this conversation is in the middle of a turn", hint="wait for its end, or stop it")
        try:
            notice = (listener or Listener()).notice
            yield TurnRecord(self.store, self.session_id, moved=self._move, notice=notice)
        finally:
            self._busy.release()

    def _catch_up(self, record: TurnRecord) -> None:
        """Be where the conversation is, which somebody else may have compressed since."""
        if self.is_stored and record.follow():
            record.notice(f"the conversation was compressed elsewhere; it goes on in session {self.session_id}")

    def _receive(self, record: TurnRecord, text: str, uid: str) -> int | None:
        """Store what a person says, with the session if it is the first."""
        if self.is_stored:
            return record.add("user", text, uid=uid)
        answer = self.store.start_session(
            self.session_id,
            self.source,
            {"role": "user", "content": text, "uid": uid},
            title=self._pending_title,
            model=self.model.name,
            system_prompt=self.prompt,
            user_id=self.user_id,
            owner=self.owner,
            cwd=self.cwd,
        )
        self.is_stored, self.model_name = True, self.model.name
        if self._pending_title is not None and answer["title"] is None:
            record.notice(f"the title {self._pending_title!r} is already in use; this session has none")
        return int(answer["message_id"])

    def _known_answer(self, message_id: int) -> str | None:
        """What was answered to a message that came before, if that was done; nothing to one that was undone."""
        rows = self.store.get_messages(self.session_id, after_id=message_id - 1)
        if not rows or rows[0]["id"] != message_id:
            return ""
        for row in rows[1:]:
            is_last = row["role"] == "assistant" and not row["tool_calls"]
            if is_last and row["finish_reason"] not in (INTERRUPTED, CUT, PARTIAL):
                return flatten_text(row["content"])
        return None

    def _outcome_of(self, work: Callable[[], TurnOutcome]) -> TurnOutcome:
        """What comes of a turn, also when it does not get as far as the model."""
        try:
            return work()
        except KeyboardInterrupt:
            return TurnOutcome("interrupted", self.session_id)
        except HermesError as error:
            return TurnOutcome("failed", self.session_id, error=error)

    def _answer(self, record: TurnRecord, listener: Listener | None, cancellation: Cancellation | None) -> TurnOutcome:
        """Have what was said last answered, and note which model does it."""
        if self.model_name != self.model.name:
            self.use(self.model)
        record.load()
        turn = Turn(
            self.agent,
            self.model,
            self,
            record,
            listener or Listener(),
            cancellation or Cancellation(),
            prompt_tokens=self._prompt_tokens,
        )
        outcome = turn.run()
        self._prompt_tokens = turn.prompt_tokens
        self._is_broken_off = outcome.status != "done"
        if not self._is_broken_off:
            self._have_titled(record, outcome)
        return outcome

    def _have_titled(self, record: TurnRecord, outcome: TurnOutcome) -> None:
        """Have the session named in the background, if it is young."""
        said = [row["content"] for row in record.messages if row["role"] == "user"]
        if not self.agent.config.agent.auto_title or len(said) > TITLED_WITHIN or not outcome.text:
            return
        from hermes.agent.auto_title import give_title

        model, session_id, first = self.model, outcome.session_id, "\n".join(map(flatten_text, said))
        self.agent.background.submit(lambda: give_title(self.agent, self.store, model, session_id, first, outcome.text))
