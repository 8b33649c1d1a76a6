"""Session rows: created, read, changed, ended."""

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
from hermes.state.sessions.kinds import ChildKind, is_listed, kind_from_markers, kind_from_parent, parse_kind

if TYPE_CHECKING:
    from hermes.state.row_types import GivenChildKind, Moment, SessionFields, SessionRow

TICK_LIMIT = 4.6e18
"""Beyond this a moment is not one, but a count of nanoseconds, say; it still has to fit into an integer."""


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
        """Create a session and answer its id. One that exists stays as it is: the first writer wins."""
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
        """Create a session unless it exists, for a caller that only knows it should."""
        return self.create_session(session_id, source, model=model, **fields)

    def get_session(self, session_id: str, owner: OwnerName = None) -> SessionRow | None:
        """A session as a dict of all its columns, or None."""
        asker = self._asker_for(owner)
        return self._engine.read(lambda tx: fetch_session(tx, session_id, asker))

    def end_session(self, session_id: str, end_reason: str) -> bool:
        """Close a session. The first reason stays: ending twice changes nothing."""
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
        """Take back a session's end."""
        return self._change(session_id, "ended_at = NULL, end_reason = NULL")

    def update_session_cwd(self, session_id: str, cwd: str) -> bool:
        """Note in which directory a session works; an empty one changes nothing."""
        optional_text(cwd, "cwd")
        return bool(cwd) and self._change(session_id, "cwd = :cwd", cwd=cwd)

    def update_session_meta(
        self, session_id: str, model_config_json: dict[str, Any] | str | None, model: str | None = None
    ) -> bool:
        """Replace a session's model configuration, and its model if one is given.

        A marker `_delegate_from` in it makes a delegate of a session that has no kind yet.
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
        """Keep the system prompt that a session runs with."""
        optional_text(system_prompt, "system_prompt")
        return self._change(session_id, "system_prompt = :prompt", prompt=system_prompt)

    def update_session_model(self, session_id: str, model: str | None) -> bool:
        """Note that a session goes on with another model."""
        optional_text(model, "model")
        return self._change(session_id, "model = :model", model=model)

    def set_session_archived(self, session_id: str, archived: bool = True) -> bool:
        """Hide a conversation from lists, or show it again; its whole compression chain goes with it."""
        return self._change_chain(session_id, "archived", bool(archived))

    def set_session_pinned(self, session_id: str, pinned: bool = True) -> bool:
        """Keep a conversation from ever being pruned, or allow it again; its whole compression chain goes with it."""
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
    """The values of a session to be inserted, whose owner is one that the store's asker can give it.

    In a view of an owner's sessions that is the owner, whatever the user id says, and never with a terminal's source.
    """
    named = store._asker_for(owner)
    if isinstance(store._asker, Owner) and store._asker != TERMINAL and is_terminal_source(source):
        raise InvalidValue(f"{source!r} is a source of the terminal", hint="name the platform that the session is from")
    if isinstance(owner, str):
        return new_session(session_id, source, started_at, owner=owner, **fields)
    values = new_session(session_id, source, started_at, **fields)
    return {**values, "owner": named.stored} if isinstance(named, Owner) else values


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
    """The values of a session to be inserted, checked."""
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
    """Insert a session that is not there yet, linked to its parent, which is the asker's, and its compression chain."""
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
    """The hundredth of a second that activity is indexed by; it is the same for a burst of messages."""
    return int(max(-TICK_LIMIT, min(TICK_LIMIT, moment * 100)))


def set_chain_activity(tx: Transaction, root: str | None, moment: float) -> None:
    """Note when the compression chain that begins with a session was last active."""
    tx.run(
        "UPDATE sessions SET chain_active = :moment, active_tick = :tick WHERE id = :root",
        root=root,
        moment=moment,
        tick=activity_tick(moment),
    )


def recompute_chain_activity(tx: Transaction, session_id: str, asker: Asker) -> None:
    """Work out when a compression chain was last active, after something was taken out of it."""
    root = chain_root(tx, session_id, asker)
    if root is not None and root != session_id and not may_see(tx, root, asker):
        root = session_id  # the first session is not the asker's to change
    # Whoever adds to the chain meanwhile waits here, and then sees what this comes to.
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
    """Let the first session of a compression chain know of activity further down, if it is the asker's."""
    known = tx.value(
        f"SELECT chain_active FROM sessions WHERE id = :root {owner_condition(asker)} {tx.dialect.for_update}",
        root=root,
        whose=asker.stored,
    )
    if known is not None and known < moment:
        set_chain_activity(tx, root, moment)


def session_exists(tx: Reading, session_id: str) -> bool:
    """Whether there is such a session."""
    return tx.value("SELECT 1 FROM sessions WHERE id = :id", id=session_id) is not None


def is_taken(tx: Reading, session_id: str, asker: Asker) -> bool:
    """Whether the asker has a session of this id already; raises `Conflict` if it is another owner's."""
    row = tx.row("SELECT owner FROM sessions WHERE id = :id", id=session_id)
    if row is not None and not can_see_owner(asker, row[0]):
        raise Conflict(f"the id {session_id!r} is already taken", hint="make another one with new_session_id()")
    return row is not None


def chain_root(tx: Reading, session_id: str, asker: Asker) -> str | None:
    """The first session of a session's compression chain, itself if it is in none, None if the asker has none such."""
    row = tx.row(
        f"SELECT COALESCE(chain_root, id) FROM sessions WHERE id = :id {owner_condition(asker)}",
        id=session_id,
        whose=asker.stored,
    )
    return None if row is None else row[0]


def _update(tx: Transaction, session_id: str, asker: Asker, assignments: str, **values: Any) -> bool:
    """Change columns of a session; whether the asker has such a session."""
    if not has_session(tx, session_id, asker):
        return False
    tx.run(f"UPDATE sessions SET {assignments} WHERE id = :id", id=session_id, **values)
    return True


def _encode_config(config: dict[str, Any] | str | None) -> str | None:
    if config is None or isinstance(config, str):
        return config or None
    return encode_json(config) if config else None
