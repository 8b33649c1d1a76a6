"""Files that belong to one owner each."""

from __future__ import annotations

import re

_TERMINAL = "terminal"
_READABLE_CHARACTERS = 40
_UNREADABLE = re.compile("[^a-z0-9]+")


def owner_file_stem(owner: str | None) -> str:
    """A file name for an owner, without its ending: no two owners share one, also where case is ignored.

    None is the person at the terminal. The readable part is for people; what tells owners apart is the digest.
    """
    if owner is None:
        return _TERMINAL
    from hashlib import sha256

    readable = _UNREADABLE.sub("-", owner.lower()).strip("-")[:_READABLE_CHARACTERS]
    return f"{readable or 'owner'}-{sha256(owner.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
