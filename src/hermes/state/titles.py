"""Titles: set, looked up, numbered."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes.errors import TitleTaken
from hermes.state import titling
from hermes.state.engine import Reading, Transaction
from hermes.state.imported import is_foreign
from hermes.state.operations import Operations, fetch_session
from hermes.state.rows import identifier, session_row

if TYPE_CHECKING:
    from hermes.state.rowtypes import SessionRow


class Titles(Operations):
    """Operations on the names that people give to sessions."""

    sanitize_title = staticmethod(titling.sanitize)
    MAX_TITLE_LENGTH = titling.MAX_TITLE_LENGTH

    def set_session_title(self, session_id: str, title: str | None) -> bool:
        """Name a session, or take its name away with an empty one; False if there is no such session."""
        cleaned = titling.sanitize(title)

        def name(tx: Transaction) -> bool:
            session = tx.row(f"SELECT owner FROM sessions WHERE id = :id {tx.dialect.for_update}", id=session_id)
            if session is None:
                return False
            if cleaned is not None:
                _refuse_taken(tx, session_id, cleaned, asker=session[0])
            tx.run("UPDATE sessions SET title = :title WHERE id = :id", title=cleaned, id=session_id)
            return True

        return self._engine.write(name)

    def set_title_if_untitled(self, session_id: str, title: str) -> str | None:
        """Name a session that has no name, with ` (2)` if another has the title; returns the title, or None."""
        cleaned = titling.sanitize(title)

        def name(tx: Transaction) -> str | None:
            session = tx.row(f"SELECT title FROM sessions WHERE id = :id {tx.dialect.for_update}", id=session_id)
            if session is None or session[0] is not None or cleaned is None:
                return None
            given = free_title(tx, cleaned)
            tx.run("UPDATE sessions SET title = :title WHERE id = :id", title=given, id=session_id)
            return given

        return self._engine.write(name)

    def get_session_title(self, session_id: str, owner: str | None = None) -> str | None:
        """A session's title, or None."""
        row = self._engine.read(
            lambda tx: tx.table(
                f"SELECT title FROM sessions WHERE id = :id {_scope(owner)}", id=session_id, owner=owner
            )
        )
        return session_row(row[0], row[1][0])["title"] if row[1] else None

    def get_session_by_title(self, title: str, owner: str | None = None) -> SessionRow | None:
        """The session with exactly this title, or None."""
        columns, rows = self._engine.read(
            lambda tx: tx.table(
                f"SELECT * FROM sessions WHERE title = :title {_scope(owner)}", title=title, owner=owner
            )
        )
        return cast("SessionRow", session_row(columns, rows[0])) if rows else None

    def resolve_session_by_title(self, title: str, owner: str | None = None) -> str | None:
        """The newest session of a title's lineage: the one with the highest number, else the title itself.

        A session that was only imported counts where the lineage has no other: a file can give itself any number.
        """

        def resolve(tx: Reading) -> str | None:
            variants = {
                name: session_id for name, session_id in _lineage(tx, title, owner) if titling.is_variant(title, name)
            }
            newest_first = sorted(
                variants, key=lambda name: titling.split_number(name)[1] if name != title else 0, reverse=True
            )
            for name in newest_first:
                session = fetch_session(tx, variants[name])
                if session is not None and not is_foreign(session):
                    return variants[name]
            return variants[newest_first[0]] if newest_first else None

        return self._engine.read(resolve)

    def get_next_title_in_lineage(self, base_title: str) -> str:
        """The title for a session that goes on where `base_title` left off: `base #2`, `base #3`, ..."""
        identifier(base_title, "base_title")
        return self._engine.read(lambda tx: next_title(tx, base_title))


def free_title(tx: Reading, title: str) -> str:
    """The title if no session has it, else the first free `title (2)`, `title (3)`, which joins no lineage."""

    def is_taken(name: str) -> bool:
        return tx.value("SELECT 1 FROM sessions WHERE title = :title", title=name) is not None

    if not is_taken(title):
        return title
    # Thousands of sessions may share a title, so the number is not counted up: it is doubled, then halved in.
    taken, free = 1, 2
    while is_taken(titling.told_apart(title, free)):
        taken, free = free, 2 * free
    while free - taken > 1:
        middle = (taken + free) // 2
        taken, free = (middle, free) if is_taken(titling.told_apart(title, middle)) else (taken, middle)
    return titling.told_apart(title, free)


def next_title(tx: Reading, base_title: str) -> str:
    """The first free title of a lineage."""
    base = titling.split_number(base_title)[0]
    number = titling.next_number(base, [name for name, _ in _lineage(tx, base, None)])
    if number is None:
        return base
    # Where the base had to be shortened for the number, another lineage may have taken the result.
    while tx.value("SELECT 1 FROM sessions WHERE title = :title", title=titling.numbered(base, number)) is not None:
        number += 1
    return titling.numbered(base, number)


def _lineage(tx: Reading, base: str, owner: str | None) -> list[tuple[str, str]]:
    """The titles that are the base or may be the base with a number, with their sessions."""
    return [
        (title, session_id)
        for title, session_id in tx.rows(
            f"""SELECT title, id FROM sessions
                WHERE (title = :base OR {tx.dialect.starts_with("title", "stem")}) {_scope(owner)}""",
            base=base,
            stem=f"{base} #",
            owner=owner,
        )
    ]


def _refuse_taken(tx: Reading, session_id: str, title: str, asker: str | None) -> None:
    holder = tx.row("SELECT id, owner FROM sessions WHERE title = :title AND id <> :id", title=title, id=session_id)
    if holder is None:
        return
    # Titles are unique for everybody, but whose session has one is told only to its owner and to the terminal.
    where = f" by session {holder[0]}" if asker is None or asker == holder[1] else ""
    raise TitleTaken(f"the title {title!r} is already in use{where}")


def _scope(owner: str | None) -> str:
    return "" if owner is None else "AND owner = :owner"
