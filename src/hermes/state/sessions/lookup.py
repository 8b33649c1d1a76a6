"""Find a session by what the user typed: its id, its title, or the start of its id.

An exact title wins in every command. Only resuming follows the numbers of a lineage (`plan` finds `plan #3`), and
commands that change a session accept a title only in its exact case.
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
"""A shorter start of an id is more likely a typing error."""
CANDIDATES = 5


class Purpose(Enum):
    """Why a session is looked up, which decides how the name is read."""

    RESUME = auto()
    """To continue it: a title means the newest number of its lineage."""
    READ = auto()
    """To read it: a title matches exactly, or in any case if that is unambiguous."""
    CHANGE = auto()
    """To delete, rename or mark it: a title matches only exactly."""


class Candidate(NamedTuple):
    """A session that the name may mean."""

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
    """Return the id of the session, or raise an error that lists the candidates.

    The order is: the exact id, the exact title (when resuming, the newest number of its lineage), the only id that
    starts with the text, and, unless the session is going to be changed, a title in another case. A change raises if
    the text is the id of one session and the title of another. The terminal's titles come before those of others, and
    a title of the user's own session comes before the id of an imported one: a file can choose its ids.
    """
    text = given.strip()
    if not text:
        raise InvalidValue("no session given", hint="give its id or its title")
    by_id, titled = read_for(
        store, owner, lambda tx, asker: (_sessions(tx, "id = :text", asker, text=text), _with_title(tx, text, asker))
    )
    if by_id and purpose is Purpose.CHANGE and any(each.id != text for each in titled):
        raise AmbiguousSession(
            f"{text!r} is the id of one session and the title of another",
            hint=_list_candidates([*by_id, *titled], "use the id of the second and give it another title first:"),
        )
    if by_id and (purpose is Purpose.CHANGE or not _is_title_of_own(store, text, purpose, by_id[0].id, titled, owner)):
        return by_id[0].id
    if purpose is Purpose.RESUME and (newest := _newest_of_lineage(store, text, owner)) is not None:
        return newest
    if titled:
        return _only(text, [each for each in titled if each.owner is None] or titled)
    prefixed = []
    if len(text) >= SHORTEST_PREFIX:
        prefixed = read_for(store, owner, lambda tx, asker: _with_id_prefix(tx, text, asker))
    if prefixed:
        return _only(text, prefixed)
    return _find_in_any_case(store, text, purpose, owner)


def _is_title_of_own(
    store: Titles, text: str, purpose: Purpose, found_id: str, titled: Sequence[Candidate], owner: OwnerName
) -> bool:
    """Whether the text, which is the id of an imported session, is the title of a session of the user."""
    titled_ids = {each.id for each in titled}
    if purpose is Purpose.RESUME and (newest := _newest_of_lineage(store, text, owner)) is not None:
        titled_ids.add(newest)
    if not titled_ids - {found_id}:
        return False

    def is_own_title(tx: Reading, asker: Asker) -> bool:
        found, *others = (fetch_session(tx, each, asker) for each in (found_id, *(titled_ids - {found_id})))
        return found is not None and is_foreign(found) and any(each and not is_foreign(each) for each in others)

    return read_for(store, owner, is_own_title)


def refuse_unquoted_title(store: Titles, texts: Sequence[str], hint: str, owner: OwnerName = None) -> None:
    """Raise if one of the texts, which were typed as several words, is a title: the quotes are missing."""

    def unquoted_title(tx: Reading, asker: Asker) -> str | None:
        return next((each for each in texts if _sessions(tx, "title = :text", asker, text=each)), None)

    if (unquoted := read_for(store, owner, unquoted_title)) is not None:
        raise AmbiguousSession(f"{unquoted!r} is the title of one session; nothing was changed", hint=hint)


def join_adjacent_words(words: Sequence[str]) -> list[str]:
    """Return each run of two or more adjacent words as one text, up to the length of a title."""
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
    for title in dict.fromkeys((text, _sanitize(text))):
        found = None if title is None else store.resolve_session_by_title(title, owner)
        if found is not None:
            return found
    return None


def _find_in_any_case(store: Titles, text: str, purpose: Purpose, owner: OwnerName) -> str:
    """Return the session whose title differs only in case, or raise an error with similar titles."""
    titles = read_for(store, owner, _titles)
    alike = _alike(text, titles, with_numbers=purpose is Purpose.RESUME)
    if purpose is not Purpose.CHANGE and len(alike) == 1:
        return find_session(store, alike[0], purpose, owner)
    if purpose is not Purpose.CHANGE and alike:
        raise AmbiguousSession(f"several sessions match {text!r}", hint=f"use one of {_quote_all(alike)}")
    near = list(dict.fromkeys([*alike, *_near(text, titles)]))[:CANDIDATES]
    raise UnknownSession(f"there is no session {text!r}", hint=f"did you mean {_quote_all(near)}?" if near else None)


def _only(text: str, found: Sequence[Candidate]) -> str:
    if len(found) > 1:
        raise AmbiguousSession(f"several sessions match {text!r}", hint=_list_candidates(found))
    return found[0].id


def _sanitize(text: str) -> str | None:
    try:
        return title_rules.sanitize(text)
    except InvalidValue:
        return None


def _with_title(tx: Reading, text: str, asker: Asker) -> list[Candidate]:
    """Return the sessions with exactly this title; every owner can have one."""
    found = _sessions(tx, "title = :text", asker, text=text)
    title = _sanitize(text)
    return found if found or title in (None, text) else _sessions(tx, "title = :text", asker, text=title)


def _with_id_prefix(tx: Reading, text: str, asker: Asker) -> list[Candidate]:
    return _sessions(tx, tx.dialect.starts_with("id", "text"), asker, text=text)


def _sessions(tx: Reading, condition: str, asker: Asker, **values: str | None) -> list[Candidate]:
    """Return some sessions that meet a condition, one more than an error lists."""
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
    """Return the titles that differ from a text only in case; `with_numbers` also compares titles without number."""
    folded = text.casefold()
    exact = sorted(title for title in titles if title.casefold() == folded)
    if exact or not with_numbers:
        return exact
    return sorted(
        base for base in {title_rules.split_number(title)[0] for title in titles} if base.casefold() == folded
    )


def _near(text: str, titles: Sequence[str]) -> list[str]:
    """Return titles that are spelled like a text, or that contain it."""
    folded = {title.casefold(): title for title in titles}
    spelled = get_close_matches(text.casefold(), folded, n=CANDIDATES)
    within = sorted((name for name in folded if text.casefold() in name), key=len)
    return [folded[name] for name in dict.fromkeys([*spelled, *within])][:CANDIDATES]


def _list_candidates(found: Sequence[Candidate], lead: str = "use one of these ids:") -> str:
    shown = [each.line for each in found[:CANDIDATES]]
    return "\n  ".join([lead, *shown, *(["..."] if len(found) > CANDIDATES else [])])


def _quote_all(names: Sequence[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:CANDIDATES])
    return f"{shown}, ..." if len(names) > CANDIDATES else shown
