"""Names of files that belong to one owner."""

from __future__ import annotations

import re

from hermes.state.owner import TERMINAL, Owner

_TERMINAL = "terminal"
_READABLE_CHARACTERS = 40
_UNREADABLE = re.compile("[^a-z0-9]+")


def owner_file_stem(owner: Owner) -> str:
    """Return a file name without extension for an owner; it is unique, even on file systems that ignore case.

    The readable part is for people. The digest makes the name unique; only the terminal's file has none.
    """
    if owner == TERMINAL or owner.stored is None:
        return _TERMINAL
    from hashlib import sha256

    readable = _UNREADABLE.sub("-", owner.stored.lower()).strip("-")[:_READABLE_CHARACTERS]
    return f"{readable or 'owner'}-{sha256(owner.stored.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
