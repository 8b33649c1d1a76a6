"""A process that stores numbered messages until its input is closed, and prints the number of each stored one.

`python -m tests.postgres.talker DSN SESSION`
"""

from __future__ import annotations

import select
import sys

from hermes.config import SessionDBConfig
from hermes.state.postgres.provider import PostgreSQLSessionDBProvider
from tests.support.waiting import LIMIT_S

PATIENCE_S = 2 * LIMIT_S


def main(dsn: str, session_id: str) -> None:
    """Store `0`, `1`, `2` ..., every other one with its own uid."""
    settings = SessionDBConfig(provider="postgresql", write_timeout_s=PATIENCE_S, pool_timeout_s=PATIENCE_S)
    with PostgreSQLSessionDBProvider(dsn, settings=settings) as store:
        store.create_session(session_id, "cli")
        number = 0
        while not select.select([sys.stdin], [], [], 0)[0]:
            store.append_message(session_id, "user", f"{number}", uid=None if number % 2 else f"uid-{number}")
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
            number += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
