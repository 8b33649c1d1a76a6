"""`python -m bench`: measure, and print one table."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from bench import machine, peers, plot, postgrestable, report, searchtable, sizes, table
from bench.built import Builder
from bench.gateway import report as gatewayreport
from bench.gateway.report import GatewayReport
from bench.postgrestable import PostgresReport
from bench.processes import ROOT, Processes
from bench.recall import table as recalltable
from bench.recall.measurement import RecallReport
from bench.row import OURS, Row
from bench.scale import DEFAULT, FULL, QUICK, Scale
from bench.search import Search
from bench.searchrow import SearchReport
from bench.suite import STORES, WORKLOADS, Suite

PAGE = ROOT / "docs" / "reference" / "performance.md"
PICTURE = PAGE.with_name("search.svg")
RECALL_PAGE = PAGE.with_name("recall-quality.md")
SEARCH, POSTGRES, RECALL, GATEWAY = "search", "postgresql", "recall", "gateway"
EVERY = (*WORKLOADS, SEARCH, POSTGRES, RECALL, GATEWAY)
ALONE = ([RECALL], [GATEWAY])
"""Measurements that the other programs take no part in."""


def main() -> int:
    """Run the chosen measurements; the exit code says whether our store could be measured."""
    options = _options()
    scale = QUICK if options.quick else FULL if options.full else DEFAULT
    home = ROOT / ".bench"
    home.mkdir(exist_ok=True)
    stores = tuple(store for store in STORES if store in options.only) or STORES
    chosen = [name for name in EVERY if name in options.only] or list(EVERY)
    wanted = [peer for peer in peers.PEERS if peer.name in stores and chosen not in ALONE]
    environments = {peer.name: peers.install(peer, home, _report) for peer in wanted}
    with tempfile.TemporaryDirectory(prefix="run-", dir=options.dir or home) as directory:
        processes = Processes(Path(directory), environments)
        suite = Suite(processes, scale, options.rounds, stores, _report)
        machine_line = machine.describe(Path(directory))
        rows = [row for name in chosen if name in WORKLOADS for row in WORKLOADS[name](suite)]
        searched = _search(suite, options, (options.dir or home) / "archives") if SEARCH in chosen else None
        served = _postgres(suite, options, (options.dir or home) / "archives") if POSTGRES in chosen else None
        recalled = _recall(options, Path(directory)) if RECALL in chosen else None
        served_chats = _gateway(options, Path(directory)) if GATEWAY in chosen else None
    heading = _heading(machine_line, scale, options.rounds)
    print(heading)
    if rows:
        print(f"\n{table.render(rows)}")
    if searched is not None:
        print(f"\n{searchtable.render(searched)}")
    if served is not None:
        print(f"\n{postgrestable.render(served)}")
    if recalled is not None:
        print(f"\n{recalltable.render(recalled)}")
    if served_chats is not None:
        print(f"\n{gatewayreport.render(served_chats)}")
    _publish(options, suite, rows, searched, served, recalled, served_chats, heading)
    return 1 if any("error" in result for found in suite.raw_results.values() for result in found.get(OURS, [])) else 0


def _search(suite: Suite, options: argparse.Namespace, archives: Path) -> SearchReport:
    search = Search(
        suite.processes,
        Builder(suite.processes, archives, _report),
        options.search_sizes or suite.scale.search_sizes,
        options.rounds,
        suite.scale.search_repeats,
        suite.scale.starts,
        suite.stores,
        _report,
        suite.raw_results,
    )
    return search.measure()


def _postgres(suite: Suite, options: argparse.Namespace, archives: Path) -> PostgresReport:
    # The driver is loaded only when it is needed.
    from bench.postgres import Postgres

    sizes = options.search_sizes or suite.scale.search_sizes
    rounds, raw_results = options.rounds, suite.raw_results
    return Postgres(suite.processes, archives, suite.scale, sizes, rounds, _report, raw_results).measure()


def _recall(options: argparse.Namespace, directory: Path) -> RecallReport:
    # These import our store, which the other measurements run in processes of their own.
    from bench.recall import corpus, locomo, measurement

    dialogues = locomo.read_dialogues(options.locomo) if options.locomo else corpus.build_corpus()
    return measurement.measure(dialogues, directory)


def _gateway(options: argparse.Namespace, directory: Path) -> GatewayReport:
    # The gateway is loaded only when it is needed.
    from bench.gateway import measurement

    sizes = measurement.QUICK if options.quick else measurement.GatewaySizes()
    return measurement.Gateway(directory, sizes, _report).measure()


def _publish(
    options: argparse.Namespace,
    suite: Suite,
    rows: list[Row],
    searched: SearchReport | None,
    served: PostgresReport | None,
    recalled: RecallReport | None,
    served_chats: GatewayReport | None,
    heading: str,
) -> None:
    if options.json:
        data = {"heading": heading, "rows": [asdict(row) for row in rows], "results": suite.raw_results}
        if searched is not None:
            data[SEARCH] = searched.plain()
        if served is not None:
            data[POSTGRES] = served.plain()
        if recalled is not None:
            data[RECALL] = recalled.plain()
        if served_chats is not None:
            data[GATEWAY] = served_chats.plain()
        options.json.write_text(json.dumps(data, indent=2) + "\n")
    if options.write_docs and rows:
        report.write(PAGE, f"{heading}\n\n{table.markdown(rows)}")
    if options.write_docs and served is not None:
        report.write(PAGE, f"{heading}\n\n{postgrestable.markdown(served)}", report.POSTGRES)
    if options.write_docs and searched is not None:
        PICTURE.write_text(plot.as_svg(plot.Plot.of(searched)))
        report.write(PAGE, f"{heading}\n\n{searchtable.markdown(searched, PICTURE.name)}", report.SEARCH)
    if options.write_docs and recalled is not None:
        report.write(RECALL_PAGE, f"{heading}\n\n{recalltable.markdown(recalled)}", report.RECALL)
    if options.write_docs and served_chats is not None:
        report.write(PAGE, f"{heading}\n\n{gatewayreport.markdown(served_chats)}", report.GATEWAY)


def _heading(machine_line: str, scale: Scale, rounds: int) -> str:
    return f"{machine_line}. Scale {scale.name}, {rounds} rounds, {time.strftime('%Y-%m-%d', time.gmtime())}."


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the session store and its peers.")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=[*STORES, *EVERY],
        metavar="NAME",
        help=f"a store ({', '.join(STORES)}) or a workload ({', '.join(EVERY)}); may be repeated",
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds of each rate (default: 3)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small sizes, to try the harness")
    size.add_argument("--full", action="store_true", help="20 000 sessions and 1 M messages")
    parser.add_argument(
        "--search-sizes",
        type=sizes.parse_all,
        metavar="SIZES",
        help="how many messages are searched, such as 100k,1M,5M; above 1M only ours",
    )
    parser.add_argument(
        "--locomo", type=Path, metavar="FILE", help="measure recall alone, with the dialogues of a LoCoMo file"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single result there")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="where the data goes meanwhile (default: .bench)")
    parser.add_argument("--write-docs", action="store_true", help="put the tables into docs/reference")
    options = parser.parse_args()
    if options.locomo:
        if options.write_docs or options.only not in ([], [RECALL]):
            parser.error("--locomo measures recall alone, and its numbers are not put into the docs")
        options.only = [RECALL]
    if options.write_docs and (options.only not in ([], [SEARCH], [POSTGRES], [RECALL], [GATEWAY]) or options.quick):
        parser.error("--write-docs needs a whole run, or all of search, postgresql, recall or gateway, without --quick")
    return options


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
