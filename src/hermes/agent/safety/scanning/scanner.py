"""Scans commands with Tirith before they run: finds the program, runs it, and decides what a failure means."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

from hermes.agent.safety.environment import command_environment
from hermes.agent.safety.scanning.findings import CommandNotScannable, ScanFailed, ScanReport
from hermes.agent.safety.visible_text import make_path_visible
from hermes.config import SecurityConfig
from hermes.errors import ConfigError, HermesError
from hermes.log import warn
from hermes.trust import refuse_settings_of_others

if TYPE_CHECKING:
    from hermes.agent.safety.scanning.installation import Source

DEFAULT_NAME = "tirith"
INSTALLED = "bin/tirith"
"""Where Hermes installs it, in the Hermes home."""


class CommandScanner:
    """Scans commands as the settings say; threads may share it."""

    def __init__(self, settings: SecurityConfig, home: Path, environ: Mapping[str, str] | None = None) -> None:
        self._settings = settings
        self._home = home
        self._environ = os.environ if environ is None else environ
        self._lock = Lock()
        self._installing: Thread | None = None
        self._is_tried = False
        if settings.tirith_install_url is not None:
            from hermes.agent.safety.scanning.installation import check_url

            check_url(settings.tirith_install_url)
            if settings.tirith_sha256 is None:
                raise ConfigError(
                    "security.tirith_install_url needs security.tirith_sha256",
                    hint="write the SHA-256 checksum of the file at that address",
                )

    def scan(
        self, command: str, is_cancelled: Callable[[], bool] = lambda: False, project: Path | None = None
    ) -> ScanReport:
        """Return what Tirith says about a command; without Tirith, that it is allowed. See `find` for `project`."""
        settings = self._settings
        if not settings.tirith_enabled:
            return ScanReport()
        binary = None
        try:
            binary = self.find(project)
            if binary is None:
                self._install_in_background()
                raise ScanFailed("it is not installed")
            from hermes.agent.safety.scanning.tirith import run_tirith

            return run_tirith(
                binary,
                command,
                timeout_s=settings.tirith_timeout,
                environ=command_environment(self._environ),
                is_cancelled=is_cancelled,
            )
        except CommandNotScannable as error:
            return ScanReport("block", note=f"Tirith did not check it: {error.message}")
        except (ScanFailed, ConfigError) as error:
            return self._judge_failure(error, is_missing=binary is None and isinstance(error, ScanFailed))

    def find(self, project: Path | None = None) -> Path | None:
        """Return the program: the configured one, else that of PATH, else the installed one; None if there is none.

        A program of PATH inside of `project`, a directory without links, may be anything, and is passed over.
        Raise `ScanFailed` if the configured one does not exist, and `ConfigError` if another user can change it.
        """
        named = self._settings.tirith_path
        if named != DEFAULT_NAME:
            path = Path(os.path.expanduser(named))
            found = _on_path(named, self._environ) if path.name == named else self._home / path
            if found is None or not _is_program(found):
                raise ScanFailed(f"there is no program {make_path_visible(named)}, which security.tirith_path names")
            refuse_settings_of_others(found)
            return found
        installed = self._home / INSTALLED
        found = _on_path(named, self._environ, project) or (installed if _is_program(installed) else None)
        if found is not None:
            refuse_settings_of_others(found)
        return found

    def wait_for_installation(self, timeout_s: float) -> None:
        """Wait until a download that runs in the background has ended."""
        if self._installing is not None:
            self._installing.join(timeout_s)

    def _judge_failure(self, error: ScanFailed | ConfigError, *, is_missing: bool) -> ScanReport:
        is_configured = self._settings.tirith_path != DEFAULT_NAME
        if not self._settings.tirith_fail_open:
            return ScanReport("block", note=f"Tirith did not check it: {error.message}")
        if is_missing and not is_configured:
            return ScanReport()  # most people do not have it, and have not asked for it
        return ScanReport(note=f"Tirith did not check it: {error.message}")

    def _install_in_background(self) -> None:
        """Start the download once, if the operator has configured one."""
        url, sha256 = self._settings.tirith_install_url, self._settings.tirith_sha256
        if url is None or sha256 is None or self._settings.tirith_path != DEFAULT_NAME:
            return
        from hermes.agent.safety.scanning.installation import Source, may_try

        with self._lock:
            if self._is_tried or not may_try(self._home, time.time()):
                return
            self._is_tried = True
            source = Source(url, sha256, self._settings.tirith_cosign_key)
            self._installing = Thread(target=self._install, args=(source,), name="hermes-tirith", daemon=True)
            self._installing.start()

    def _install(self, source: Source) -> None:
        from hermes.agent.safety.scanning.installation import InstallFailed, install

        try:
            cosign = _which("cosign", self._environ)
            if cosign is not None and source.cosign_key is not None:
                refuse_settings_of_others(Path(cosign))
            install(self._home, source, cosign=cosign)
        except (InstallFailed, HermesError, OSError) as error:
            warn(__name__, "Tirith was not installed: %s", error)


def _on_path(name: str, environ: Mapping[str, str], project: Path | None = None) -> Path | None:
    found = _which(name, environ, project)
    return None if found is None else Path(found)


def _which(name: str, environ: Mapping[str, str], project: Path | None = None) -> str | None:
    """Return a program of PATH; a relative entry of PATH could be any directory."""
    for directory in environ.get("PATH", "").split(os.pathsep):
        path = Path(directory, name)
        if os.path.isabs(directory) and _is_program(path) and not (project and _is_in(path, project)):
            return str(path)
    return None


def _is_in(path: Path, directory: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(directory) or path.is_relative_to(directory)


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
