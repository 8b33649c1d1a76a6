"""`hermes sessions stats`: counts sessions and messages and measures the database."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes.cli.display.terminal import printable, write_json, write_stderr, write_stdout
from hermes.cli.options import AS_JSON
from hermes.cli.store import database_file, no_sessions_message, open_for_reading, read_config
from hermes.phrases import format_megabytes, plural
from hermes.state.engine import Capability
from hermes.state.sqlite.files.names import LOG, beside, bytes_of

if TYPE_CHECKING:
    from hermes.state.maintenance.disk_usage import DiskUsage
    from hermes.state.provider import SessionDBProvider

STATS_SCHEMA = "hermes.stats/1"
MEASURING_S = 5.0
"""How long measuring the parts of the database may take."""

PARTS = {
    "text_bytes": "messages",
    "search_bytes": "search index",
    "indexes_bytes": "other indexes",
    "other_bytes": "sessions and other data",
    "free_bytes": "unused",
    "wal_bytes": "write-ahead log",
}
"""The parts of a store, with their labels in `--verbose`."""


@click.command()
@click.option("--verbose", "-v", is_flag=True, help="Also show the size of each part.")
@AS_JSON
def stats(verbose: bool, as_json: bool) -> None:
    """Show counts of sessions and messages, and the size.

    All sessions count, including archived and hidden ones; undone messages do not. The size includes the write-ahead
    log. For a server, it is the size that the server reports.
    """
    config = read_config(as_json=as_json)
    path = database_file(config)
    with open_for_reading(config) as store:
        item = measure_store(store, path, is_verbose=verbose)
    if as_json:
        write_json({"schema": STATS_SCHEMA, "item": item})
        return
    write_stdout("\n".join(format_stats(item)))
    if store is None:
        write_stderr(no_sessions_message(path))


def measure_store(store: SessionDBProvider | None, path: Path, *, is_verbose: bool = False) -> dict[str, Any]:
    """Measure a store; without one, all numbers are 0."""
    sources = store.count_by_source() if store else {}
    counts = {
        "sessions": sum(sources.values()),
        "messages": store.message_count() if store else 0,
        "sources": sources,
    }
    place: dict[str, Any] = {
        "path": str(path),
        "size_bytes": bytes_of(path),
        "wal_bytes": bytes_of(beside(path, LOG)),
        "schema_version": store.schema_version() if store else None,
    }
    if store is None:
        return counts | place | ({"parts": None} if is_verbose else {})
    is_file = Capability.FILE in store.capabilities
    usage = _measure_usage(store) if is_verbose or not is_file else None
    if not is_file:
        health = store.health()
        place |= {"path": None, "size_bytes": None if usage is None else usage.total, "wal_bytes": 0}
        place |= {"database": health.get("database"), "server": health.get("server")}
    parts = None if usage is None else {f"{name}_bytes": size for name, size in asdict(usage).items()}
    return counts | place | ({"parts": parts} if is_verbose else {})


def format_stats(item: dict[str, Any]) -> list[str]:
    """Format the numbers as lines of text."""
    lines = [f"Total sessions: {item['sessions']}", f"Total messages: {item['messages']}"]
    lines += [f"  {source}: {plural(count, 'session')}" for source, count in item["sources"].items()]
    lines += [_size_line(item), *_part_lines(item)]
    lines.append(
        f"Database path: {item['path']}" if item["path"] else f"Database: {item['database']} ({item['server']})"
    )
    if item["schema_version"] is not None:
        lines.append(f"Schema version: {item['schema_version']}")
    return [printable(line) for line in lines]


def _size_line(item: dict[str, Any]) -> str:
    if item["size_bytes"] is None:
        return "Database size: unknown"
    size = f"Database size: {format_megabytes(item['size_bytes'] + item['wal_bytes'])}"
    if item["wal_bytes"]:
        size += f" ({format_megabytes(item['wal_bytes'])} of it in the write-ahead log)"
    return size


def _part_lines(item: dict[str, Any]) -> list[str]:
    if "parts" not in item or not item["size_bytes"]:
        return []
    if item["parts"] is None:
        return ["  parts not measured in time; run `hermes doctor --deep`"]
    known = item["parts"] | ({"wal_bytes": item["wal_bytes"]} if item["path"] else {})
    return [
        f"  {words}: {format_megabytes(known[name])}" for name, words in PARTS.items() if known.get(name) is not None
    ]


def _measure_usage(store: SessionDBProvider) -> DiskUsage | None:
    from hermes.state.maintenance.disk_usage import measure_disk_usage

    return measure_disk_usage(store, MEASURING_S)
