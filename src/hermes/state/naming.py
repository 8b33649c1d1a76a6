"""Which session a person means: by its id, its title, the beginning of its id, or something close."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from hermes.errors import AmbiguousSession, InvalidValue, UnknownSession
from hermes.state import titling
from hermes.state.engine import Reading
from hermes.state.operations import read
from hermes.state.provider import SessionDBProvider

SHORTEST_PREFIX = 4
"""A shorter beginning of an id is more likely a slip than a name."""
CANDIDATES = 5


def find_session(store: SessionDBProvider, given: str, owner: str | None = None) -> str:
    """The id of the session that is meant; raises an error that lists what may have been meant.

    An exact id comes first, then a title with its newest number, then the only id that begins so, then a title in
    other capitals. A conversation that was compressed is found by each of its sessions; which of them to go on with is
    for `get_compression_tip` to say.
    """
    text = given.strip()
    if not text:
        raise InvalidValue("no session was named", hint="name one by its id or its title")
    if store.get_session(text, owner) is not None:
        return text
    found = store.resolve_session_by_title(text, owner)
    if found is None and (title := _sanitized(text)) is not None and title != text:
        found = store.resolve_session_by_title(title, owner)
    if found is not None:
        return found
    beginning = read(store, lambda tx: _ids_beginning(tx, text, owner)) if len(text) >= SHORTEST_PREFIX else []
    if len(beginning) == 1:
        return beginning[0]
    titles = read(store, lambda tx: _titles(tx, owner))
    alike = _alike(text, titles)
    if not beginning and len(alike) == 1:
        return store.resolve_session_by_title(alike[0], owner) or text
    if beginning or alike:
        raise AmbiguousSession(
            f"several sessions can be meant by {text!r}", hint=f"name one of {_listed([*beginning, *alike])}"
        )
    near = _near(text, titles)
    raise UnknownSession(f"there is no session {text!r}", hint=f"did you mean {_listed(near)}?" if near else None)


def _sanitized(text: str) -> str | None:
    try:
        return titling.sanitize(text)
    except InvalidValue:
        return None


def _ids_beginning(tx: Reading, text: str, owner: str | None) -> list[str]:
    scope = "" if owner is None else "AND owner = :owner"
    rows = tx.rows(
        f"SELECT id FROM sessions WHERE {tx.dialect.starts_with('id', 'text')} {scope} ORDER BY id DESC LIMIT :limit",
        text=text,
        owner=owner,
        limit=CANDIDATES + 1,
    )
    return [row[0] for row in rows]


def _titles(tx: Reading, owner: str | None) -> list[str]:
    scope = "" if owner is None else "AND owner = :owner"
    return [row[0] for row in tx.rows(f"SELECT title FROM sessions WHERE title IS NOT NULL {scope}", owner=owner)]


def _alike(text: str, titles: Sequence[str]) -> list[str]:
    """The titles that differ from a text only in capitals; of a numbered one, what comes before the number will do."""
    folded = text.casefold()
    exact = sorted(title for title in titles if title.casefold() == folded)
    bases = {titling.split_number(title)[0] for title in titles}
    return exact or sorted(base for base in bases if base.casefold() == folded)


def _near(text: str, titles: Sequence[str]) -> list[str]:
    """Titles that are spelled like a text, or that contain it."""
    folded = {title.casefold(): title for title in titles}
    spelled = get_close_matches(text.casefold(), folded, n=CANDIDATES)
    within = sorted((name for name in folded if text.casefold() in name), key=len)
    return [folded[name] for name in dict.fromkeys([*spelled, *within])][:CANDIDATES]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:CANDIDATES])
    return f"{shown}, ..." if len(names) > CANDIDATES else shown
