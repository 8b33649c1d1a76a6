"""`hermes sessions stats`: how much is stored, and how large it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes.cli.options import AS_JSON
from hermes.cli.store import database_file, nothing_yet, open_for_reading, read_config
from hermes.cli.terminal import printable, talk, write, write_json
from hermes.phrases import counted, megabytes
from hermes.state.sqlite.files import LOG, beside, bytes_of

if TYPE_CHECKING:
    from hermes.state.provider import SessionDBProvider

STATS_SCHEMA = "hermes.stats/1"


@click.command()
@AS_JSON
def stats(as_json: bool) -> None:
    """Count sessions and messages, and measure the database.

    Every session counts, archived and hidden ones too; messages that were rewound do not. The size is that of the
    database and of its write-ahead log.
    """
    config = read_config(as_json=as_json)
    path = database_file(config)
    with open_for_reading(config) as store:
        item = measure(store, path)
    if as_json:
        write_json({"schema": STATS_SCHEMA, "item": item})
        return
    write("\n".join(stats_lines(item)))
    if store is None:
        talk(nothing_yet(path))


def measure(store: SessionDBProvider | None, path: Path) -> dict[str, Any]:
    """The numbers of `stats`; all are 0 while there is no store."""
    sources = store.count_by_source() if store else {}
    return {
        "sessions": sum(sources.values()),
        "messages": store.message_count() if store else 0,
        "sources": sources,
        "path": str(path),
        "size_bytes": bytes_of(path),
        "wal_bytes": bytes_of(beside(path, LOG)),
        "schema_version": store.schema_version() if store else None,
    }


def stats_lines(item: dict[str, Any]) -> list[str]:
    """The numbers of `stats` for a person."""
    size = f"Database size: {megabytes(item['size_bytes'] + item['wal_bytes'])}"
    if item["wal_bytes"]:
        size += f" ({megabytes(item['wal_bytes'])} of it in the write-ahead log)"
    lines = [f"Total sessions: {item['sessions']}", f"Total messages: {item['messages']}"]
    lines += [f"  {source}: {counted(count, 'session')}" for source, count in item["sources"].items()]
    lines += [size, f"Database path: {item['path']}"]
    if item["schema_version"] is not None:
        lines.append(f"Schema version: {item['schema_version']}")
    return [printable(line) for line in lines]
