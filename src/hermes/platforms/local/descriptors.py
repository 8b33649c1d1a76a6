"""How many files and sockets this process may have open: clients must leave enough of them for the database."""

from __future__ import annotations

import resource
from contextlib import suppress

WANTED = 65_536
MOST_CLIENTS = 10_000
FEWEST_CLIENTS = 16


def raise_limit() -> int:
    """Raise the limit of this process as far as the system lets it, up to what a gateway can use; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # the system allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def most_clients() -> int:
    """Return how many clients may be connected at a time: half of what this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CLIENTS if soft == resource.RLIM_INFINITY else max(FEWEST_CLIENTS, min(MOST_CLIENTS, soft // 2))
