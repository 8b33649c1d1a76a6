"""Lookup of a session by what a person typed: its id, its title, or the beginning of its id.

An exact title wins in every command. Only resuming follows the numbers of a lineage (`plan` leads to `plan #3`), and
nothing that changes a session accepts a title in other capitals.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from difflib import get_close_matches
from enum import Enum, auto
from typing import NamedTuple

from hermes.errors import AmbiguousSession, InvalidValue, UnknownSession
from hermes.state.engine import Reading
from hermes.state.operations import fetch_session, owner_condition, read_for
from hermes.state.owner import Asker, OwnerName
from hermes.state.sessions import title_rules
from hermes.state.sessions.imported import is_foreign
from hermes.state.sessions.titles import Titles

SHORTEST_PREFIX = 4
"""A shorter beginning of an id is more likely a slip than a name."""
CANDIDATES = 5


class Purpose(Enum):
    """What a session is looked up for, which decides how a name is read."""

    RESUME = auto()
    """To go on with it: a title means the newest number of its lineage."""
    READ = auto()
    """To look at it: a title means itself, in any capitals if that is unambiguous."""
    CHANGE = auto()
    """To delete, rename or mark it: a title means itself, letter by letter."""


class Candidate(NamedTuple):
    """A session that may have been meant."""

    id: str
    title: str | None
    last_active: float
    owner: str | None

    @property
    def line(self) -> str:
        """The session on one line: its id, the time of its last message, and its title."""
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.last_active))
        return f"{self.id}  {when}  {self.title or '(no title)'}"


def find_session(store: Titles, given: str, purpose: Purpose, owner: OwnerName = None) -> str:
    """Return the id of the session that is meant, or raise an error that lists the sessions that may be meant.

    The order is: the exact id, the exact title (when resuming, the newest number of its lineage), the only id that
    begins so, and, unless the session is going to be changed, a title in other capitals. A change is refused where the
    name is the id of one session and the title of another. The terminal's own titles come before those of others, and
    a title of the user's own comes before the id of a session that was only imported: a file can choose its ids.
    """
    text = given.strip()
    if not text:
        raise InvalidValue("no session was named", hint="name one by its id or its title")
    by_id, titled = read_for(
        store, owner, lambda tx, asker: (_sessions(tx, "id = :text", asker, text=text), _titled(tx, text, asker))
    )
    if by_id and purpose is Purpose.CHANGE and any(each.id != text for each in titled):
        raise AmbiguousSession(
            f"{text!r} is the id of one session and the title of another",
            hint=_listed([*by_id, *titled], "name the second by its own id and give it another title first:"),
        )
    if by_id and (purpose is Purpose.CHANGE or not _is_title_of_own(store, text, purpose, by_id[0].id, titled, owner)):
        return by_id[0].id
    if purpose is Purpose.RESUME and (newest := _newest_of_lineage(store, text, owner)) is not None:
        return newest
    if titled:
        return _only(text, [each for each in titled if each.owner is None] or titled)
    beginning = []
    if len(text) >= SHORTEST_PREFIX:
        beginning = read_for(store, owner, lambda tx, asker: _ids_beginning(tx, text, asker))
    if beginning:
        return _only(text, beginning)
    return _by_other_capitals(store, text, purpose, owner)


def _is_title_of_own(
    store: Titles, text: str, purpose: Purpose, found_id: str, titled: Sequence[Candidate], owner: OwnerName
) -> bool:
    """Whether a name, the id of an imported session, is the title of one that was made or continued here."""
    named = {each.id for each in titled}
    if purpose is Purpose.RESUME and (newest := _newest_of_lineage(store, text, owner)) is not None:
        named.add(newest)
    if not named - {found_id}:
        return False

    def is_own_title(tx: Reading, asker: Asker) -> bool:
        found, *others = (fetch_session(tx, each, asker) for each in (found_id, *(named - {found_id})))
        return found is not None and is_foreign(found) and any(each and not is_foreign(each) for each in others)

    return read_for(store, owner, is_own_title)


def refuse_unquoted_title(store: Titles, texts: Sequence[str], hint: str, owner: OwnerName = None) -> None:
    """Raise an error if one of the texts, which were typed as several words, is a title: quotes were forgotten."""

    def torn_title(tx: Reading, asker: Asker) -> str | None:
        return next((each for each in texts if _sessions(tx, "title = :text", asker, text=each)), None)

    if (torn := read_for(store, owner, torn_title)) is not None:
        raise AmbiguousSession(f"{torn!r} is the title of one session; nothing was changed", hint=hint)


def join_adjacent_words(words: Sequence[str]) -> list[str]:
    """Two or more words that stand in a row, as one text each, as far as a title can be so long."""
    found: list[str] = []
    for start, first in enumerate(words):
        text = first
        for further in words[start + 1 :]:
            text = f"{text} {further}"
            if len(text) > title_rules.MAX_TITLE_LENGTH:
                break
            found.append(text)
    return found


def _newest_of_lineage(store: Titles, text: str, owner: OwnerName) -> str | None:
    for title in dict.fromkeys((text, _sanitized(text))):
        found = None if title is None else store.resolve_session_by_title(title, owner)
        if found is not None:
            return found
    return None


def _by_other_capitals(store: Titles, text: str, purpose: Purpose, owner: OwnerName) -> str:
    """The session of a title that differs only in capitals, or an error that names what is spelled like it."""
    titles = read_for(store, owner, _titles)
    alike = _alike(text, titles, with_numbers=purpose is Purpose.RESUME)
    if purpose is not Purpose.CHANGE and len(alike) == 1:
        return find_session(store, alike[0], purpose, owner)
    if purpose is not Purpose.CHANGE and alike:
        raise AmbiguousSession(f"several sessions can be meant by {text!r}", hint=f"name one of {_quoted(alike)}")
    near = list(dict.fromkeys([*alike, *_near(text, titles)]))[:CANDIDATES]
    raise UnknownSession(f"there is no session {text!r}", hint=f"did you mean {_quoted(near)}?" if near else None)


def _only(text: str, found: Sequence[Candidate]) -> str:
    if len(found) > 1:
        raise AmbiguousSession(f"several sessions can be meant by {text!r}", hint=_listed(found))
    return found[0].id


def _sanitized(text: str) -> str | None:
    try:
        return title_rules.sanitize(text)
    except InvalidValue:
        return None


def _titled(tx: Reading, text: str, asker: Asker) -> list[Candidate]:
    """The sessions of exactly this title, of which every owner can have one."""
    found = _sessions(tx, "title = :text", asker, text=text)
    title = _sanitized(text)
    return found if found or title in (None, text) else _sessions(tx, "title = :text", asker, text=title)


def _ids_beginning(tx: Reading, text: str, asker: Asker) -> list[Candidate]:
    return _sessions(tx, tx.dialect.starts_with("id", "text"), asker, text=text)


def _sessions(tx: Reading, condition: str, asker: Asker, **values: str | None) -> list[Candidate]:
    """Some of the sessions that meet a condition, one more than are shown."""
    rows = tx.rows(
        f"""SELECT id, title, COALESCE(last_active, started_at), owner FROM sessions
            WHERE {condition} {owner_condition(asker)} ORDER BY id DESC LIMIT :limit""",
        whose=asker.stored,
        limit=CANDIDATES + 1,
        **values,
    )
    return [Candidate(*row) for row in rows]


def _titles(tx: Reading, asker: Asker) -> list[str]:
    rows = tx.rows(
        f"SELECT DISTINCT title FROM sessions WHERE title IS NOT NULL {owner_condition(asker)}", whose=asker.stored
    )
    return [row[0] for row in rows]


def _alike(text: str, titles: Sequence[str], *, with_numbers: bool) -> list[str]:
    """The titles that differ from a text only in capitals; `with_numbers`, what comes before a number counts too."""
    folded = text.casefold()
    exact = sorted(title for title in titles if title.casefold() == folded)
    if exact or not with_numbers:
        return exact
    return sorted(
        base for base in {title_rules.split_number(title)[0] for title in titles} if base.casefold() == folded
    )


def _near(text: str, titles: Sequence[str]) -> list[str]:
    """Titles that are spelled like a text, or that contain it."""
    folded = {title.casefold(): title for title in titles}
    spelled = get_close_matches(text.casefold(), folded, n=CANDIDATES)
    within = sorted((name for name in folded if text.casefold() in name), key=len)
    return [folded[name] for name in dict.fromkeys([*spelled, *within])][:CANDIDATES]


def _listed(found: Sequence[Candidate], lead: str = "name one of these by its id:") -> str:
    shown = [each.line for each in found[:CANDIDATES]]
    return "\n  ".join([lead, *shown, *(["..."] if len(found) > CANDIDATES else [])])


def _quoted(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:CANDIDATES])
    return f"{shown}, ..." if len(names) > CANDIDATES else shown
