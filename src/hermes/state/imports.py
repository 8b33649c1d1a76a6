"""Import: sessions that were exported, or that lie in another database file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from hermes.errors import InvalidValue
from hermes.ids import new_session_id
from hermes.state.drafts import JSON_FIELDS, MESSAGE_FIELDS, Draft, draft
from hermes.state.engine import Transaction
from hermes.state.kinds import ChildKind, is_listed, kind_from_markers, kind_from_parent, parse_kind
from hermes.state.messages import add_messages
from hermes.state.operations import Operations
from hermes.state.rows import (
    Row,
    encode_json,
    flag,
    identifier,
    optional_identifier,
    optional_integer,
    optional_number,
    optional_text,
    timestamp_of,
)
from hermes.state.sessions import insert_session, new_session, session_exists, set_chain_active, touch_chain
from hermes.state.titles import next_title
from hermes.state.titling import sanitize
from hermes.state.usage import COSTS, COUNTERS

OnConflict = Literal["skip", "rename", "merge"]

CARRIED: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("ended_at", *COSTS), optional_number),
    **dict.fromkeys(("archived", "pinned"), flag),
    **dict.fromkeys(("rewind_count", *COUNTERS), optional_integer),
    **dict.fromkeys(
        (
            "end_reason",
            "billing_provider",
            "billing_base_url",
            "billing_mode",
            "cost_status",
            "cost_source",
            "pricing_version",
        ),
        optional_text,
    ),
}
"""What an import takes over beyond what a fresh session has, and how each is checked."""


class Import(Operations):
    """Operations that bring sessions in."""

    def import_session(self, data: Mapping[str, Any], on_conflict: OnConflict = "skip") -> str:
        """Bring in an exported session and answer its id here.

        If there is one of that id: `skip` leaves it alone, `rename` takes the import under a new id, `merge` adds the
        messages it lacks. Importing twice never doubles a message, and parents may come after their children.
        """
        return self._import(data, on_conflict)[0]

    def import_database(self, path: str | Path) -> dict[str, int]:
        """Bring in every session and message of another database file, of any version; the file is only read.

        Answers `sessions` and `messages` that were new here and `sessions_seen`. A second run finds nothing new.
        """
        from hermes.state.sqlite.provider import SQLiteSessionDBProvider

        counts = {"sessions": 0, "messages": 0, "sessions_seen": 0}
        with SQLiteSessionDBProvider(path, read_only=True) as other:
            for data in other.iter_export(include_inactive=True):
                _, is_new, added = self._import(data, "merge")
                counts["sessions_seen"] += 1
                counts["sessions"] += is_new
                counts["messages"] += added
        return counts

    def _import(self, data: Mapping[str, Any], on_conflict: str) -> tuple[str, bool, int]:
        """Import one session; answers its id, whether it is new here and how many messages were added."""
        if on_conflict not in ("skip", "rename", "merge"):
            raise InvalidValue(f"on_conflict must be skip, rename or merge, not {on_conflict!r}")
        if not isinstance(data, Mapping):
            raise InvalidValue(f"an exported session is a dict, not {type(data).__name__}")
        now = self._clock()
        session = _session_values(data, now)
        messages = _messages(data, now)
        carried = {name: check(data[name], name) for name, check in CARRIED.items() if data.get(name) is not None}
        title = sanitize(data.get("title"))
        # An export of ours says of what kind a child is, even if of none; others leave it to be worked out.
        kind = session["child_kind"] or ("" if "child_kind" in data else None)
        parent_id = optional_identifier(data.get("parent_session_id") or None, "parent_session_id")

        def bring_in(tx: Transaction) -> tuple[str, bool, int]:
            session_id: str = session["id"]
            if session_exists(tx, session_id):
                if on_conflict == "skip":
                    return session_id, False, 0
                if on_conflict == "merge":
                    return session_id, False, _add(tx, session_id, messages)
                session_id = new_session_id(session["started_at"])
            insert_session(tx, {**session, "id": session_id, "parent_session_id": None})
            _carry(tx, session_id, carried, title, now)
            added = _add(tx, session_id, messages)
            if parent_id is not None:
                _link_when_possible(tx, session_id, parent_id, kind)
            if session_id == session["id"]:
                _link_waiting(tx, session_id)
            return session_id, True, added

        return self._engine.write(bring_in)


def link_to_parent(tx: Transaction, child_id: str, parent_id: str, kind: str | None) -> None:
    """Make a session the child of another, in its compression chain if it continues it; kind None: to be worked out."""
    parent = tx.row("SELECT end_reason, chain_root FROM sessions WHERE id = :id", id=parent_id)
    child = tx.row("SELECT model_config, chain_active, last_active FROM sessions WHERE id = :id", id=child_id)
    if parent is None or child is None or _descends_from(tx, parent_id, child_id):
        return
    if kind is None:
        kind = kind_from_markers(child[0]) or kind_from_parent(parent[0])
    kind = kind or None
    root = (parent[1] or parent_id) if kind == ChildKind.COMPRESSION else None
    tx.run(
        """UPDATE sessions SET parent_session_id = :parent, child_kind = :kind, chain_root = :root, listed = :listed
           WHERE id = :id""",
        id=child_id,
        parent=parent_id,
        kind=kind,
        root=root,
        listed=int(is_listed(parent_id, kind)),
    )
    if root is not None:
        tx.run("UPDATE sessions SET chain_root = :root WHERE chain_root = :id", root=root, id=child_id)
        set_chain_active(tx, child_id, child[2])
        touch_chain(tx, root, child[1])


def _descends_from(tx: Transaction, session_id: str, ancestor_id: str) -> bool:
    """Whether a session is another, or stems from it: a family in which one is its own parent cannot be linked."""
    current: str | None = session_id
    seen: set[str] = set()
    while current is not None and current not in seen:
        if current == ancestor_id:
            return True
        seen.add(current)
        current = tx.value("SELECT parent_session_id FROM sessions WHERE id = :id", id=current)
    return False


def _link_when_possible(tx: Transaction, child_id: str, parent_id: str, kind: str | None) -> None:
    """Link a session to its parent now, or when that is imported."""
    if session_exists(tx, parent_id):
        link_to_parent(tx, child_id, parent_id, kind)
        return
    tx.run(
        """INSERT INTO pending_links (session_id, parent_session_id, child_kind)
           VALUES (:child, :parent, :kind)""",
        child=child_id,
        parent=parent_id,
        kind=kind,
    )


def _link_waiting(tx: Transaction, parent_id: str) -> None:
    """Link the sessions that were imported before this one, their parent."""
    waiting = tx.rows("SELECT session_id, child_kind FROM pending_links WHERE parent_session_id = :id", id=parent_id)
    for child_id, kind in waiting:
        link_to_parent(tx, child_id, parent_id, kind)
    if waiting:
        tx.run("DELETE FROM pending_links WHERE parent_session_id = :id", id=parent_id)


def _session_values(data: Mapping[str, Any], now: float) -> Row:
    fields = ("model", "model_config", "system_prompt", "user_id", "cwd", "owner")
    values = new_session(
        identifier(data.get("id"), "id"),
        data.get("source") or "unknown",
        timestamp_of(data.get("started_at"), now),
        **{name: data.get(name) for name in fields},
    )
    return {**values, "child_kind": parse_kind(data.get("child_kind")) or values["child_kind"]}


def _messages(data: Mapping[str, Any], now: float) -> list[Draft]:
    given = data.get("messages") or []
    if not isinstance(given, list):
        raise InvalidValue("the messages of an exported session are a list")
    messages = []
    for position, message in enumerate(given):
        if not isinstance(message, Mapping):
            raise InvalidValue(f"message {position} of session {data.get('id')!r} is not a dict")
        fields = {name: value for name, value in message.items() if name in MESSAGE_FIELDS}
        for name in JSON_FIELDS:
            # Exports show some of these as the JSON text they are stored as.
            if isinstance(fields.get(name), str):
                fields[name] = _parsed(fields[name])
        fields["uid"] = message.get("uid") or _uid_of(data["id"], position, message)
        messages.append(draft(fields, now, active=bool(message.get("active", 1))))
    return messages


def _uid_of(session_id: str, position: int, message: Mapping[str, Any]) -> str:
    """A uid for a message that has none: the same one whenever the same export is read."""
    from hashlib import sha256

    said = encode_json([session_id, position, message.get("role"), message.get("content")])
    return f"import-{sha256(said.encode()).hexdigest()[:16]}"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _add(tx: Transaction, session_id: str, messages: list[Draft]) -> int:
    before = tx.value("SELECT count(*) FROM messages WHERE session_id = :id", id=session_id)
    add_messages(tx, session_id, messages)
    after = tx.value("SELECT count(*) FROM messages WHERE session_id = :id", id=session_id)
    return int(after - before)


def _carry(tx: Transaction, session_id: str, carried: Row, title: str | None, now: float) -> None:
    """Take over what a fresh session does not have: its end, marks, counters, and its title if that is free."""
    if title is not None and tx.value("SELECT 1 FROM sessions WHERE title = :title", title=title) is not None:
        title = next_title(tx, title)
    values = {**carried, "title": title}
    tx.run(
        f"UPDATE sessions SET {', '.join(f'{name} = :{name}' for name in values)} WHERE id = :id",
        id=session_id,
        **values,
    )
    columns = [name for name in (*COUNTERS, *COSTS) if carried.get(name)]
    if columns:
        tx.run(
            f"""INSERT INTO usage_events (session_id, at, kind, model, billing_provider, {", ".join(columns)})
                SELECT id, :now, 'opening', model, billing_provider, {", ".join(f":{name}" for name in columns)}
                FROM sessions WHERE id = :id""",
            id=session_id,
            now=now,
            **{name: carried[name] for name in columns},
        )
