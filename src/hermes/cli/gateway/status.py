"""`hermes gateway status`: shows what waits, what runs, and which processes work on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from hermes.cli.display.table import Column, format_table
from hermes.cli.display.terminal import heading, printable, terminal_width, write_json, write_stdout
from hermes.cli.display.wrapping import wrap_text
from hermes.cli.gateway.processes import find_processes
from hermes.cli.gateway.wording import span
from hermes.cli.options import AS_JSON
from hermes.cli.store import database_file, open_for_reading, read_config
from hermes.config import Config
from hermes.gateway.upkeep.status import database_figures
from hermes.home import get_hermes_home
from hermes.phrases import format_size, plural
from hermes.state.transfer.store_address import display_address

SCHEMA = "hermes.gateway.status/1"
INDENT = "  "


@click.command()
@AS_JSON
def status(as_json: bool) -> None:
    """Show what waits, what runs, and which processes work on it.

    Lanes, messages, turns and leases come from the database and are those of all nodes. The processes are those of this
    home. The exit code is 0 whether or not a gateway runs.
    """
    item = read_status(read_config(as_json=as_json))
    if as_json:
        write_json({"schema": SCHEMA, "item": item})
        return
    write_stdout("\n".join(format_status(item, terminal_width())))


def read_status(config: Config) -> dict[str, Any]:
    """Read the state of the gateways: the database, and the processes of this home."""
    home = get_hermes_home()
    item: dict[str, Any] = {"home": str(home), "store": {"provider": config.sessiondb.provider, "database": None}}
    with open_for_reading(config) as store:
        if store is None:
            item["store"]["database"] = str(database_file(config))
            item["queue"] = None
        else:
            item["store"]["database"] = display_address(store)
            item["queue"] = database_figures(store)
    item["processes"] = [
        {"node": each.node, "pid": each.pid, "holder": each.holder, "live": each.request("status")}
        for each in find_processes(home)
    ]
    if item["queue"] is not None:
        add_activities(item["queue"]["turns"], item["processes"])
    return item


def add_activities(turns: Sequence[dict[str, Any]], processes: Sequence[Mapping[str, Any]]) -> None:
    """Add what turns do now, where their process says so: the database knows it only after a step."""
    known = {each["holder"]: each["live"]["activities"] for each in processes if each["live"] is not None}
    for turn in turns:
        now = known.get(turn["holder"], {}).get(turn["session_key"])
        if now is not None and now["activity"]:
            turn["activity"] = now["activity"]


def format_status(item: Mapping[str, Any], width: int) -> list[str]:
    """Format the state of the gateways for people."""
    lines = [f"Store: {printable(item['store']['provider'])}, {printable(item['store']['database'])}"]
    if item["queue"] is None:
        lines.append("The database does not exist yet: no gateway has run.")
    else:
        lines += format_queue(item["queue"], width)
    if not item["processes"]:
        lines.append("No gateway runs with this home. Start one with `hermes gateway run`.")
    for each in item["processes"]:
        lines += ["", *format_process(each, width)]
    return lines


def format_queue(queue: Mapping[str, Any], width: int) -> list[str]:
    """Format what the database knows."""
    waiting, late = queue["waiting"], queue["undelivered"]
    lines = [f"Lanes: {queue['lanes']:,}"]
    if waiting["messages"]:
        where = f"{plural(waiting['messages'], 'message')} in {plural(waiting['lanes'], 'lane')}"
        lines.append(f"Waiting: {where}, the oldest for {span(waiting['oldest_s'])}")
    else:
        lines.append("Waiting: nothing")
    if queue["held"]:
        lines.append(f"Held: {plural(queue['held'], 'message')}, until their users write again")
    oldest = f", the oldest for {span(late['oldest_s'])}" if late["messages"] else ""
    lines.append(f"Undelivered: {plural(late['messages'], 'message')}{oldest}")
    lines.append(f"Dead letters: {_dead(queue['dead'])}")
    lines += [f"Leases: {_leases(queue['leases'])}", f"Running turns: {queue['running']}"]
    return [*lines, *_turn_table(queue["turns"], width)]


def format_process(process: Mapping[str, Any], width: int) -> list[str]:
    """Format what one process knows about itself."""
    title, live = f"Gateway {process['node']} (process {process['pid']})", process["live"]
    if live is None:
        return [heading(printable(title)), f"{INDENT}It does not respond; its log may say why."]
    cache, lag, turns = live["cache"], live["loop_lag"], live["turns"]
    hits = f"hits {cache['hits']:,}, misses {cache['misses']:,}"
    facts = [
        f"Up {span(live['uptime_s'])}, version {live['version']}{', draining' if live['is_draining'] else ''}",
        f"Turns: {turns['running']} of at most {turns['most']}"
        + (f", {turns['abandoned']} abandoned" if turns["abandoned"] else ""),
        f"Cache: {plural(cache['entries'], 'conversation')}, {format_size(cache['bytes'])}, {hits}",
        f"Loop lag: p50 {span(lag['p50_s'])}, p99 {span(lag['p99_s'])}, max {span(lag['max_s'])}",
        f"Socket: {live['socket'] or 'none'}",
        *(f"Platform {name}: {state}" for name, state in live["connectors"].items() if name != "local"),
        f"Events: {_figures(live['counters'])}",
        f"Deliveries: {_figures(live['deliveries'])}",
        f"Limits: {_figures(live['limits'])}",
    ]
    lines = [heading(printable(title))]
    for fact in facts:
        first, *more = wrap_text(printable(fact), max(24, width - len(INDENT)), breaks_words=False)
        lines += [f"{INDENT}{first}", *(f"{INDENT * 2}{line}" for line in more)]
    return lines


def _turn_table(turns: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    if not turns:
        return []
    header, *lines = format_table(
        [
            Column("Lane", [each["session_key"] for each in turns], is_elastic=True),
            Column("Node", [each["node"] for each in turns], is_elastic=True),
            Column("Time", [span(each["seconds"]) for each in turns]),
            Column("Activity", [each["activity"] or "starting" for each in turns]),
        ],
        width,
    )
    return [heading(header), *lines]


def _leases(leases: Sequence[Mapping[str, Any]]) -> str:
    shown = []
    for each in leases:
        ended = f" ({each['ended']} not renewed in time)" if each["ended"] else ""
        shown.append(f"{printable(each['holder'])} {plural(each['lanes'] + each['ended'], 'lane')}{ended}")
    return ", ".join(shown) or "none"


def _dead(dead: Mapping[str, Mapping[str, int]]) -> str:
    shown = []
    for name, where in (("inbox", "from chats"), ("outbox", "to chats")):
        number = sum(dead[name].values())
        if number:
            shown.append(f"{number} {where} ({_counts(dead[name])})")
    return f"{', '.join(shown)}; see `hermes gateway queue list`" if shown else "none"


def _counts(states: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {state}" for state, number in states.items())


def _figures(counters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in counters.items()) or "none"
