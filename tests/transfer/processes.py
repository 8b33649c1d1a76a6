"""Processes that migrate or write during a test: `python -m tests.transfer.processes WHAT ADDRESS ...`."""

from __future__ import annotations

import select
import sys

from hermes.config import Config
from hermes.state.import_export import message_pages
from hermes.state.provider import SessionDBProvider, open_session_db
from hermes.state.transfer import origin as origin_module
from hermes.state.transfer.migration import Migration
from hermes.state.transfer.store_address import config_for
from tests.fault.processes import Child

PAGE = 40


class MigrationProcess(Child):
    """A process that runs one of the functions below and talks with the test in lines."""

    module = "tests.transfer.processes"


def migrate(source: str, address: str) -> None:
    """Migrate one store to another, in small steps, with one line for each."""
    message_pages.PAGE_MESSAGES, origin_module.PAGE_SESSIONS = PAGE, 5
    with open_at(source, read_only=True) as origin, open_at(address) as target:
        migration = Migration(origin, target, lambda *progress: say(f"{progress[1]}"))
        migration.begin(resume=True)
        migration.copy_all()
        migration.finish()
    say("done")


def write(address: str) -> None:
    """Add messages to the sessions of a store and create new ones, until a line arrives."""
    count = 0
    with open_at(address) as store:
        known = [row["id"] for row in store.search_sessions(limit=3)]
        say("begun")
        while not select.select([sys.stdin], [], [], 0)[0]:
            count += 1
            if count % 10 == 0:
                known.append(store.create_session(f"live-{count}", "cli"))
            store.append_message(known[count % len(known)], "user", f"live {count}", uid=f"live-{count}")
    say(f"{count}")


def open_at(address: str, *, read_only: bool = False) -> SessionDBProvider:
    """Open a store by its path or DSN."""
    return open_session_db(config_for(address, Config()), read_only=read_only)


def say(line: str) -> None:
    """Send a line to the parent."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "migrate":
        migrate(sys.argv[2], sys.argv[3])
    else:
        write(sys.argv[2])
