"""`python -m tests.torture`: runs every fault, then random searches on random stores, and prints one table."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from bench import machine, report
from tests.property import search_oracle
from tests.torture import table
from tests.torture.faults import FAULTS
from tests.torture.gateway_stories import try_stories
from tests.torture.outcome import Outcome
from tests.torture.runner import ROOT, run

PAGE = ROOT / "docs" / "reference" / "reliability.md"
ORACLE = "search-oracle"
STORIES = "gateway-stories"
TITLES = {name: fault.title for name, fault in FAULTS.items()} | {
    ORACLE: "random stores are asked random questions, beside a naive search",
    STORIES: "simulated gateways crash, freeze and restart while people write",
}
FAULTS_SHARE = 0.85
"""The share of the time for faults; the rest is for searches."""
LEAST_ASKING_S = 60.0


def main() -> int:
    """Run the chosen faults; return 1 if any message was lost or any result was wrong."""
    options = _options()
    chosen = [name for name in TITLES if name in options.only] or list(TITLES)
    outcomes = {name: Outcome() for name in chosen}
    started = time.monotonic()
    _report(f"the first seed is {options.seed}")
    directory = Path(tempfile.mkdtemp(prefix="torture-"))
    heading = _heading(machine.describe(directory), options.seed)
    faults = [name for name in chosen if name in FAULTS]
    if faults:
        _strike(faults, outcomes, directory, options, started + options.minutes * 60 * FAULTS_SHARE)
    if ORACLE in chosen:
        outcomes[ORACLE] = _ask(options, max(started + options.minutes * 60, time.monotonic() + LEAST_ASKING_S))
    if STORIES in chosen:
        outcomes[STORIES] = try_stories(options.seed, options.rounds or options.stories, _report)
    sys.stdout.write(f"{heading}\n\n{table.render(outcomes, TITLES)}\n")
    if options.write_docs:
        report.write(PAGE, f"{heading}\n\n{table.markdown(outcomes, TITLES)}", "torture")
    is_clean = all(outcome.is_clean for outcome in outcomes.values())
    _tidy(directory, is_clean=is_clean)
    return 0 if is_clean else 1


def _strike(
    names: list[str], outcomes: dict[str, Outcome], directory: Path, options: argparse.Namespace, deadline: float
) -> None:
    """Run every fault once, then again while there is time."""
    lap = 0
    while lap == 0 or (time.monotonic() < deadline and not options.rounds):
        for name in names:
            rounds = options.rounds or FAULTS[name].rounds
            if outcomes[name].not_run or (lap and time.monotonic() > deadline):
                continue
            began = time.monotonic()
            outcome = run(name, directory, seed=options.seed + lap * rounds, rounds=rounds)
            outcomes[name].add(outcome)
            _report(f"{name}: {outcome.times} times in {time.monotonic() - began:.0f} s{_verdict(outcome)}")
        lap += 1


def _ask(options: argparse.Namespace, deadline: float) -> Outcome:
    """Run random searches until the deadline or for the given number of stores."""
    tally = search_oracle.try_seeds(options.seed, deadline, options.rounds, _report)
    complaints = [f"seed {options.seed}: {tally.wrong} questions answered wrongly"] * (tally.wrong > 0)
    return Outcome(
        times=tally.asked,
        unfound=tally.wrong,
        recovered=tally.asked - tally.wrong,
        notes=[f"{tally.stores:,} stores"],
        complaints=complaints,
    )


def _verdict(outcome: Outcome) -> str:
    if outcome.not_run:
        return f", not run: {outcome.not_run}"
    return "" if outcome.is_clean else f", NOT CLEAN: {'; '.join(outcome.complaints[:3])}"


def _tidy(directory: Path, *, is_clean: bool) -> None:
    """Remove the files of rounds that passed; keep those of failed rounds."""
    if is_clean:
        for log in directory.glob("*.log"):
            log.unlink()
        with suppress(OSError):
            directory.rmdir()
    else:
        _report(f"the files of what went wrong are in {directory}")


def _heading(machine_line: str, seed: int) -> str:
    return f"{machine_line}. Seed {seed}, {time.strftime('%Y-%m-%d', time.gmtime())}."


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description="Damage the store in every known way.")
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="how long to run; every fault is made at least once"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=TITLES,
        metavar="NAME",
        help=f"{', '.join(TITLES)}; may be repeated",
    )
    parser.add_argument("--rounds", type=int, default=0, metavar="N", help="so many rounds of each fault, and no more")
    parser.add_argument(
        "--stories", type=int, default=100_000, metavar="N", help="so many simulated stories of the gateway"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the first seed; the others follow it")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/reference/reliability.md")
    options = parser.parse_args()
    if options.write_docs and (options.only or options.rounds):
        parser.error("--write-docs needs a whole run: without --only and without --rounds")
    return options


def _report(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
