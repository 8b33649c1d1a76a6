"""Create sessions together with their first messages: new ones, or copies from another session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from hermes.errors import Conflict, InvalidValue
from hermes.state.engine import Columns, Reading, Transaction, Values
from hermes.state.messages.appending import add_messages
from hermes.state.messages.drafts import Draft, check_fields, draft_message
from hermes.state.operations import Operations, fetch_session, owner_condition, unknown_session
from hermes.state.owner import Asker
from hermes.state.rows import (
    AnyRow,
    Row,
    Stored,
    count_tool_calls,
    decode_content,
    decode_json,
    derived_uid,
    make_preview,
    optional_integer,
    optional_text,
    parse_timestamp,
    require_integer,
    tool_names,
)
from hermes.state.sessions import title_rules
from hermes.state.sessions.lineage.kinds import ChildKind
from hermes.state.sessions.lineage.links import children_of, refuse_second_continuation
from hermes.state.sessions.records import insert_session, is_taken, new_session, new_session_in, session_exists
from hermes.state.sessions.titles import free_title, next_title

if TYPE_CHECKING:
    from hermes.state.row_types import ContinuedSession, SessionRow, StartedSession, StartFields

INHERITED = ("source", "user_id", "owner", "model", "model_config", "cwd")
"""The columns that a session inherits from the session it continues."""

UNNAMED_BRANCH = "branch"


class SessionCreation(Operations):
    """Operations that create a session and its first messages in one transaction."""

    def start_session(
        self,
        session_id: str,
        source: str,
        message: Mapping[str, Any],
        *,
        title: str | None = None,
        **fields: Unpack[StartFields],
    ) -> StartedSession:
        """Create a session with its first message; return `message_id` and `title` (None if another session has it).

        The fields are those of `create_session`; the message is a dict of `append_message`'s arguments.
        """
        now = self._clock()
        given: Row = {**fields}
        started_at = parse_timestamp(given.pop("started_at", None), now)
        values = new_session_in(self, session_id, source, started_at, **given)
        first = draft_message(check_fields(message), now)
        wanted = title_rules.sanitize(title)

        def start(tx: Transaction) -> StartedSession:
            if not is_taken(tx, session_id, self._asker):
                insert_session(tx, values, self._asker)
                if wanted is not None and free_title(tx, wanted, values["owner"]) == wanted:
                    _set_title(tx, session_id, wanted)
            (message_id,) = add_messages(tx, session_id, [first], self._asker)
            return {"message_id": message_id, "title": _continued_session(tx, session_id)["title"]}

        return self._engine.write(start)

    def branch_session(self, session_id: str, child_id: str, title: str | None = None) -> ContinuedSession:
        """Create a session as a copy of another, which ends as `branched`; return `title` and `message_count`.

        The copies keep all columns of the messages. A title that another session has gets ` (2)`; without a title, the
        branch gets the other session's title with its next number. Repeating the call for a child changes nothing.
        """
        wanted = title_rules.sanitize(title)
        now = self._clock()

        def branch(tx: Transaction) -> ContinuedSession:
            parent = _lock_parent(tx, session_id, self._asker)
            if child_id in children_of(tx, session_id, ChildKind.BRANCH, self._asker):
                return _continued_session(tx, child_id)
            _insert_child(tx, parent, child_id, ChildKind.BRANCH, parent["system_prompt"], now, self._asker)
            if wanted is None and parent["title"] is not None:
                _set_title(tx, child_id, next_title(tx, parent["title"], parent["owner"]))
            else:
                _set_title(tx, child_id, free_title(tx, wanted or UNNAMED_BRANCH, parent["owner"]))
            add_messages(tx, child_id, _copies(tx, session_id), self._asker)
            _end(tx, session_id, "branched", now)
            return _continued_session(tx, child_id)

        return self._engine.write(branch)

    def compress_session(
        self,
        session_id: str,
        child_id: str,
        summary: str,
        *,
        tail_from: int,
        head_upto: int | None = None,
        system_prompt: str | None = None,
        holder: str | None = None,
    ) -> ContinuedSession:
        """Continue a conversation in a child session that has a summary instead of the messages it leaves out.

        The child starts with copies of the messages up to `head_upto`, then the summary, then copies of the messages
        from `tail_from` on. The session ends as `compression`, and the child gets its title with the next number. Raise
        `Conflict` if another child already continues it, or if `holder` no longer has the compression lock. The lock is
        released. Repeating the call for the same child changes nothing. Return `title` and `message_count`.
        """
        if not isinstance(summary, str) or not summary.strip():
            raise InvalidValue("summary must be a nonempty string")
        optional_text(system_prompt, "system_prompt")
        require_integer(tail_from, "tail_from")
        optional_integer(head_upto, "head_upto")
        now = self._clock()
        summary_message = draft_message({"role": "system", "content": summary}, now)

        def compress(tx: Transaction) -> ContinuedSession:
            parent = _lock_parent(tx, session_id, self._asker)
            if child_id in children_of(tx, session_id, ChildKind.COMPRESSION, self._asker):
                return _continued_session(tx, child_id)
            refuse_second_continuation(tx, session_id, self._asker)
            if holder is not None:
                _release_lock(tx, session_id, holder, now)
            _insert_child(tx, parent, child_id, ChildKind.COMPRESSION, system_prompt, now, self._asker)
            if parent["title"] is not None:
                _set_title(tx, child_id, next_title(tx, parent["title"], parent["owner"]))
            head = [] if head_upto is None else _copies(tx, session_id, upto=min(head_upto, tail_from - 1))
            add_messages(tx, child_id, [*head, summary_message, *_copies(tx, session_id, since=tail_from)], self._asker)
            _end(tx, session_id, "compression", now)
            # The chats that use the session continue with the child.
            tx.run("UPDATE lanes SET session_id = :child WHERE session_id = :id", id=session_id, child=child_id)
            return _continued_session(tx, child_id)

        return self._engine.write(compress)


def _lock_parent(tx: Transaction, session_id: str, asker: Asker) -> SessionRow:
    tx.row(
        f"SELECT id FROM sessions WHERE id = :id {owner_condition(asker)} {tx.dialect.for_update}",
        id=session_id,
        whose=asker.stored,
    )
    parent = fetch_session(tx, session_id, asker)
    if parent is None:
        raise unknown_session(session_id)
    return parent


def _insert_child(
    tx: Transaction,
    parent: AnyRow,
    child_id: str,
    kind: ChildKind,
    system_prompt: str | None,
    now: float,
    asker: Asker,
) -> None:
    """Insert a session that continues another."""
    if session_exists(tx, child_id):
        raise Conflict(f"the id {child_id!r} is already taken", hint="create another id with new_session_id()")
    inherited = {name: parent[name] for name in INHERITED if name != "source"}
    values = new_session(
        child_id,
        parent["source"],
        now,
        **inherited,
        system_prompt=system_prompt,
        parent_session_id=parent["id"],
        child_kind=kind,
    )
    # A session without an owner belongs to the terminal; a user id must not give it to that user.
    row = {**values, "owner": parent["owner"], "imported_from": parent["imported_from"]}
    insert_session(tx, row, asker)


def _copies(tx: Reading, session_id: str, *, upto: int | None = None, since: int | None = None) -> list[Draft]:
    """Return the active messages of a session, unchanged, to be inserted into another."""
    conditions = ["active = 1"] + ["id <= :upto"] * (upto is not None) + ["id >= :since"] * (since is not None)
    columns, rows = tx.table(
        f"SELECT * FROM messages WHERE session_id = :id AND {' AND '.join(conditions)} ORDER BY id",
        id=session_id,
        upto=upto,
        since=since,
    )
    return [_copy(columns, row) for row in rows]


def _copy(columns: Columns, row: Values) -> Draft:
    stored = dict(zip(columns, row, strict=True))
    message_id = stored.pop("id")
    del stored["session_id"]
    # Another session may use the same uid, and a caller who repeats the message is recognized there too.
    stored["uid"] = stored["uid"] or derived_uid(message_id, stored["timestamp"], stored["role"], stored["content"])
    calls, content = stored["tool_calls"], stored["content"]
    called = [] if calls is None else decode_json(calls, otherwise=[], what="tool_calls")
    has_preview = stored["role"] == "user" and content is not None
    return Draft(
        values={name: _as_stored(value) for name, value in stored.items() if value is not None},
        is_active=True,
        is_repeatable=False,
        tool_calls=count_tool_calls(called),
        tools=tool_names(called),
        preview=make_preview(decode_content(content)) if has_preview else None,
    )


def _as_stored(value: Any) -> Any:
    if isinstance(value, bytes):  # only older programs stored bytes
        return value.decode("utf-8", "replace")
    return Stored(value) if isinstance(value, str) else value


def _release_lock(tx: Transaction, session_id: str, holder: str, now: float) -> None:
    released = tx.run(
        "DELETE FROM compression_locks WHERE session_id = :id AND holder = :holder AND expires_at >= :now",
        id=session_id,
        holder=holder,
        now=now,
    )
    if not released:
        raise Conflict(f"the compression lock of session {session_id!r} was lost", hint="try again")


def _end(tx: Transaction, session_id: str, reason: str, now: float) -> None:
    """End a session that another one continues; `compression` overwrites an earlier reason."""
    is_open = "" if reason == "compression" else "AND ended_at IS NULL"
    tx.run(
        f"UPDATE sessions SET ended_at = COALESCE(ended_at, :now), end_reason = :reason WHERE id = :id {is_open}",
        id=session_id,
        reason=reason,
        now=now,
    )


def _set_title(tx: Transaction, session_id: str, title: str) -> None:
    tx.run("UPDATE sessions SET title = :title WHERE id = :id", id=session_id, title=title)


def _continued_session(tx: Reading, session_id: str) -> ContinuedSession:
    title, count = tx.row("SELECT title, message_count FROM sessions WHERE id = :id", id=session_id) or (None, 0)
    return {"title": title, "message_count": count}
