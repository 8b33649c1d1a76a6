"""`hermes sessiondb status`: shows the configured database and its state."""

from __future__ import annotations

from typing import Any

import click

from hermes.cli.display.terminal import printable, write_json, write_stdout
from hermes.cli.errors import FAILED
from hermes.cli.options import AS_JSON
from hermes.cli.sessiondb.schema_versions import applied_migrations, missing_migrations
from hermes.cli.store import read_config
from hermes.config import Config
from hermes.errors import HermesError
from hermes.state.provider import SessionDBProvider, open_session_db
from hermes.state.transfer.counts import count
from hermes.state.transfer.store_address import display_address

SCHEMA = "hermes.sessiondb/1"


@click.command()
@AS_JSON
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:
    """Show the database and its state.

    The command only reads. The exit code is 1 if the database is unreachable or does not exist yet.
    """
    config = read_config(as_json=as_json)
    item = read_status(config)
    if as_json:
        write_json({"schema": SCHEMA, "item": item})
    else:
        write_stdout("\n".join(format_status(item)))
    if not item["ok"]:
        context.exit(FAILED)


def read_status(config: Config) -> dict[str, Any]:
    """Read the state of the configured store."""
    try:
        with open_session_db(config, read_only=True) as store:
            return _status_item(config, store)
    except HermesError as exc:
        return {
            "provider": config.sessiondb.provider,
            "ok": False,
            "error": {"code": exc.code, "message": exc.message, "hint": exc.hint},
        }


def format_status(item: dict[str, Any]) -> list[str]:
    """Format the state of a store."""
    if not item["ok"]:
        error = item["error"]
        lines = [f"Provider: {item['provider']}", f"Health: {error['message']}"]
        return [printable(line) for line in [*lines, *([f"Hint: {error['hint']}"] if error["hint"] else [])]]
    lines = [f"Provider: {item['provider']}"]
    if item["server"] is not None:
        lines.append(f"Server: {item['server']}")
    lines += [
        f"Database: {item['database']}",
        f"Schema version: {item['schema_version']}",
        f"Applied: {', '.join(item['applied']) or 'none'}",
        f"Pending: {', '.join(item['pending']) or 'none'}",
        f"Sessions: {item['sessions']:,}",
        f"Messages: {item['messages']:,}",
        f"Not indexed yet: {item['waiting_for_index']:,}",
        f"Health: ok, responds in {item['latency_ms']:.1f} ms",
    ]
    return [printable(line) for line in lines]


def _status_item(config: Config, store: SessionDBProvider) -> dict[str, Any]:
    health = store.health()
    if not health["ok"]:
        return {"provider": health["provider"], "ok": False, "error": health["error"]}
    names = applied_migrations(store)
    counted = count(store)
    return {
        "provider": health["provider"],
        "ok": True,
        "latency_ms": health["latency_ms"],
        "server": health.get("server"),
        "database": display_address(store),
        "schema_version": health["schema_version"],
        "applied": names,
        "pending": missing_migrations(names, config.sessiondb.provider),
        "sessions": counted.sessions,
        "messages": counted.messages,
        "waiting_for_index": counted.waiting,
    }
