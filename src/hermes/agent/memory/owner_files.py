"""Files that belong to one owner each."""

from __future__ import annotations

import re

from hermes.state.owner import TERMINAL, Owner

_TERMINAL = "terminal"
_READABLE_CHARACTERS = 40
_UNREADABLE = re.compile("[^a-z0-9]+")


def owner_file_stem(owner: Owner) -> str:
    """A file name for an owner, without its ending: no two owners share one, also where case is ignored.

    The readable part is for people; what tells owners apart is the digest, which the file of the terminal alone lacks.
    """
    if owner == TERMINAL or owner.stored is None:
        return _TERMINAL
    from hashlib import sha256

    readable = _UNREADABLE.sub("-", owner.stored.lower()).strip("-")[:_READABLE_CHARACTERS]
    return f"{readable or 'owner'}-{sha256(owner.stored.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
