"""Append, replace and read messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from hermes.errors import HermesError, InvalidValue, MessageSpooled
from hermes.ids import OWN_UID
from hermes.log import inform, warn
from hermes.state.engine import Reading, Transaction
from hermes.state.messages.drafts import Draft, add_timestamps, check_fields, draft_message
from hermes.state.messages.partial import complete_message, find_by_given_uid
from hermes.state.messages.plain_append import append_plain
from hermes.state.messages.replay import load_conversation
from hermes.state.messages.spool import PERMANENT_FAILURES
from hermes.state.messages.tool_counts import count_tools
from hermes.state.operations import (
    UNLIMITED,
    Operations,
    has_messages,
    has_session,
    insert_into,
    may_see,
    owner_condition,
    row_limit,
    session_owner_condition,
    unknown_session,
)
from hermes.state.owner import Asker, OwnerName
from hermes.state.rows import (
    Row,
    message_row,
    one_line,
    optional_amount,
    require_identifier,
)
from hermes.state.sessions.records import (
    activity_tick,
    insert_session,
    new_session,
    note_chain_activity,
    recompute_chain_activity,
    session_exists,
)

if TYPE_CHECKING:
    from hermes.state.row_types import ConversationMessage, GivenContent, MessageRow, Moment, UserMessage


class Messages(Operations):
    """Operations on the messages of a session."""

    def append_message(
        self,
        session_id: str,
        role: str,
        content: GivenContent = None,
        tool_name: str | None = None,
        tool_calls: Any = None,
        tool_call_id: str | None = None,
        token_count: int | None = None,
        finish_reason: str | None = None,
        reasoning: str | None = None,
        reasoning_content: str | None = None,
        reasoning_details: Any = None,
        codex_reasoning_items: Any = None,
        codex_message_items: Any = None,
        platform_message_id: str | int | None = None,
        observed: bool = False,
        timestamp: Moment | None = None,
        *,
        uid: str | None = None,
    ) -> int:
        """Store a message and return its id. It is durable when this returns; a repeated uid returns the first id.

        An answer with the finish_reason `partial` is incomplete: another append with its uid replaces it.
        """
        message = draft_message(
            {
                "role": role,
                "content": content,
                "tool_name": tool_name,
                "tool_calls": tool_calls,
                "tool_call_id": tool_call_id,
                "token_count": optional_amount(token_count, "token_count"),
                "finish_reason": finish_reason,
                "reasoning": reasoning,
                "reasoning_content": reasoning_content,
                "reasoning_details": reasoning_details,
                "codex_reasoning_items": codex_reasoning_items,
                "codex_message_items": codex_message_items,
                "platform_message_id": platform_message_id,
                "observed": observed,
                "timestamp": timestamp,
                "uid": uid,
            },
            self._clock(),
        )
        require_identifier(session_id, "session_id")
        return self._store(session_id, [message])[0]

    def append_messages(self, session_id: str, messages: Iterable[Mapping[str, Any]]) -> list[int]:
        """Store several messages, dicts of append_message's arguments, in one transaction and return their ids."""
        require_identifier(session_id, "session_id")
        if not isinstance(messages, Iterable):
            raise InvalidValue(f"messages must be a list of dicts, not {type(messages).__name__}")
        now = self._clock()
        prepared = [draft_message(check_fields(message), now) for message in messages]
        return self._store(session_id, prepared)

    def _store(self, session_id: str, messages: list[Draft]) -> list[int]:
        """Store messages; if the store is damaged, spool them and raise MessageSpooled."""
        try:
            ids = self._write(session_id, messages)
        except PERMANENT_FAILURES as exc:
            spool = self._engine.spool
            if not messages or spool is None:
                raise
            try:
                spool.add(session_id, messages, self._asker)
            except OSError:
                raise exc from None  # the disk is full for the spool, too
            raise MessageSpooled(
                messages[-1].values["uid"], f"not stored yet, but saved in {spool.path}: {exc.message}"
            ) from exc
        self._store_spooled()
        return ids

    def _write(self, session_id: str, messages: list[Draft]) -> list[int]:
        """Add messages in a transaction of their own; a simple one in a single statement where that is faster."""
        if len(messages) == 1 and messages[0].is_simple:
            (message,) = messages
            number = self._engine.append_alone(session_id, message.values, message.preview, self._asker)
            if number is not None:
                return [number]
        return self._engine.write(lambda tx: add_messages(tx, session_id, messages, self._asker))

    def _store_spooled(self) -> None:
        """Store spooled messages, if there may be any. On failure they stay in the spool."""
        spool = self._engine.spool
        if spool is None or not spool.may_have_messages:
            return
        try:
            count = spool.replay(self._store_again)
        except (HermesError, OSError) as exc:
            warn(__name__, "messages stay in the spool %s: %s", spool.path, exc)
        else:
            if count:
                inform(__name__, "stored %s messages from the spool %s", count, spool.path)

    def _store_again(self, session_id: str, messages: list[Draft], asker: Asker) -> bool:
        """Store spooled messages; return False if the session belongs to another owner than their sender."""

        def store(tx: Transaction) -> bool:
            if not session_exists(tx, session_id):
                values = new_session(session_id, "unknown", messages[0].values["timestamp"])
                insert_session(tx, {**values, "owner": asker.stored}, asker)
            elif not may_see(tx, session_id, asker):
                return False
            add_messages(tx, session_id, messages, asker)
            return True

        return self._engine.write(store)

    def replace_messages(self, session_id: str, messages: Iterable[Mapping[str, Any]]) -> None:
        """Replace all messages of a session; on failure the old ones stay."""
        require_identifier(session_id, "session_id")
        if not isinstance(messages, Iterable):
            raise InvalidValue(f"messages must be a list of dicts, not {type(messages).__name__}")
        prepared = [draft_message(fields, fields["timestamp"]) for fields in add_timestamps(messages, self._clock())]

        def replace(tx: Transaction) -> None:
            remove_messages(tx, session_id, self._asker)
            add_messages(tx, session_id, prepared, self._asker)

        self._engine.write(replace)

    def clear_messages(self, session_id: str) -> bool:
        """Delete a session's messages and keep the session."""

        def clear(tx: Transaction) -> bool:
            if not has_session(tx, session_id, self._asker):
                return False
            remove_messages(tx, session_id, self._asker)
            return True

        return self._engine.write(clear)

    def get_messages(
        self,
        session_id: str,
        include_inactive: bool = False,
        *,
        owner: OwnerName = None,
        after_id: int | None = None,
        before_id: int | None = None,
        limit: int | None = None,
    ) -> list[MessageRow]:
        """Return a session's messages in the order they were stored; `before_id` with `limit` pages backwards."""
        size = row_limit(limit)
        backwards = before_id is not None and after_id is None and size < UNLIMITED
        visible = "" if include_inactive else "AND active = 1"
        asker = self._asker_for(owner)

        def get(tx: Reading) -> list[MessageRow]:
            columns, rows = tx.table(
                f"""SELECT * FROM {tx.dialect.by_key("messages")}
                    WHERE session_id = :id AND id > :after AND id < :before {visible} {session_owner_condition(asker)}
                    ORDER BY id {"DESC" if backwards else ""} LIMIT :limit""",
                id=session_id,
                whose=asker.stored,
                after=-1 if after_id is None else after_id,
                before=UNLIMITED if before_id is None else before_id,
                limit=size,
            )
            return [cast("MessageRow", message_row(columns, row)) for row in (reversed(rows) if backwards else rows)]

        return self._engine.read(get)

    def get_messages_as_conversation(
        self,
        session_id: str,
        include_ancestors: bool = False,
        include_inactive: bool = False,
        *,
        owner: OwnerName = None,
    ) -> list[ConversationMessage]:
        """Return a session as a conversation for models; ancestors are the sessions it continues by compression."""
        asker = self._asker_for(owner)
        return self._engine.read(
            lambda tx: load_conversation(
                tx, session_id, asker, include_ancestors=include_ancestors, include_inactive=include_inactive
            )
        )

    def message_count(self, session_id: str | None = None, *, owner: OwnerName = None) -> int:
        """Return the number of active messages of a session, or of all sessions."""
        asker = self._asker_for(owner)

        def count(tx: Reading) -> int:
            scope, whose = owner_condition(asker), asker.stored
            if session_id:
                return int(
                    tx.value(f"SELECT message_count FROM sessions WHERE id = :id {scope}", id=session_id, whose=whose)
                    or 0
                )
            return int(tx.value(f"SELECT SUM(message_count) FROM sessions WHERE 1 = 1 {scope}", whose=whose) or 0)

        return self._engine.read(count)

    def list_recent_user_messages(
        self, session_id: str, limit: int | None = 20, include_inactive: bool = False, *, owner: OwnerName = None
    ) -> list[UserMessage]:
        """Return the user's latest messages in a session, newest first: id, timestamp and a preview of one line."""
        size = row_limit(limit)
        asker = self._asker_for(owner)

        def recent(tx: Reading) -> list[UserMessage]:
            columns, rows = tx.table(
                f"""SELECT * FROM messages
                    WHERE session_id = :id AND role = 'user' {"" if include_inactive else "AND active = 1"}
                        {session_owner_condition(asker)}
                    ORDER BY id DESC LIMIT :limit""",
                id=session_id,
                whose=asker.stored,
                limit=size,
            )
            found = [message_row(columns, row) for row in rows]
            return [{"id": m["id"], "timestamp": m["timestamp"], "preview": one_line(m["content"], 80)} for m in found]

        return self._engine.read(recent)


def add_messages(tx: Transaction, session_id: str, messages: list[Draft], asker: Asker) -> list[int]:
    """Insert messages into the asker's session and update its counters, activity and preview."""
    if messages and (plain := append_plain(tx, session_id, messages, asker)) is not None:
        return list(plain)
    session, numbers = tx.lock_and_number(
        f"""SELECT message_count, last_active, chain_active, chain_root
            FROM sessions WHERE id = :id {owner_condition(asker)} {tx.dialect.for_update}""",
        len(messages),
        id=session_id,
        whose=asker.stored,
    )
    if session is None:
        raise unknown_session(session_id)
    is_first = session[0] == 0 and not has_messages(tx, session_id)
    ids, added = _insert_new(tx, session_id, messages, numbers, is_first=is_first)
    if added:
        _note_added(tx, session_id, session, added, asker, is_first=is_first)
        tx.note_added_message(max(ids))
    return ids


def remove_messages(tx: Transaction, session_id: str, asker: Asker) -> None:
    """Delete the messages of the asker's session and reset its counters."""
    locked = tx.value(
        f"SELECT 1 FROM sessions WHERE id = :id {owner_condition(asker)} {tx.dialect.for_update}",
        id=session_id,
        whose=asker.stored,
    )
    if locked is None:
        raise unknown_session(session_id)
    # The counter first: if rows vanish while it still counts them, that looks like another program's change.
    tx.run(
        """UPDATE sessions SET message_count = 0, tool_call_count = 0, preview = NULL, last_active = started_at
           WHERE id = :id""",
        id=session_id,
    )
    for table in ("messages", "session_tools", "rewinds"):
        tx.run(tx.dialect.delete_where_in(table, "session_id", ["id"]), id=session_id)
    recompute_chain_activity(tx, session_id, asker)


def _insert_new(
    tx: Transaction, session_id: str, messages: list[Draft], numbers: Sequence[int], *, is_first: bool
) -> tuple[list[int], list[Draft]]:
    # A session without messages cannot have these messages yet.
    known = {} if is_first else _generated_uids(tx, session_id, messages)
    added: dict[str, Draft] = {}
    for message in messages:
        uid = message.values["uid"]
        if not is_first and (message.is_repeatable or (tx.is_repeat and uid not in known)):
            stored = find_by_given_uid(tx, session_id, uid)
            if stored is not None:
                known[uid] = stored.id
            if stored is not None and stored.is_open:
                count_tools(tx, session_id, complete_message(tx, session_id, stored, message))
        if uid not in known:
            added.setdefault(uid, message)
    new = list(added.values())
    known |= zip(added, _insert(tx, session_id, new, numbers), strict=True)
    return [known[message.values["uid"]] for message in messages], new


def _insert(tx: Transaction, session_id: str, messages: list[Draft], numbers: Sequence[int]) -> Sequence[int]:
    """Insert messages with the ids reserved for them, or with the next ones, and return the ids."""
    rows: list[Row] = [{"session_id": session_id, **message.values} for message in messages]
    if not numbers:
        return tx.insert_messages(rows)
    for number, row in zip(numbers, rows, strict=False):
        tx.send(insert_into("messages", ("id", *row)), id=number, **row)
    return numbers[: len(rows)]


def _generated_uids(tx: Transaction, session_id: str, messages: list[Draft]) -> dict[str, int]:
    """Return a session's messages by uid, if a repeated message has a generated uid; those have no index."""
    if tx.is_repeat or any(message.is_repeatable and message.values["uid"].startswith(OWN_UID) for message in messages):
        return dict(tx.rows("SELECT uid, id FROM messages WHERE session_id = :id", id=session_id))
    return {}


def _note_added(
    tx: Transaction, session_id: str, session: tuple[Any, ...], added: list[Draft], asker: Asker, *, is_first: bool
) -> None:
    message_count, last_active, chain_active, chain_root = session
    visible = [message for message in added if message.is_active]
    newest = max(message.values["timestamp"] for message in added)
    now_active = newest if is_first else max(last_active, newest)
    # Only the first session of a chain also carries the activity of the others.
    counts_only_itself = chain_root is not None or (is_first and chain_active == last_active)
    chain = now_active if counts_only_itself else max(chain_active, now_active)
    # An index entry that is written again, even unchanged, costs a page of the log.
    ticked = "" if activity_tick(chain) == activity_tick(chain_active) else ", active_tick = :tick"
    tx.send(
        f"""UPDATE sessions SET message_count = :count, tool_call_count = tool_call_count + :calls,
                preview = COALESCE(preview, :preview), last_active = :active, chain_active = :chain {ticked}
            WHERE id = :id""",
        id=session_id,
        count=message_count + len(visible),
        calls=sum(message.tool_calls for message in visible),
        preview=next((message.preview for message in visible if message.preview is not None), None),
        active=now_active,
        chain=chain,
        tick=activity_tick(chain),
    )
    if now_active < last_active:
        recompute_chain_activity(tx, session_id, asker)
    elif chain_root is not None:
        note_chain_activity(tx, chain_root, newest, asker)
    tools = [name for message in visible for name in message.tools]
    if tools:
        count_tools(tx, session_id, Counter(tools))
