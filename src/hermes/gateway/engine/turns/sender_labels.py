"""The names of the users of a shared session: each stands for one user, whatever names users give themselves."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.gateway.engine.messages import Message
    from hermes.gateway.source import SessionSource
    from hermes.state.asynchronous.session_db import AsyncSessionDB

NAMES = "names"
"""The key in a lane's `extra` with the user of each name, since the session started."""
MOST_NAMES = 300
"""So many names are remembered in a session; further users are named with their ids."""
_MAX_NAME = 64
_MAX_ID = 40


def choose_labels(
    known: Mapping[str, str], senders: Iterable[tuple[str, str]]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return a label for each user, and the names that are taken then; `senders` are users with their names."""
    labels, taken = dict[str, str](), dict(known)
    for user, name in senders:
        digest = user_digest(user)
        is_full = len(taken) >= MOST_NAMES and _folded(name) not in taken
        for each in _candidates(user, name):
            if is_full and each == name:
                continue  # it could not be noted, and another user could take it too
            if taken.get(_folded(each), digest) == digest:
                labels[user] = each
                if len(taken) < MOST_NAMES:
                    taken[_folded(each)] = digest
                break
    return labels, taken


async def label_senders(db: AsyncSessionDB, key: str, messages: Sequence[Message]) -> Mapping[str, str]:
    """Return the names of the senders of messages in a shared lane, and remember new ones there."""
    row = await db.lanes.get(key)
    extra = {} if row is None else row["extra"]
    stored = extra.get(NAMES)
    known = {str(name): str(user) for name, user in stored.items()} if isinstance(stored, dict) else {}
    labels, taken = choose_labels(known, [(each.sender, name_of(each.source)) for each in messages])
    if taken != known and row is not None:
        await db.lanes.update(key, touch=False, extra={**extra, NAMES: taken})
    return labels


def name_of(source: SessionSource) -> str:
    """Return the name that a user has, on one line and without brackets, which enclose it; the id without one."""
    name = " ".join((source.user_name or source.participant or "").split())
    return name.replace("[", "(").replace("]", ")")[:_MAX_NAME]


def user_digest(user: str) -> str:
    """Return a short form of a user's id: many of them are stored in a lane."""
    return hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _candidates(user: str, name: str) -> Iterable[str]:
    """Yield the name, then the name with the id, and at last with a number, for users who try to look like others."""
    yield name
    shown = user if len(user) <= _MAX_ID and user.isprintable() else user_digest(user)
    plain = shown.replace("[", "(").replace("]", ")")
    yield f"{name} (user {plain})"
    yield from (f"{name} (user {plain}, {number})" for number in count(2))


def _folded(name: str) -> str:
    """Return a name as it is compared: letters that look alike in upper and lower case or in width are the same."""
    return unicodedata.normalize("NFKC", name).casefold()
