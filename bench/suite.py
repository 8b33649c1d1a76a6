"""The measurements in order: the stores that take part, and the limit for each row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bench import startup
from bench.commands import measure_commands
from bench.job import Job, Result
from bench.processes import Processes
from bench.rounds import Rounds
from bench.row import COUNTING, LEAN, OURS, RAW, Row, Unit, all_of, any_of, at_least, at_most, row_of
from bench.scale import Scale
from bench.weight import weigh

HERMES_AGENT, OPENAI_AGENTS = "hermes-agent", "openai-agents"
STORES = (RAW, OURS, HERMES_AGENT, OPENAI_AGENTS)
ONE_THREAD = "ours, one thread"
_MOST_LANES_OF_PEERS = 3_000
"""More take minutes: a peer writes all of them again for every message."""
_BELONGS_TO = {COUNTING: RAW, LEAN: RAW, ONE_THREAD: OURS}
Measure = Callable[[str], Result]


@dataclass(slots=True)
class Suite:
    """Measures workload by workload."""

    processes: Processes
    scale: Scale
    round_count: int
    stores: tuple[str, ...]
    report: Callable[[str], None]
    raw_results: dict[str, dict[str, list[Result]]] = field(default_factory=dict)

    def append(self) -> list[Row]:
        """One call per message."""
        job = Job("append", "", messages=self.scale.append_messages)
        rounds = self._rounds("append", self._runner(job), (RAW, COUNTING, LEAN, *STORES[1:]))
        rate = row_of("append", "append, one thread, acknowledged", Unit.RATE, rounds, "rate")
        rate.bar = ">= 0.65 of raw, ahead of both peers"
        rate.met = all_of(
            at_least(rate.ratio, 0.65),
            *(at_least(rounds.ratio(OURS, peer, "rate"), 1.0) for peer in (HERMES_AGENT, OPENAI_AGENTS)),
        )
        counting = _against("append", "  raw with an index and a counter", rounds, COUNTING, "rate", 0.8)
        indexed = _against("append", "  until all is indexed; raw with both indexes", rounds, LEAN, "indexed", 0.9)
        calls = [row_of("append", f"  call, {key}", Unit.MS, rounds, key) for key in ("p50", "p99", "max")]
        slowest = rounds.worst(OURS, "max")
        calls[-1].bar, calls[-1].met = "< 10 ms in every round", at_most(slowest, 10.0)
        return [rate, counting, indexed, *calls]

    def append_messages(self) -> list[Row]:
        """Ten messages per call."""
        job = Job("append_messages", "", messages=self.scale.append_messages, batch=self.scale.batch)
        rounds = self._rounds("append_messages", self._runner(job), STORES)
        label = f"append, batches of {self.scale.batch}"
        rate = row_of("append_messages", f"{label}, acknowledged", Unit.RATE, rounds, "rate")
        rate.bar = "ahead of openai-agents"
        rate.met = at_least(rounds.ratio(OURS, OPENAI_AGENTS, "rate"), 1.0)
        return [rate, row_of("append_messages", "  until all is indexed", Unit.RATE, rounds, "indexed")]

    def threads(self) -> list[Row]:
        """Sixteen threads of one process against one thread."""
        rounds = self._thread_rounds("threads", self.scale.append_messages, self.scale.thread_messages, 0.0)
        rate, times = self._thread_rows("threads", "append, {} threads", rounds)
        times.bar = ">= 2x"
        times.met = at_least(times.values.get(OURS), 2.0)
        return [rate, times]

    def slow_disk(self) -> list[Row]:
        """The same where every fsync takes five milliseconds."""
        scale = self.scale
        rounds = self._thread_rounds("slowdisk", scale.slow_messages, scale.slow_messages * 8, scale.slow_fsync_ms)
        label = f"append, {{}} threads, fsync +{scale.slow_fsync_ms:g} ms"
        rate, times = self._thread_rows("slowdisk", label, rounds)
        times.bar = ">= 8x"
        times.met = at_least(times.values.get(OURS), 8.0)
        return [rate, times]

    def shared_file(self) -> list[Row]:
        """Eight processes on one file."""
        members = self.scale.processes
        job = Job("member", "", messages=self.scale.process_messages)
        rounds = self._rounds(
            "processes", lambda store: self.processes.run_together(store, job, members), (RAW, OURS, HERMES_AGENT)
        )
        rate = row_of("processes", f"append, {members} processes", Unit.RATE, rounds, "rate")
        rate.bar, rate.met = "at least hermes-agent's", at_least(rounds.ratio(OURS, HERMES_AGENT, "rate"), 1.0)
        slowest = self._worst_row("processes", "  slowest call", Unit.MS, rounds, "max")
        slowest.bar, slowest.met = "< 30 ms", at_most(slowest.values.get(OURS), 30.0)
        failed = self._worst_row("processes", "  failed calls", Unit.COUNT, rounds, "failures")
        lost = self._worst_row("processes", "  acknowledged but not found", Unit.COUNT, rounds, "lost")
        for row in (failed, lost):
            row.bar, row.met = "0", at_most(row.values.get(OURS), 0.0)
        return [rate, slowest, failed, lost]

    def load(self) -> list[Row]:
        """A long conversation for replay."""
        job = Job("load", "", messages=self.scale.load_messages, repeats=self.scale.load_repeats)
        rounds = self._rounds("load", self._runner(job), (OURS, HERMES_AGENT, OPENAI_AGENTS))
        row = row_of("load", f"load {self.scale.load_messages:,} messages", Unit.MS, rounds, "ms")
        row.bar, row.met = "<= 4 ms", at_most(row.values.get(OURS), 4.0)
        return [row]

    def pages(self) -> list[Row]:
        """Pages of the session list."""
        scale = self.scale
        job = Job(
            "list_sessions",
            "",
            messages=scale.list_messages,
            sessions=scale.list_sessions,
            repeats=scale.list_repeats,
        )
        rounds = self._rounds("list", self._runner(job), (OURS, HERMES_AGENT), count=1)
        rows = []
        for order in ("start", "activity"):
            for choice in ("all", "filtered"):
                for place in ("first", "deep"):
                    label = f"list by {order}, {'one source' if choice == 'filtered' else 'all'}, {place} page"
                    row = row_of("list", label, Unit.MS, rounds, f"{order} {choice} {place}")
                    row.bar, row.met = "<= 0.5 ms", at_most(row.values.get(OURS), 0.5)
                    rows.append(row)
        return rows

    def size(self) -> list[Row]:
        """The file after close."""
        job = Job("fill", "", messages=self.scale.size_messages, sessions=self.scale.size_sessions)
        stores = (LEAN, OURS, HERMES_AGENT, OPENAI_AGENTS)
        measured = self._rounds("size", lambda store: weigh(self.processes, store, job), stores, count=1)
        rounds = Rounds({RAW if store == LEAN else store: found for store, found in measured.results.items()})
        text = next((value for store in rounds.results for value in rounds.values(store, "text")), None)
        row = row_of("size", "file per message", Unit.BYTES, rounds, "bytes")
        times = Row("size", f"  over its text ({text or 0:.0f} bytes)", Unit.TIMES)
        times.values = {store: value / text for store, value in row.values.items()} if text else {}
        times.bar = "<= 1.8x, or 1.15 of the leanest raw"
        times.met = any_of(at_most(times.values.get(OURS), 1.8), at_most(row.ratio, 1.15))
        return [row, times]

    def imports(self) -> list[Row]:
        """The import of the store's module."""
        rounds = self._rounds(
            "import",
            lambda store: startup.import_cost(self.processes, store, self.scale.starts),
            (OURS, HERMES_AGENT, OPENAI_AGENTS),
            count=1,
        )
        row = row_of("import", "import, CPU over bare Python", Unit.MS, rounds, "ms")
        row.bar, row.met = "<= 45 ms", at_most(row.values.get(OURS), 45.0)
        return [row]

    def command(self) -> list[Row]:
        """The list on a terminal."""
        rounds = self._rounds(
            "command",
            lambda store: startup.first_list(self.processes, store, self.scale.starts),
            (OURS, HERMES_AGENT),
            count=1,
        )
        row = row_of("command", "`hermes sessions list`, fresh process", Unit.MS, rounds, "ms")
        row.bar, row.met = "<= 70 ms", at_most(row.values.get(OURS), 70.0)
        return [row]

    def commands(self) -> list[Row]:
        """Common commands on a terminal, on a large home."""
        scale = self.scale
        sessions, messages = scale.list_sessions, scale.list_messages
        rounds = self._rounds(
            "commands",
            lambda _: measure_commands(self.processes, sessions, messages, scale.starts),
            (OURS,),
            count=1,
        )
        large = f"{sessions:,} sessions, {messages:,} messages"
        rows = []
        for key, label, limit in (
            ("hi", f"`hermes -Q -q hi`, {large}", 350.0),
            ("list", "  `hermes sessions list`", 120.0),
            ("search", "  `hermes sessions search docker`", None),
            ("insights", "  `hermes insights`", 300.0),
        ):
            row = row_of("commands", label, Unit.MS, rounds, key)
            if limit is not None:
                row.bar, row.met = f"<= {limit:.0f} ms", at_most(row.values.get(OURS), limit)
            rows.append(row)
        for key, label, least in (
            ("export", "`hermes sessions export` of all, messages", 50_000.0),
            ("import", "import of that, all messages stored", 8_000.0),
            ("import_indexed", "import of that, all messages indexed", None),
        ):
            row = row_of("commands", f"  {label}", Unit.RATE, rounds, key)
            if least is not None:
                row.bar, row.met = f">= {least:,.0f}/s", at_least(row.values.get(OURS), least)
            rows.append(row)
        return rows

    def lanes(self) -> list[Row]:
        """What a gateway does in its store for every message."""
        rows, rounds = [], Rounds()
        for count in self.scale.lanes:
            stores = (OURS, HERMES_AGENT) if count <= _MOST_LANES_OF_PEERS else (OURS,)
            job = Job("touch", "", sessions=count, repeats=self.scale.touches)
            rounds = self._rounds(f"lanes {count:,}", self._runner(job), stores, count=1)
            row = row_of("lanes", f"touch of a lane, {count:,} lanes, CPU", Unit.MS, rounds, "cpu")
            row.bar, row.met = "<= 1 ms", at_most(row.values.get(OURS), 1.0)
            rows.append(row)
        opening = row_of("lanes", "  first touch after opening", Unit.MS, rounds, "opening")
        opening.bar, opening.met = "<= 50 ms", at_most(opening.values.get(OURS), 50.0)
        job = Job("record", "", messages=self.scale.append_messages, sessions=500, threads=self.scale.threads)
        rounds = self._rounds("turns", self._runner(job), (OURS,))
        accepted = row_of("lanes", f"messages accepted, {self.scale.threads} threads", Unit.RATE, rounds, "accept")
        accepted.bar, accepted.met = ">= 1,500/s", at_least(accepted.values.get(OURS), 1_500.0)
        turns = row_of("lanes", f"turns claimed and finished, {self.scale.threads} threads", Unit.RATE, rounds, "turns")
        turns.bar, turns.met = ">= 400/s", at_least(turns.values.get(OURS), 400.0)
        return [*rows, opening, accepted, turns]

    def _runner(self, job: Job) -> Measure:
        return lambda store: self.processes.run(store, job)

    def _rounds(self, name: str, measure: Measure, stores: tuple[str, ...], count: int | None = None) -> Rounds:
        """Measure every store in turn, then repeat."""
        rounds = Rounds()
        total = count or self.round_count
        for number in range(total):
            for store in stores:
                if _BELONGS_TO.get(store, store) in self.stores:
                    self.report(f"{name}: {store} (round {number + 1} of {total})")
                    rounds.add(store, measure(store))
        self.raw_results[name] = rounds.results
        return rounds

    def _thread_rounds(self, name: str, alone: int, together: int, fsync_ms: float) -> Rounds:
        """Raw and ours with one thread, then the stores with many; peers cannot use the slow disk."""
        one = Job("append", "", messages=alone, fsync_ms=fsync_ms)
        many = Job("append", "", messages=together, threads=self.scale.threads, fsync_ms=fsync_ms)
        peers = () if fsync_ms else (HERMES_AGENT, OPENAI_AGENTS)

        def measure(store: str) -> Result:
            runs_as = OURS if store == ONE_THREAD else store
            return self.processes.run(runs_as, one if store in (RAW, ONE_THREAD) else many)

        return self._rounds(name, measure, (RAW, ONE_THREAD, OURS, *peers))

    def _thread_rows(self, name: str, label: str, rounds: Rounds) -> tuple[Row, Row]:
        rate = row_of(name, label.format(self.scale.threads) + " (raw: one)", Unit.RATE, rounds, "rate")
        alone = rounds.middle(ONE_THREAD, "rate")
        times = Row(name, f"  over one thread of ours ({alone or 0:,.0f}/s)", Unit.TIMES)
        ratio = rounds.ratio(OURS, ONE_THREAD, "rate")
        if ratio is not None:
            times.values[OURS] = ratio
        return rate, times

    def _worst_row(self, name: str, label: str, unit: Unit, rounds: Rounds, key: str) -> Row:
        row = row_of(name, label, unit, rounds, key)
        for store in rounds.results:
            worst = rounds.worst(store, key)
            if worst is not None:
                row.values[store] = worst
        row.ratio = None if unit is Unit.COUNT else row.ratio
        return row


WORKLOADS: dict[str, Callable[[Suite], list[Row]]] = {
    "append": Suite.append,
    "append_messages": Suite.append_messages,
    "threads": Suite.threads,
    "slowdisk": Suite.slow_disk,
    "processes": Suite.shared_file,
    "load": Suite.load,
    "list": Suite.pages,
    "size": Suite.size,
    "import": Suite.imports,
    "command": Suite.command,
    "commands": Suite.commands,
    "lanes": Suite.lanes,
}


def _against(workload: str, label: str, rounds: Rounds, floor: str, key: str, limit: float) -> Row:
    """A row that compares ours with another floor than the raw one."""
    row = Row(workload, label, Unit.RATE, noise=rounds.spread(floor, key), ratio=rounds.ratio(OURS, floor, key))
    for column, store in ((OURS, OURS), (RAW, floor)):
        value = rounds.middle(store, key)
        if value is not None:
            row.values[column] = value
    row.bar, row.met = f">= {limit:g} of that floor", at_least(row.ratio, limit)
    return row
