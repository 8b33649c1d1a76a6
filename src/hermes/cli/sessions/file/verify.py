"""`hermes sessions verify`: checks the database or a backup for damage."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from hermes.cli.display.terminal import printable, write_json, write_stdout
from hermes.cli.display.times import ago
from hermes.cli.errors import FAILED
from hermes.cli.options import AS_JSON
from hermes.cli.progress import progress
from hermes.cli.store import database_file, read_config
from hermes.config import Config
from hermes.errors import ConfigError, NotFound, StoreUnavailable
from hermes.phrases import format_megabytes, plural
from hermes.state.sqlite.checks.verify import Defect, DefectKind, Depth, Verdict
from hermes.state.sqlite.checks.verify import verify as verify_file
from hermes.state.sqlite.files.names import bytes_of, real_file
from hermes.state.sqlite.schema.inspection import SchemaState

OWN_TOOLS = {
    "postgresql": "use `pg_dump`, `pg_restore` and `pg_amcheck`; see docs/guide/providers.md",
    "mysql": "use `mariadb-dump` or `mysqldump`, and `mariadb-check`; see docs/guide/providers.md",
}
"""The tools of each server that do what these commands do for a file."""

SCHEMA = "hermes.verified/1"


@click.command(
    epilog="""\b
Examples:
  hermes sessions verify
  hermes sessions verify ~/.hermes/backups/state-20261116_021530.db --quick""",
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--quick", is_flag=True, help="Check the pages only, not whether their contents agree.")
@AS_JSON
def verify(file: Path | None, quick: bool, as_json: bool) -> None:
    """Check the database or a backup for damage.

    The command only reads; other programs can read and write meanwhile. If it finds a problem, it says what to do and
    exits with 1.
    """
    config = read_config(as_json=as_json)
    database = sqlite_file(config, must_be_there=file is None)
    path = database if file is None else file.absolute()
    is_backup = real_file(path) != real_file(database)
    with progress() as report:
        verdict = verify_file(path, Depth.QUICK if quick else Depth.FULL, is_backup=is_backup, report=report)
    if as_json:
        write_json({"schema": SCHEMA, "item": verdict_json(verdict) | {"good": not verdict.defects, "quick": quick}})
    else:
        write_stdout("\n".join(format_verdict(verdict, now=time.time(), is_quick=quick)))
    if verdict.defects:
        click.get_current_context().exit(FAILED)


def sqlite_file(config: Config, *, must_be_there: bool) -> Path:
    """Return the database file of the configured store; raise `ConfigError` if the store is on a server."""
    provider = config.sessiondb.provider
    if provider != "sqlite":
        hint = OWN_TOOLS.get(provider, "use the tools of that database")
        raise ConfigError(f"this command needs a SQLite database, but the provider is {provider}", hint=hint)
    path = database_file(config)
    if must_be_there:
        try:
            path.stat()
        except FileNotFoundError:
            raise NotFound(f"there is no database {path}", hint="check HERMES_HOME and sessiondb.path") from None
        except OSError as error:
            raise StoreUnavailable(f"the database {path} cannot be reached: {error.strerror}") from error
    return path


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Return the verdict on a file for JSON output."""
    inspection, contents = verdict.inspection, verdict.contents
    return {
        "path": str(verdict.path),
        "size_bytes": bytes_of(verdict.path),
        "standing": str(inspection.state) if inspection else None,
        "schema_version": inspection.version if inspection else None,
        "sessions": contents.sessions if contents else None,
        "messages": contents.messages if contents else None,
        "newest_message": contents.newest if contents else None,
        "compared": verdict.is_compared,
        "findings": [finding_json(each) for each in verdict.defects],
    }


def finding_json(defect: Defect) -> dict[str, str]:
    """Return a defect for JSON output."""
    return {"code": defect.code, "kind": str(defect.kind), "message": defect.message, "hint": defect.hint}


def format_verdict(verdict: Verdict, *, now: float, is_quick: bool = False) -> list[str]:
    """Format the verdict on a file."""
    lines = [f"{verdict.path}: {'problems found' if verdict.defects else 'ok'}"]
    facts = [format_megabytes(bytes_of(verdict.path))]
    if verdict.contents is not None:
        facts = [
            plural(verdict.contents.sessions, "session"),
            plural(verdict.contents.messages, "message"),
            f"newest message {ago(verdict.contents.newest, now)}",
            *facts,
        ]
    if verdict.inspection is not None and verdict.inspection.version:
        facts.append(f"schema {verdict.inspection.version}")
    lines.append(f"  {', '.join(facts)}")
    for defect in verdict.defects:
        lines += [f"- {defect.message}", f"  {defect.hint}"]
    if verdict.contents is not None and not verdict.is_compared and not is_quick:
        lines.append(f"  Not compared: the counts and the search index, because {_why_not_compared(verdict)}")
    return [printable(line) for line in lines]


def _why_not_compared(verdict: Verdict) -> str:
    if verdict.has(DefectKind.DAMAGE):
        return "the file is not intact."
    if verdict.inspection is not None and verdict.inspection.state is SchemaState.UPSTREAM:
        return "the file belongs to another program."
    return (
        "an older version made the file, or another program has changed it. Open the file once for writing, and verify"
        " it again."
    )
