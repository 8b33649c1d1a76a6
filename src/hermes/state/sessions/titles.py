"""Set, look up and number titles."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from hermes.errors import TitleTaken
from hermes.state.engine import Reading, Transaction
from hermes.state.operations import Operations, fetch_session, hide_foreign_links, owner_condition
from hermes.state.owner import Asker, OwnerName, owner_from_column
from hermes.state.rows import require_identifier, session_row
from hermes.state.sessions import title_rules
from hermes.state.sessions.imported import is_foreign

if TYPE_CHECKING:
    from hermes.state.row_types import SessionRow


class Titles(Operations):
    """Operations on the titles of sessions."""

    sanitize_title = staticmethod(title_rules.sanitize)
    MAX_TITLE_LENGTH = title_rules.MAX_TITLE_LENGTH

    def set_session_title(self, session_id: str, title: str | None) -> bool:
        """Set a session's title, or remove it with an empty one; return False if there is no such session."""
        cleaned = title_rules.sanitize(title)

        def name(tx: Transaction) -> bool:
            session = _lock_title(tx, session_id, self._asker)
            if session is None:
                return False
            if cleaned is not None:
                _refuse_taken(tx, session_id, cleaned, session[1])
            tx.run("UPDATE sessions SET title = :title WHERE id = :id", title=cleaned, id=session_id)
            return True

        return self._engine.write(name)

    def set_title_if_untitled(self, session_id: str, title: str) -> str | None:
        """Set the title of an untitled session, with ` (2)` if another has it; return the title, or None."""
        cleaned = title_rules.sanitize(title)

        def name(tx: Transaction) -> str | None:
            session = _lock_title(tx, session_id, self._asker)
            if session is None or session[0] is not None or cleaned is None:
                return None
            chosen = free_title(tx, cleaned, session[1])
            tx.run("UPDATE sessions SET title = :title WHERE id = :id", title=chosen, id=session_id)
            return chosen

        return self._engine.write(name)

    def get_session_title(self, session_id: str, owner: OwnerName = None) -> str | None:
        """Return a session's title, or None."""
        asker = self._asker_for(owner)
        row = self._engine.read(
            lambda tx: tx.table(
                f"SELECT title FROM sessions WHERE id = :id {owner_condition(asker)}", id=session_id, whose=asker.stored
            )
        )
        return session_row(row[0], row[1][0])["title"] if row[1] else None

    def get_session_by_title(self, title: str, owner: OwnerName = None) -> SessionRow | None:
        """Return the session with exactly this title, or None; the terminal's comes before those of other owners."""
        asker = self._asker_for(owner)

        def get(tx: Reading) -> SessionRow | None:
            columns, rows = tx.table(
                f"""SELECT * FROM sessions WHERE title = :title {owner_condition(asker)}
                    ORDER BY COALESCE(owner, '') LIMIT 1""",
                title=title,
                whose=asker.stored,
            )
            found = hide_foreign_links(tx, [session_row(columns, rows[0])], asker) if rows else [None]
            return cast("SessionRow | None", found[0])

        return self._engine.read(get)

    def resolve_session_by_title(self, title: str, owner: OwnerName = None) -> str | None:
        """Return the newest session of a title's lineage: the one with the highest number, else the title itself.

        A lineage belongs to one owner. Of several owners' lineages it is the terminal's, else the one started last. An
        imported session counts only if the lineage has no other: a file can choose any number.
        """
        asker = self._asker_for(owner)

        def resolve(tx: Reading) -> str | None:
            variants = [each for each in _lineage(tx, title, asker) if title_rules.is_variant(title, each.title)]
            if not variants:
                return None
            chosen = max(variants, key=lambda each: (each.owner is None, each.started_at, each.session_id)).owner
            own = [each for each in variants if each.owner == chosen]
            own.sort(
                key=lambda each: title_rules.split_number(each.title)[1] if each.title != title else 0, reverse=True
            )
            for each in own:
                session = fetch_session(tx, each.session_id, asker)
                if session is not None and not is_foreign(session):
                    return each.session_id
            return own[0].session_id

        return self._engine.read(resolve)

    def get_next_title_in_lineage(self, base_title: str, owner: OwnerName = None) -> str:
        """Return the next title of a lineage: `base #2`, `base #3`, ..."""
        require_identifier(base_title, "base_title")
        asker = self._asker_for(owner)
        return self._engine.read(lambda tx: _next_title(tx, base_title, asker))


class _Variant(NamedTuple):
    """A session whose title may belong to a lineage."""

    title: str
    session_id: str
    owner: str | None
    started_at: float


def free_title(tx: Reading, title: str, owner: str | None) -> str:
    """Return the title if no session of the owner (the column) has it, else the first free `title (2)`, `title (3)`.

    Such a title joins no lineage.
    """
    asker = owner_from_column(owner)
    if not _is_taken(tx, title, asker):
        return title
    # Thousands of sessions may share a title, so this searches by doubling and halving instead of counting.
    taken, free = 1, 2
    while _is_taken(tx, title_rules.add_suffix(title, free), asker):
        taken, free = free, 2 * free
    while free - taken > 1:
        middle = (taken + free) // 2
        is_taken = _is_taken(tx, title_rules.add_suffix(title, middle), asker)
        taken, free = (middle, free) if is_taken else (taken, middle)
    return title_rules.add_suffix(title, free)


def next_title(tx: Reading, base_title: str, owner: str | None) -> str:
    """Return the first free title of an owner's lineage."""
    return _next_title(tx, base_title, owner_from_column(owner))


def _next_title(tx: Reading, base_title: str, asker: Asker) -> str:
    base = title_rules.split_number(base_title)[0]
    number = title_rules.next_number(base, [each.title for each in _lineage(tx, base, asker)])
    if number is None:
        return base
    # If the base is shortened for the number, another lineage may have the result.
    while _is_taken(tx, title_rules.add_number(base, number), asker):
        number += 1
    return title_rules.add_number(base, number)


def _is_taken(tx: Reading, title: str, asker: Asker) -> bool:
    found = tx.value(
        f"SELECT 1 FROM sessions WHERE title = :title {owner_condition(asker)}", title=title, whose=asker.stored
    )
    return found is not None


def _lineage(tx: Reading, base: str, asker: Asker) -> list[_Variant]:
    """Return the sessions whose titles are the base, or may be the base with a number."""
    rows = tx.rows(
        f"""SELECT title, id, owner, started_at FROM sessions
            WHERE (title = :base OR {tx.dialect.starts_with("title", "stem")}) {owner_condition(asker)}""",
        base=base,
        stem=f"{base} #",
        whose=asker.stored,
    )
    return [_Variant(*row) for row in rows]


def _lock_title(tx: Transaction, session_id: str, asker: Asker) -> tuple[str | None, str | None] | None:
    """Lock a session and return its title and owner, or None if the asker has no such session."""
    row = tx.row(
        f"SELECT title, owner FROM sessions WHERE id = :id {owner_condition(asker)} {tx.dialect.for_update}",
        id=session_id,
        whose=asker.stored,
    )
    return None if row is None else (row[0], row[1])


def _refuse_taken(tx: Reading, session_id: str, title: str, owner: str | None) -> None:
    """Raise `TitleTaken` if another session of the same owner has the title; other owners' titles do not count."""
    asker = owner_from_column(owner)
    holder = tx.value(
        f"SELECT id FROM sessions WHERE title = :title AND id <> :id {owner_condition(asker)}",
        title=title,
        id=session_id,
        whose=asker.stored,
    )
    if holder is not None:
        raise TitleTaken(f"the title {title!r} is already in use by session {holder}")
