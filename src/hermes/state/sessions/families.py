"""Relatives: whole lineages, for many sessions at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hermes.state.engine import Reading
from hermes.state.operations import Operations, chunks, owner_condition, placeholders, read_for
from hermes.state.owner import Asker, OwnerName
from hermes.state.rows import Row, session_row
from hermes.state.sessions.kinds import first_of_chain

_COLUMNS = "id, parent_session_id, source, model, title, started_at"


@dataclass(frozen=True, slots=True)
class Family:
    """The sessions that share their first one, as far as the asker may see them."""

    root: Row
    """id, source, model, title and started_at of the first."""
    members: dict[str, str]
    """The source of each session, the first included."""


def load_families(store: Operations, session_ids: Sequence[str], owner: OwnerName = None) -> dict[str, Family]:
    """The lineage of each session, over links of every kind; a session that is not there has none."""
    return read_for(store, owner, lambda tx, asker: _families(tx, list(dict.fromkeys(session_ids)), asker))


def session_of_message(store: Operations, message_id: int, owner: OwnerName = None) -> str | None:
    """The session that a message is in, if the asker may see it."""

    def find(tx: Reading, asker: Asker) -> str | None:
        found = tx.value(
            f"""SELECT m.session_id FROM messages m JOIN sessions s ON s.id = m.session_id
                WHERE m.id = :id {owner_condition(asker, "s.owner")}""",
            id=message_id,
            whose=asker.stored,
        )
        return None if found is None else str(found)

    return read_for(store, owner, find)


def _families(tx: Reading, session_ids: Sequence[str], asker: Asker) -> dict[str, Family]:
    known = _ancestors(tx, session_ids, asker)
    # A parent that the asker may not see is none.
    parents = {child: row["parent_session_id"] for child, row in known.items() if row["parent_session_id"] in known}
    roots = {each: first_of_chain(parents, each) for each in session_ids if each in known}
    members = _descendants(tx, list(dict.fromkeys(roots.values())), asker)
    return {each: Family(known[root], members[root]) for each, root in roots.items()}


def _ancestors(tx: Reading, session_ids: Sequence[str], asker: Asker) -> dict[str, Row]:
    """The sessions and all above them, by id."""
    found: dict[str, Row] = {}
    scope = owner_condition(asker, "s.owner")
    for some in chunks(session_ids):
        listed, values = placeholders("id", some)
        columns, rows = tx.table(
            f"""WITH RECURSIVE line ({_COLUMNS}) AS (
                    SELECT {_COLUMNS} FROM sessions s WHERE s.id IN ({listed}) {scope}
                    UNION
                    SELECT s.id, s.parent_session_id, s.source, s.model, s.title, s.started_at
                    FROM line JOIN sessions s ON s.id = line.parent_session_id {scope})
                SELECT {_COLUMNS} FROM line""",
            whose=asker.stored,
            **values,
        )
        found.update((row["id"], row) for row in (session_row(columns, each) for each in rows))
    return found


def _descendants(tx: Reading, roots: Sequence[str], asker: Asker) -> dict[str, dict[str, str]]:
    """The sessions of each lineage with their sources, by its first."""
    found: dict[str, dict[str, str]] = {root: {} for root in roots}
    scope = owner_condition(asker, "s.owner")
    for some in chunks(roots):
        listed, values = placeholders("root", some)
        for root, member, source in tx.rows(
            f"""WITH RECURSIVE line (root, id, source) AS (
                    SELECT id, id, source FROM sessions WHERE id IN ({listed})
                    UNION
                    SELECT line.root, s.id, s.source
                    FROM line JOIN sessions s ON s.parent_session_id = line.id {scope})
                SELECT root, id, source FROM line""",
            whose=asker.stored,
            **values,
        ):
            found[root][member] = source
    return found
