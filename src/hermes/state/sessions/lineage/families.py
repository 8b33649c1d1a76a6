"""Families: whole lineages, for many sessions at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from hermes.state.engine import Reading
from hermes.state.operations import Operations, owner_condition, read_for
from hermes.state.owner import Asker, OwnerName
from hermes.state.rows import Row
from hermes.state.sessions.lineage.kinds import descent, first_of_chain
from hermes.state.sessions.lineage.links import ancestors, descendants


@dataclass(frozen=True, slots=True)
class Family:
    """The sessions that share their first one, as far as the asker may see them."""

    root: Row
    """id, source, model, title and started_at of the first."""
    members: dict[str, str]
    """The source of each session, the first included."""


def load_families(store: Operations, session_ids: Sequence[str], owner: OwnerName = None) -> dict[str, Family]:
    """Return the lineage of each session, over links of every kind; a session that does not exist has none."""
    return read_for(store, owner, lambda tx, asker: _families(tx, list(dict.fromkeys(session_ids)), asker))


def session_of_message(store: Operations, message_id: int, owner: OwnerName = None) -> str | None:
    """Return the session that a message is in, if the asker may see it."""

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
    above = ancestors(tx, session_ids, asker)
    # A parent that the asker may not see counts as none.
    parents = {each.id: each.parent_id for each in above.values() if each.parent_id in above and each.parent_id}
    roots = {each: first_of_chain(parents, each) for each in session_ids if each in above}
    below = descendants(tx, list(dict.fromkeys(roots.values())), asker)
    children: dict[str, list[str]] = defaultdict(list)
    for each in below.values():
        if each.parent_id is not None:
            children[each.parent_id].append(each.id)
    families = {}
    for root in dict.fromkeys(roots.values()):
        first = above[root]
        head = {name: getattr(first, name) for name in ("id", "source", "model", "title", "started_at")}
        families[root] = Family(head, {each: below[each].source for each in descent(root, children)})
    return {each: families[root] for each, root in roots.items()}
