"""`hermes doctor`: what is wrong with the session store, and what to do about it."""

from __future__ import annotations

import os
import shlex
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from hermes import __version__
from hermes.cli.failures import FAILED
from hermes.cli.findings import report_of, verdict
from hermes.cli.options import AS_JSON
from hermes.cli.progress import progress
from hermes.cli.terminal import talk, terminal_width, write, write_json
from hermes.config import CONFIG_FILENAME, ENV_FILENAME, Config, load_config, load_variables
from hermes.errors import HermesError, NoModel
from hermes.home import get_hermes_home, serves_more_than_hermes
from hermes.state.checkup import Check, Finding, Outcome, Status, error, finding, not_checked, note, ok, warning, worst
from hermes.state.engine import Report
from hermes.trust import refuse_home_of_others

SCHEMA = "hermes.doctor/1"
GROUP = "program"
OTHERS = 0o077


@click.command(
    epilog="""\b
Examples:
  hermes doctor
  hermes doctor --deep
  hermes doctor --json | jq -r '.items[] | select(.status == "error") | .remedy'""",
)
@click.option("--deep", is_flag=True, help="Look at all of it, however long that takes.")
@AS_JSON
@click.pass_context
def doctor(context: click.Context, deep: bool, as_json: bool) -> None:
    """Look for what is wrong, and say what to do about it.

    It only reads, and may run at any time, also while other programs write or when the database is damaged. Without
    --deep it takes about a second, whatever the size of the database. It ends with 1 if something is an error.
    """
    with progress() as report:
        findings = examine(is_deep=deep, report=report)
    if as_json:
        items = [asdict(each) for each in findings]
        write_json({"schema": SCHEMA, "items": items, "total": len(items), "next": None})
    else:
        write("\n".join(report_of(findings, terminal_width())))
        talk(verdict(findings))
    if worst(findings) is Status.ERROR:
        context.exit(FAILED)


def examine(*, is_deep: bool = False, report: Report | None = None) -> list[Finding]:
    """Look at the program, its home and its store."""
    try:
        directory = get_hermes_home()
    except HermesError as exc:
        why = _explain(exc)
        return [finding(Check("home", GROUP, lambda: why), _explain)]
    found = [finding(Check(name, GROUP, partial(look, directory)), _explain) for name, look in PROGRAM.items()]
    config = _usable_config(directory)
    if config.sessiondb.provider == "sqlite":
        from hermes.state.sqlite.checkup import examine as examine_file

        path, backups = config.sessiondb.sqlite_file(directory), config.backup.folder(directory)
        return found + examine_file(path, backups=backups, now=time.time(), is_deep=is_deep, report=report)
    return found + _examine_server(config, is_deep=is_deep)


def _examine_server(config: Config, *, is_deep: bool) -> list[Finding]:
    """Look at a store that is not in a file; of somebody else's provider only what the contract tells."""
    from hermes.cli.sessiondb.ledger import MODULES, applied, lacking
    from hermes.state.provider import open_session_db
    from hermes.state.server.checkup import answer, examine

    provider = config.sessiondb.provider
    opened = partial(open_session_db, config, read_only=True)
    if provider not in MODULES:
        return [finding(Check("server", "server", partial(answer, opened)), _explain)]
    return examine(opened, lambda store: lacking(applied(store), provider), now=time.time(), is_deep=is_deep)


def version(_: Path) -> Outcome:
    """Which program this is."""
    python = ".".join(map(str, sys.version_info[:3]))
    return ok(f"Hermes {__version__} on Python {python}", hermes=__version__, python=python, platform=sys.platform)


def home(directory: Path) -> Outcome:
    """Whether the Hermes home can be used, and by its owner alone."""
    seen = {"path": str(directory)}
    try:
        status = directory.stat()
    except FileNotFoundError:
        return ok(f"{directory} is not there yet", **seen)
    except OSError as exc:
        return error(f"{directory} cannot be reached: {exc.strerror}", "set HERMES_HOME to another place", **seen)
    if not stat.S_ISDIR(status.st_mode):
        return error(f"{directory} is not a directory", "move it away, or set HERMES_HOME to another place", **seen)
    seen["mode"] = f"{stat.S_IMODE(status.st_mode):04o}"
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        return error(
            f"{directory} cannot be read and written by you",
            f"as its owner or as root: {shlex.join(['chown', str(os.geteuid()), str(directory)])}",
            **seen,
        )
    try:
        refuse_home_of_others(directory)
    except HermesError as exc:
        return error(exc.message, exc.hint, **seen)
    if os.name != "posix" or not status.st_mode & OTHERS:
        return ok(f"{directory}, yours alone", **seen)
    if serves_more_than_hermes(directory, status):
        return note(
            f"{directory} is open to others, for it serves more than Hermes; the files in it are not",
            "set HERMES_HOME to a directory of its own",
            **seen,
        )
    return warning(f"{directory} is open to others", shlex.join(["chmod", "700", str(directory)]), **seen)


def configuration(directory: Path) -> Outcome:
    """Whether the settings can be read and are understood."""
    file = directory / CONFIG_FILENAME
    seen = {"path": str(file), "exists": file.exists()}
    try:
        config = load_config(directory)
        warnings = config.warnings
        _check_models(config, directory)
    except HermesError as exc:
        return error(exc.message, exc.hint or f"correct {file}", **seen)
    if warnings:
        return warning("; ".join(warnings), "correct what is named", **seen, warnings=list(warnings))
    return ok(f"{file}" if file.exists() else "no config.yaml: every setting has its default", **seen, warnings=[])


def _check_models(config: Config, directory: Path) -> None:
    """Raise `ConfigError` for a model that no request could be sent to, or none without showing its key."""
    from hermes.agent.models.choice import choose, choose_auxiliary

    variables = load_variables(directory)
    with suppress(NoModel):  # which may come with another terminal, or be started later
        choose_auxiliary(config.model, variables, choose(config.model, variables))


def permissions(directory: Path) -> Outcome:
    """Whether only the owner may read the settings and the secrets."""
    files = [file for name in (CONFIG_FILENAME, ENV_FILENAME) if (file := directory / name).exists()]
    modes = {str(file): f"{stat.S_IMODE(file.stat().st_mode):04o}" for file in files}
    if os.name != "posix" or not files:
        return ok("nothing that others could read", modes=modes)
    open_files = [str(file) for file in files if file.stat().st_mode & OTHERS]
    if open_files:
        return warning(
            f"others may read {', '.join(open_files)}", shlex.join(["chmod", "600", *open_files]), modes=modes
        )
    return ok("only you may read the settings", modes=modes)


PROGRAM: dict[str, Callable[[Path], Outcome]] = {
    "version": version,
    "home": home,
    "config": configuration,
    "config-permissions": permissions,
}
"""What is looked at besides the store, by the names of the findings."""


def _usable_config(directory: Path) -> Config:
    """The settings, or the defaults where they cannot be read: a store is most likely where it always is."""
    try:
        return load_config(directory)
    except HermesError:
        return Config()


def _explain(exc: Exception) -> Outcome:
    if isinstance(exc, HermesError):
        return error(exc.message, exc.hint)
    return not_checked(f"{exc}", Status.WARNING, "try again; the other checks were made")
