"""Create, read, change and end sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from hermes.errors import Conflict, InvalidValue
from hermes.state.engine import Reading, Transaction
from hermes.state.operations import (
    Operations,
    can_see_owner,
    fetch_session,
    has_session,
    may_see,
    owner_condition,
    unknown_session,
)
from hermes.state.owner import TERMINAL, Asker, Owner, OwnerName, is_terminal_source, owner_column
from hermes.state.rows import Row, encode_json, optional_identifier, optional_text, parse_timestamp, require_identifier
from hermes.state.sessions.lineage.kinds import ChildKind, is_listed, kind_from_markers, kind_from_parent, parse_kind
from hermes.state.sessions.lineage.links import chain_root, refuse_second_continuation

if TYPE_CHECKING:
    from hermes.state.row_types import GivenChildKind, Moment, SessionFields, SessionRow

TICK_LIMIT = 4.6e18
"""A larger value is not a time in seconds (perhaps in nanoseconds); it still has to fit into an integer."""


class Sessions(Operations):
    """Operations on single sessions."""

    def create_session(
        self,
        session_id: str,
        source: str,
        *,
        model: str | None = None,
        model_config: dict[str, Any] | str | None = None,
        system_prompt: str | None = None,
        user_id: str | None = None,
        parent_session_id: str | None = None,
        cwd: str | None = None,
        owner: OwnerName = None,
        child_kind: GivenChildKind | None = None,
        started_at: Moment | None = None,
    ) -> str:
        """Create a session and return its id. An existing one stays unchanged: the first writer wins."""
        values = new_session_in(
            self,
            session_id,
            source,
            parse_timestamp(started_at, self._clock()),
            model=model,
            model_config=model_config,
            system_prompt=system_prompt,
            user_id=user_id,
            parent_session_id=parent_session_id,
            cwd=cwd,
            owner=owner,
            child_kind=child_kind,
        )

        def create(tx: Transaction) -> None:
            if not is_taken(tx, session_id, self._asker):
                insert_session(tx, values, self._asker)

        self._engine.write(create)
        return session_id

    def ensure_session(
        self, session_id: str, source: str = "unknown", model: str | None = None, **fields: Unpack[SessionFields]
    ) -> str:
        """Create a session unless it exists."""
        return self.create_session(session_id, source, model=model, **fields)

    def get_session(self, session_id: str, owner: OwnerName = None) -> SessionRow | None:
        """Return a session as a dict of all its columns, or None."""
        asker = self._asker_for(owner)
        return self._engine.read(lambda tx: fetch_session(tx, session_id, asker))

    def end_session(self, session_id: str, end_reason: str) -> bool:
        """End a session. The first reason stays: ending twice changes nothing."""
        require_identifier(end_reason, "end_reason")
        now = self._clock()
        return self._engine.write(
            lambda tx: (
                tx.run(
                    f"""UPDATE sessions SET ended_at = :now, end_reason = :reason
                        WHERE id = :id AND ended_at IS NULL {owner_condition(self._asker)}""",
                    id=session_id,
                    whose=self._asker.stored,
                    reason=end_reason,
                    now=now,
                )
                == 1
            )
        )

    def reopen_session(self, session_id: str) -> bool:
        """Remove the end of a session."""
        return self._change(session_id, "ended_at = NULL, end_reason = NULL")

    def update_session_cwd(self, session_id: str, cwd: str) -> bool:
        """Store the working directory of a session; an empty one changes nothing."""
        optional_text(cwd, "cwd")
        return bool(cwd) and self._change(session_id, "cwd = :cwd", cwd=cwd)

    def update_session_meta(
        self, session_id: str, model_config_json: dict[str, Any] | str | None, model: str | None = None
    ) -> bool:
        """Replace a session's model configuration, and its model if given.

        A marker `_delegate_from` in it makes a session without a kind a delegate.
        """
        optional_text(model, "model")
        config = _encode_config(model_config_json)
        is_delegate = kind_from_markers(config) == ChildKind.DELEGATE

        def update(tx: Transaction) -> bool:
            assignments = "model_config = :config, model = COALESCE(:model, model)"
            if not _update(tx, session_id, self._asker, assignments, config=config, model=model):
                return False
            if is_delegate:
                tx.run(
                    """UPDATE sessions SET child_kind = 'delegate', listed = 0
                       WHERE id = :id AND child_kind IS NULL""",
                    id=session_id,
                )
            return True

        return self._engine.write(update)

    def update_system_prompt(self, session_id: str, system_prompt: str | None) -> bool:
        """Store the system prompt of a session."""
        optional_text(system_prompt, "system_prompt")
        return self._change(session_id, "system_prompt = :prompt", prompt=system_prompt)

    def update_session_model(self, session_id: str, model: str | None) -> bool:
        """Store that a session continues with another model."""
        optional_text(model, "model")
        return self._change(session_id, "model = :model", model=model)

    def set_session_archived(self, session_id: str, archived: bool = True) -> bool:
        """Archive a conversation with its whole compression chain, or remove it from the archive."""
        return self._change_chain(session_id, "archived", bool(archived))

    def set_session_pinned(self, session_id: str, pinned: bool = True) -> bool:
        """Pin a conversation with its whole compression chain, so that it is never pruned, or unpin it."""
        return self._change_chain(session_id, "pinned", bool(pinned))

    def _change(self, session_id: str, assignments: str, **values: Any) -> bool:
        return self._engine.write(lambda tx: _update(tx, session_id, self._asker, assignments, **values))

    def _change_chain(self, session_id: str, column: str, value: bool) -> bool:
        def change(tx: Transaction) -> bool:
            root = chain_root(tx, session_id, self._asker)
            if root is None:
                return False
            tx.run(
                f"""UPDATE sessions SET {column} = :value
                    WHERE (id = :root OR chain_root = :root) {owner_condition(self._asker)}""",
                root=root,
                value=int(value),
                whose=self._asker.stored,
            )
            return True

        return self._engine.write(change)


def new_session_in(
    store: Operations, session_id: str, source: str, started_at: float, *, owner: OwnerName = None, **fields: Any
) -> Row:
    """Return the values of a new session, with an owner that the store's asker may set.

    In a view of an owner's sessions it is that owner, for any user id, and the source is never the terminal's.
    """
    requested = store._asker_for(owner)
    if isinstance(store._asker, Owner) and store._asker != TERMINAL and is_terminal_source(source):
        raise InvalidValue(f"{source!r} is a source of the terminal", hint="use the name of the session's platform")
    if isinstance(owner, str):
        return new_session(session_id, source, started_at, owner=owner, **fields)
    values = new_session(session_id, source, started_at, **fields)
    return {**values, "owner": requested.stored} if isinstance(requested, Owner) else values


def new_session(
    session_id: str,
    source: str,
    started_at: float,
    *,
    model: str | None = None,
    model_config: dict[str, Any] | str | None = None,
    system_prompt: str | None = None,
    user_id: str | None = None,
    parent_session_id: str | None = None,
    cwd: str | None = None,
    owner: str | None = None,
    child_kind: GivenChildKind | None = None,
) -> Row:
    """Return the checked values of a new session."""
    for name, text in (("model", model), ("system_prompt", system_prompt), ("cwd", cwd)):
        optional_text(text, name)
    for name, text in (("user_id", user_id), ("owner", owner), ("parent_session_id", parent_session_id)):
        optional_identifier(optional_text(text, name) or None, name)
    config = _encode_config(model_config)
    return {
        "id": require_identifier(session_id, "session_id"),
        "source": require_identifier(source, "source"),
        "user_id": user_id,
        "owner": owner or owner_column(source, user_id),
        "parent_session_id": parent_session_id or None,
        "child_kind": parse_kind(child_kind) or kind_from_markers(config),
        "model": model,
        "model_config": config,
        "system_prompt": system_prompt,
        "cwd": cwd,
        "started_at": started_at,
    }


def insert_session(tx: Transaction, values: Row, asker: Asker) -> None:
    """Insert a new session, linked to its parent, which the asker must own, and its compression chain."""
    parent_id, kind = values["parent_session_id"], values["child_kind"]
    root, archived, pinned = None, 0, 0
    if parent_id is not None:
        parent = tx.row(
            f"""SELECT end_reason, chain_root, archived, pinned, owner
                FROM sessions WHERE id = :id {owner_condition(asker)} {tx.dialect.for_update}""",
            id=parent_id,
            whose=asker.stored,
        )
        if parent is None:
            raise unknown_session(parent_id)
        if kind == ChildKind.COMPRESSION:
            refuse_second_continuation(tx, parent_id, asker)
        kind = kind or kind_from_parent(parent[0])
        if kind == ChildKind.COMPRESSION:
            root, archived, pinned = parent[1] or parent_id, parent[2], parent[3]
            values = {**values, "owner": values["owner"] or parent[4]}
            note_chain_activity(tx, root, values["started_at"], asker)
    tx.run(
        """INSERT INTO sessions (
               id, source, user_id, owner, parent_session_id, child_kind, chain_root, listed, archived, pinned, model,
               model_config, system_prompt, cwd, imported_from, started_at, last_active, chain_active, active_tick)
           VALUES (
               :id, :source, :user_id, :owner, :parent_session_id, :child_kind, :chain_root, :listed, :archived,
               :pinned, :model, :model_config, :system_prompt, :cwd, :imported_from, :started_at, :started_at,
               :started_at, :active_tick)""",
        **{
            "imported_from": None,
            **values,
            "child_kind": kind,
            "chain_root": root,
            "listed": int(is_listed(parent_id, kind)),
            "archived": archived,
            "pinned": pinned,
            "active_tick": activity_tick(values["started_at"]),
        },
    )


def activity_tick(moment: float) -> int:
    """Return the hundredth of a second that activity is indexed by; a burst of messages has the same one."""
    return int(max(-TICK_LIMIT, min(TICK_LIMIT, moment * 100)))


def set_chain_activity(tx: Transaction, root: str | None, moment: float) -> None:
    """Store when the compression chain that starts with a session was last active."""
    tx.run(
        "UPDATE sessions SET chain_active = :moment, active_tick = :tick WHERE id = :root",
        root=root,
        moment=moment,
        tick=activity_tick(moment),
    )


def recompute_chain_activity(tx: Transaction, session_id: str, asker: Asker) -> None:
    """Recompute when a compression chain was last active, after a deletion in it."""
    root = chain_root(tx, session_id, asker)
    if root is not None and root != session_id and not may_see(tx, root, asker):
        root = session_id  # the asker does not own the first session
    # A writer that adds to the chain meanwhile waits here, and then sees the new value.
    tx.value(f"SELECT 1 FROM sessions WHERE id = :root {tx.dialect.for_update}", root=root)
    if root != session_id:
        own = tx.value("SELECT last_active FROM sessions WHERE id = :id", id=session_id)
        if own is not None:
            set_chain_activity(tx, session_id, own)
    newest = tx.value(
        f"SELECT MAX(last_active) FROM sessions WHERE (id = :root OR chain_root = :root) {owner_condition(asker)}",
        root=root,
        whose=asker.stored,
    )
    if newest is not None:
        set_chain_activity(tx, root, newest)


def note_chain_activity(tx: Transaction, root: str, moment: float, asker: Asker) -> None:
    """Update the activity of a chain's first session, if the asker owns it."""
    known = tx.value(
        f"SELECT chain_active FROM sessions WHERE id = :root {owner_condition(asker)} {tx.dialect.for_update}",
        root=root,
        whose=asker.stored,
    )
    if known is not None and known < moment:
        set_chain_activity(tx, root, moment)


def session_exists(tx: Reading, session_id: str) -> bool:
    """Whether a session exists."""
    return tx.value("SELECT 1 FROM sessions WHERE id = :id", id=session_id) is not None


def is_taken(tx: Reading, session_id: str, asker: Asker) -> bool:
    """Whether the asker already has a session with this id; raise `Conflict` if another owner has it."""
    row = tx.row("SELECT owner FROM sessions WHERE id = :id", id=session_id)
    if row is not None and not can_see_owner(asker, row[0]):
        raise Conflict(f"the id {session_id!r} is already taken", hint="create another id with new_session_id()")
    return row is not None


def _update(tx: Transaction, session_id: str, asker: Asker, assignments: str, **values: Any) -> bool:
    """Change columns of a session; return whether the asker has such a session."""
    if not has_session(tx, session_id, asker):
        return False
    tx.run(f"UPDATE sessions SET {assignments} WHERE id = :id", id=session_id, **values)
    return True


def _encode_config(config: dict[str, Any] | str | None) -> str | None:
    if config is None or isinstance(config, str):
        return config or None
    return encode_json(config) if config else None
