"""`hermes sessiondb migrate`: copies all sessions to another database."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import click

from hermes.cli.display.terminal import (
    printable,
    write_json,
    write_stderr,
    write_stderr_json,
    write_stdout,
)
from hermes.cli.errors import FAILED
from hermes.cli.options import AS_JSON
from hermes.cli.progress import progress
from hermes.cli.sessiondb.argument import read_argument
from hermes.cli.sessiondb.speed import SpeedReporter
from hermes.cli.store import read_config
from hermes.config import Config, load_variables
from hermes.errors import InvalidValue, NotFound, StoreUnavailable
from hermes.phrases import plural
from hermes.state.engine import Report
from hermes.state.indexing.index_backlog import index_backlog
from hermes.state.provider import SessionDBProvider, open_session_db
from hermes.state.transfer.counts import StoreCounts, count
from hermes.state.transfer.migration import Migration
from hermes.state.transfer.store_address import config_for, config_for_file, display_address, identity_of
from hermes.state.transfer.verification import Difference

SCHEMA = "hermes.migrated/1"
SHOWN = 20
"""The number of sessions listed one by one; `--json` lists all."""


@dataclass
class MigrationReport:
    """The result of a migration."""

    origin: str
    target: str
    again: str
    """The command that resumes the migration."""
    sessions: int = 0
    messages: int = 0
    fts_entries: int = 0
    seconds: float = 0.0
    index_seconds: float = 0.0
    waiting_for_index: int = 0
    keeps_ids: bool = True
    changing: list[str] = field(default_factory=list)
    differences: list[Difference] | None = None

    @property
    def mismatches(self) -> list[Difference]:
        """The sessions that differ between origin and target."""
        return [each for each in self.differences or [] if not each.is_ahead]


@click.command(
    epilog="""\b
Examples:
  hermes sessiondb migrate --dry-run
  hermes sessiondb migrate --verify
  hermes sessiondb migrate --from ~/old/state.db --to 'postgresql://hermes@db/hermes'
  hermes sessiondb migrate --from 'mysql://hermes:${DB_PASSWORD}@db/hermes' --to ~/.hermes/state.db""",
)
@click.option("--to", "target_name", metavar="DSN", help="Target: a DSN or a file. Default: the configured database.")
@click.option("--from", "origin_name", metavar="PATH|DSN", help="Origin: a file or a DSN. Default: state.db.")
@click.option("--dry-run", is_flag=True, help="Show what would be copied, and copy nothing.")
@click.option("--resume", is_flag=True, help="Resume an unfinished migration.")
@click.option("--verify", "is_verified", is_flag=True, help="Afterwards compare a hash of every session.")
@AS_JSON
def migrate(
    target_name: str | None, origin_name: str | None, dry_run: bool, resume: bool, is_verified: bool, as_json: bool
) -> None:
    """Copy all sessions to another database.

    The origin is only read and may be in use. An empty target gets everything, with the same message ids; another
    target gets what it lacks. You can interrupt a migration at any time and resume it with --resume.
    """
    config = read_config(as_json=as_json)
    origin = config_for_file(config) if origin_name is None else _read_address(config, origin_name)
    target = _choose_target(config, target_name)
    with _open_origin(origin) as store:
        if dry_run:
            _report_plan(count(store), _count_target(target, as_json=as_json), as_json=as_json)
            return
        with open_session_db(target) as receiver:
            outcome = MigrationReport(
                display_address(store), display_address(receiver), again=_resume_command(origin_name, target_name)
            )
            if identity_of(store) == identity_of(receiver):
                raise InvalidValue("origin and target are the same database", hint="choose another target with --to")
            _run_migration(store, receiver, outcome, resume=resume, is_verified=is_verified)
    _report_migration(outcome, as_json=as_json)
    if outcome.mismatches:
        click.get_current_context().exit(FAILED)


def _choose_target(config: Config, name: str | None) -> Config:
    if name is not None:
        return _read_address(config, name)
    if config.sessiondb.provider == "sqlite":
        raise click.UsageError("no target: pass --to, or set sessiondb.provider and sessiondb.dsn")
    return config


def _read_address(config: Config, text: str) -> Config:
    return config_for(read_argument(text, load_variables()), config)


def _resume_command(origin_name: str | None, target_name: str | None) -> str:
    """Return the command that resumes a migration, without DSNs, which may contain passwords."""
    parts = ["hermes sessiondb migrate"]
    for option, name in (("--from", origin_name), ("--to", target_name)):
        if name is not None:
            parts.append(f"{option} {shlex.quote(name) if os.path.exists(name) else 'DSN'}")
    return " ".join([*parts, "--resume"])


@contextmanager
def _open_origin(config: Config) -> Iterator[SessionDBProvider]:
    path = config.sessiondb.path
    if config.sessiondb.provider == "sqlite" and path is not None and not os.path.exists(path):
        raise NotFound(f"there is no file {path}", hint="choose the origin with --from")
    with open_session_db(config, read_only=True) as store:
        yield store


def _run_migration(
    store: SessionDBProvider, receiver: SessionDBProvider, outcome: MigrationReport, *, resume: bool, is_verified: bool
) -> None:
    began = time.monotonic()
    with _progress() as report:
        migration = Migration(store, receiver, report)
        migration.begin(resume=resume)
        try:
            outcome.changing = migration.copy_all()
            if not outcome.changing:
                migration.finish()
        except KeyboardInterrupt:
            copied = migration.progress
            write_stderr(
                f"Interrupted after {plural(copied.sessions, 'session')} and {plural(copied.messages, 'message')}."
                f" Resume with: {outcome.again}"
            )
            raise
    outcome.sessions, outcome.messages = migration.progress.sessions, migration.progress.messages
    outcome.keeps_ids = migration.progress.mode == "copy"
    outcome.seconds = time.monotonic() - began
    if is_verified:
        with _progress() as report:
            outcome.differences = list(migration.compare(report))
    _index_target(receiver, outcome)


def _index_target(receiver: SessionDBProvider, outcome: MigrationReport) -> None:
    began = time.monotonic()
    try:
        with _progress() as report:
            index_backlog(receiver, report)
    except KeyboardInterrupt:
        write_stderr("All sessions are copied. Search finds them all, but more slowly until the index is complete.")
        raise
    outcome.index_seconds = time.monotonic() - began
    outcome.waiting_for_index = count(receiver).waiting
    outcome.fts_entries = max(0, outcome.messages - outcome.waiting_for_index)


@contextmanager
def _progress() -> Iterator[Report | None]:
    with progress() as report:
        yield None if report is None else SpeedReporter(report)


def _count_target(target: Config, *, as_json: bool) -> StoreCounts | None:
    """Count what is in the target; None if it does not exist yet or is unreachable."""
    try:
        with open_session_db(target, read_only=True) as receiver:
            return count(receiver)
    except StoreUnavailable as exc:
        if as_json:
            write_stderr_json({"warning": {"message": exc.message}})
        else:
            write_stderr(f"Note: {exc.message}")
        return None


def _report_plan(origin: StoreCounts, target: StoreCounts | None, *, as_json: bool) -> None:
    if as_json:
        item: dict[str, Any] = {"dry_run": True, "sessions": origin.sessions, "messages": origin.messages}
        item["target"] = None if target is None else {"sessions": target.sessions, "messages": target.messages}
        write_json({"schema": SCHEMA, "item": item})
        return
    write_stdout(f"Would migrate {origin.sessions:,} sessions, {origin.messages:,} messages.")
    if target is not None and target.sessions:
        write_stderr(
            f"The target already has {target.sessions:,} sessions, {target.messages:,} messages; it gets what it lacks."
        )


def _report_migration(outcome: MigrationReport, *, as_json: bool) -> None:
    if as_json:
        item = asdict(outcome)
        places = {"from": item.pop("origin"), "to": item.pop("target")}
        del item["again"]
        write_json({"schema": SCHEMA, "item": {"dry_run": False, **places, **item}})
        return
    write_stdout(
        f"Migrated {outcome.sessions:,} sessions, {outcome.messages:,} messages, {outcome.fts_entries:,} FTS entries"
        f" in {outcome.seconds:.1f}s"
    )
    _report_details(outcome)


def _report_details(outcome: MigrationReport) -> None:
    if outcome.fts_entries or outcome.waiting_for_index:
        waiting = f"; {outcome.waiting_for_index:,} messages are not indexed yet" if outcome.waiting_for_index else ""
        write_stderr(f"The search index took {outcome.index_seconds:.1f}s{waiting}.")
    if outcome.differences is not None and not outcome.mismatches:
        write_stderr("Verified: every session has the same hash in both databases.")
    for each in (outcome.differences or [])[:SHOWN]:
        write_stderr(printable(f"{'Note' if each.is_ahead else 'Mismatch'}: {each.session_id} {each.what}"))
    if outcome.mismatches:
        sessions = plural(len(outcome.mismatches), "session")
        write_stderr(
            f"{sessions} in the target {'differs' if len(outcome.mismatches) == 1 else 'differ'} from {outcome.origin}."
        )
    if outcome.changing:
        names = ", ".join(outcome.changing[:SHOWN]) + (", ..." if len(outcome.changing) > SHOWN else "")
        write_stderr(
            f"{plural(len(outcome.changing), 'session')} kept changing: {names}."
            f" Repeat this when no program writes there: {outcome.again}"
        )
