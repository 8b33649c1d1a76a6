"""`python -m bench.mysql`: the measurements on MariaDB (or MySQL), printed as Markdown.

Appends next to plain PyMySQL on the same private server, the index, and search in an archive. The server syncs its log
at every commit.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import machine, questions
from bench.carrying import migrate
from bench.job import Job, Result
from bench.mysqlstore import DATABASE, SERVER, database
from bench.processes import Processes
from bench.rounds import Rounds
from bench.row import OURS as SQLITE
from bench.scale import DEFAULT
from bench.searchtable import milliseconds
from hermes.state.server.search.background_index import MANY
from tests.support.servers import private_server

OURS, RAW = "mysql", "pymysql"
DURABLE = {
    "innodb-flush-log-at-trx-commit": "1",
    "innodb-flush-method": "fsync",
    "innodb-doublewrite": "1",
    "innodb-buffer-pool-size": "1G",
    "innodb-log-file-size": "512M",
}


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.mysql", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=20_000, help="messages in the archive that searches read")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as name, private_server("mysql", **DURABLE) as server:
        os.environ[SERVER] = server.dsn
        processes = Processes(Path(name), {})
        print(f"{machine.describe(Path(name))} {options.rounds} rounds.\n")
        print(_table(_append_lines(processes, options.rounds)))
        print(_table(_migration_lines(processes, options.rounds)))
        os.environ[DATABASE] = "archive"
        print(_table(_search_lines(processes, options.messages)))


def _append_lines(processes: Processes, rounds: int) -> Iterator[list[str]]:
    yield ["append", "ours", "plain PyMySQL", "to plain", "until all is indexed"]
    clients = DEFAULT.processes
    alone = Job("append", "", messages=DEFAULT.append_messages)
    share = Job("member", "", messages=MANY // clients - 1)
    jobs: dict[str, Callable[[str], Result]] = {
        "one client": lambda store: processes.run(store, alone),
        f"{clients} clients": lambda store: processes.run_together(store, share, clients),
    }
    for title, run in jobs.items():
        found = Rounds()
        for number in range(rounds):
            for store in (RAW, OURS):
                print(f"{title}: {store} (round {number + 1} of {rounds})", file=sys.stderr)
                found.add(store, run(store))
        ratio = found.ratio(OURS, RAW, "rate")
        yield [
            title,
            *(_rate(found.middle(store, "rate")) for store in (OURS, RAW)),
            "" if ratio is None else f"{ratio:.2f}",
            _rate(found.middle(OURS, "indexed")),
        ]


def _migration_lines(processes: Processes, rounds: int) -> Iterator[list[str]]:
    """Copy a file of ours to an empty database, like the command does."""
    yield ["migration from SQLite", "messages"]
    found = Rounds()
    with tempfile.TemporaryDirectory(dir=processes.directory) as name:
        home = Path(name)
        processes.run_in(home, SQLITE, Job("fill", "", messages=DEFAULT.size_messages, sessions=DEFAULT.size_sessions))
        for number in range(rounds):
            print(f"migration (round {number + 1} of {rounds})", file=sys.stderr)
            found.add(OURS, migrate(processes, home / "state.db", database(home / str(number))))
    yield ["carried and compared", _rate(found.middle(OURS, "rate"))]
    yield ["indexed after that", _rate(found.middle(OURS, "indexed"))]


def _search_lines(processes: Processes, messages: int) -> Iterator[list[str]]:
    """Fill an archive, then a line for each kind of query."""
    place = processes.directory
    print(f"filling {messages:,} messages", file=sys.stderr)
    built = processes.run_in(place, f"{OURS}, indexed", Job("build", "", messages=messages))
    yield [f"search in {messages:,} messages, ms", "median", "worst", "results", "incomplete"]
    asked = place / "questions.json"
    questions.write(asked, questions.kinds())
    job = Job("ask", "", messages=messages, repeats=DEFAULT.search_repeats, questions=str(asked))
    found = processes.run_in(place, OURS, job)
    for kind in questions.kinds():
        fewest, most = (f"{found[f'{kind.name}: {which}']:.0f}" for which in ("fewest", "most"))
        yield [
            kind.name,
            *(milliseconds(float(found[f"{kind.name}: {which}"])) for which in ("median", "worst")),
            fewest if fewest == most else f"{fewest}-{most}",
            f"{found[f'{kind.name}: incomplete']:.0f} of {found[f'{kind.name}: runs']:.0f}",
        ]
    yield ["filled, index included", _rate(float(built["rate"])), "", "", ""]


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}/s"


def _table(lines: Iterator[list[str]]) -> str:
    header, *rows = lines
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *rows)) + "\n"


if __name__ == "__main__":
    main()
