"""`hermes doctor`: checks of the installation and the session store, each with a remedy."""

from __future__ import annotations

import os
import shlex
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from hermes import __version__
from hermes.cli.display.findings import format_findings, summarize_findings
from hermes.cli.display.terminal import terminal_width, write_json, write_stderr, write_stdout
from hermes.cli.errors import FAILED
from hermes.cli.options import AS_JSON
from hermes.cli.progress import progress
from hermes.config import CONFIG_FILENAME, ENV_FILENAME, Config, EndpointConfig, load_config, load_variables
from hermes.errors import HermesError, NoModel
from hermes.home import get_hermes_home, serves_more_than_hermes
from hermes.state.engine import Report
from hermes.state.maintenance.findings import (
    Check,
    CheckResult,
    Finding,
    Status,
    error,
    not_checked,
    note,
    ok,
    run_check,
    warning,
    worst_status,
)
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
@click.option("--deep", is_flag=True, help="Read the whole database, which may take long.")
@click.option("--no-network", "is_local", is_flag=True, help="Do not ask the endpoint of the model.")
@AS_JSON
@click.pass_context
def doctor(context: click.Context, deep: bool, is_local: bool, as_json: bool) -> None:
    """Check the installation and the database for problems.

    The command only reads. Run it at any time, also while other programs write or if the database is damaged. Without
    --deep it takes about a second, whatever the size of the database, and at most five more if the model's endpoint
    does not respond. The exit code is 1 if a check finds an error.
    """
    with progress() as report:
        findings = examine_installation(is_deep=deep, is_local=is_local, report=report)
    if as_json:
        items = [asdict(each) for each in findings]
        write_json({"schema": SCHEMA, "items": items, "total": len(items), "next": None})
    else:
        write_stdout("\n".join(format_findings(findings, terminal_width())))
        write_stderr(summarize_findings(findings))
    if worst_status(findings) is Status.ERROR:
        context.exit(FAILED)


def examine_installation(
    *, is_deep: bool = False, is_local: bool = False, report: Report | None = None
) -> list[Finding]:
    """Check the program, the Hermes home, the model and the store, and return the findings."""
    try:
        directory = get_hermes_home()
    except HermesError as exc:
        why = _failed_check(exc)
        return [run_check(Check("home", GROUP, lambda: why), _failed_check)]
    found = [
        run_check(Check(name, GROUP, partial(check, directory)), _failed_check)
        for name, check in PROGRAM_CHECKS.items()
        if not (is_local and name in NETWORK_CHECKS)
    ]
    config = _usable_config(directory)
    if config.sessiondb.provider == "sqlite":
        from hermes.state.sqlite.checks.checkup import examine as examine_file

        path, backups = config.sessiondb.sqlite_file(directory), config.backup.folder(directory)
        return found + examine_file(path, backups=backups, now=time.time(), is_deep=is_deep, report=report)
    return found + _examine_server(config, is_deep=is_deep)


def _examine_server(config: Config, *, is_deep: bool) -> list[Finding]:
    """Check a store on a server. Of a third-party provider, only check that it responds."""
    from hermes.cli.sessiondb.schema_versions import MODULES, applied_migrations, missing_migrations
    from hermes.state.provider import open_session_db
    from hermes.state.server.checkup import check_server, examine

    provider = config.sessiondb.provider
    opened = partial(open_session_db, config, read_only=True)
    if provider not in MODULES:
        return [run_check(Check("server", "server", partial(check_server, opened)), _failed_check)]
    return examine(
        opened, lambda store: missing_migrations(applied_migrations(store), provider), now=time.time(), is_deep=is_deep
    )


def check_version(_: Path) -> CheckResult:
    """Report the versions of Hermes and Python."""
    python = ".".join(map(str, sys.version_info[:3]))
    return ok(f"Hermes {__version__} on Python {python}", hermes=__version__, python=python, platform=sys.platform)


def check_home(directory: Path) -> CheckResult:
    """Check that the Hermes home is usable and private to its owner."""
    seen = {"path": str(directory)}
    try:
        status = directory.stat()
    except FileNotFoundError:
        return ok(f"{directory} does not exist yet", **seen)
    except OSError as exc:
        return error(f"{directory} cannot be reached: {exc.strerror}", "set HERMES_HOME to another directory", **seen)
    if not stat.S_ISDIR(status.st_mode):
        return error(f"{directory} is not a directory", "move it away, or set HERMES_HOME to another directory", **seen)
    seen["mode"] = f"{stat.S_IMODE(status.st_mode):04o}"
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        return error(
            f"you cannot read and write {directory}",
            f"as its owner or as root: {shlex.join(['chown', str(os.geteuid()), str(directory)])}",
            **seen,
        )
    try:
        refuse_home_of_others(directory)
    except HermesError as exc:
        return error(exc.message, exc.hint, **seen)
    if os.name != "posix" or not status.st_mode & OTHERS:
        return ok(f"{directory}, private to you", **seen)
    if serves_more_than_hermes(directory, status):
        return note(
            f"other users can open {directory}, which serves more than Hermes; they cannot read the files of Hermes",
            "set HERMES_HOME to a directory that only Hermes uses",
            **seen,
        )
    return warning(f"other users can open {directory}", shlex.join(["chmod", "700", str(directory)]), **seen)


def check_config(directory: Path) -> CheckResult:
    """Check that the settings can be read and are valid."""
    file = directory / CONFIG_FILENAME
    seen = {"path": str(file), "exists": file.exists()}
    try:
        config = load_config(directory)
        warnings = list(config.warnings)
        missing = _find_missing_model(config, directory)
    except HermesError as exc:
        return error(exc.message, exc.hint or f"correct {file}", **seen)
    remedies = [f"correct {file}"] if warnings else []
    if missing is not None:
        warnings.append(missing.message)
        remedies.append(missing.hint)
    if warnings:
        return warning("; ".join(warnings), "; ".join(remedies), **seen, warnings=warnings)
    return ok(f"{file}" if file.exists() else "no config.yaml: all settings have their defaults", **seen, warnings=[])


def _find_missing_model(config: Config, directory: Path) -> NoModel | None:
    """Return why a configured model cannot be used here: no provider or no key, which another terminal may have.

    Raise `ConfigError` if the model can be used nowhere, or only by exposing its key.
    """
    from hermes.agent.models.choice import choose_auxiliary_model, choose_model

    variables = load_variables(directory)
    section: str = "model"
    settings: EndpointConfig = config.model
    try:
        main = choose_model(config.model, variables)
        section, settings = "model.auxiliary", config.model.auxiliary
        choose_auxiliary_model(config.model, variables, main)
    except NoModel as exc:
        name = next(each for each in ("provider", "base_url", "api_key", "default") if getattr(settings, each))
        return NoModel(f"no chat can start: {exc.message} ({section}.{name} in config.yaml)", hint=exc.hint)
    return None


def check_permissions(directory: Path) -> CheckResult:
    """Check that only the owner can read the settings and the secrets."""
    files = [file for name in (CONFIG_FILENAME, ENV_FILENAME) if (file := directory / name).exists()]
    modes = {str(file): f"{stat.S_IMODE(file.stat().st_mode):04o}" for file in files}
    if os.name != "posix" or not files:
        return ok("no settings that others could read", modes=modes)
    open_files = [str(file) for file in files if file.stat().st_mode & OTHERS]
    if open_files:
        return warning(
            f"other users can read {', '.join(open_files)}", shlex.join(["chmod", "600", *open_files]), modes=modes
        )
    return ok("only you can read the settings", modes=modes)


def check_model(directory: Path) -> CheckResult:
    """Check that the endpoint of the model responds, accepts the key and offers the model."""
    from hermes.cli.setup.endpoint_check import check_endpoint

    return check_endpoint(_usable_config(directory), load_variables(directory))


PROGRAM_CHECKS: dict[str, Callable[[Path], CheckResult]] = {
    "version": check_version,
    "home": check_home,
    "config": check_config,
    "config-permissions": check_permissions,
    "model": check_model,
}
"""The checks besides those of the store, by the names of their findings."""

NETWORK_CHECKS = frozenset(("model",))
"""The checks that `--no-network` leaves out."""


def _usable_config(directory: Path) -> Config:
    """Return the settings, or the defaults if they cannot be read: the store is probably in its default place."""
    try:
        return load_config(directory)
    except HermesError:
        return Config()


def _failed_check(exc: Exception) -> CheckResult:
    if isinstance(exc, HermesError):
        return error(exc.message, exc.hint)
    return not_checked(f"{exc}", Status.WARNING, "try again; the other checks ran")
