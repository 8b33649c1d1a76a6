"""Use quotas and approvals until there is nothing to do, and write a line for each call that returned.

`python -m tests.contract.lanes.limits_child` reads the settings of the store, a line of JSON, from its input.
"""

from __future__ import annotations

import json
import sys

from hermes.config import Config, SessionDBConfig
from hermes.state.lanes.quotas import QuotaLimits
from hermes.state.provider import open_session_db

DAY = "2026-01-31"
SCOPES = {"first": QuotaLimits(turns=200), "second": QuotaLimits(), "x" * 500: QuotaLimits()}


def say(line: str) -> None:
    """Write a line at once, so that a call that returned is known even if the process dies."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Run until all turns and approvals are used."""
    given = json.loads(sys.stdin.readline())
    with open_session_db(Config(sessiondb=SessionDBConfig(**given))) as store:
        approvals = store.approvals.pending(limit=None)
        say("ready")
        sys.stdin.readline()
        for row in approvals:
            store.approvals.decide(row["id"], True, "ann")
            if store.approvals.use(row["id"], row["digest"]):
                say(f"used {row['id']}")
            if store.quotas.begin(SCOPES, DAY) is None:
                say("begun")
            store.quotas.add(SCOPES, DAY, tokens=3, cost_usd=0.5)
            say("added")
        while store.quotas.begin(SCOPES, DAY) is None:
            say("begun")


if __name__ == "__main__":
    main()
