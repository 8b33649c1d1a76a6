"""Runs the program Tirith, which judges a command by its text, within limits of time and size."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.agent.safety.scanning.findings import CommandNotScannable, Finding, ScanFailed, ScanReport, Verdict
from hermes.agent.safety.visible_text import make_visible

VERDICTS: Mapping[int, Verdict] = {0: "allow", 1: "block", 2: "warn"}
"""What an exit code of Tirith means; any other one is a failure."""
MAX_FINDINGS = 50
MAX_SUMMARY = 500
MAX_COMMAND_BYTES = 100_000
"""Linux passes at most 128 KiB in one argument."""

_MAX_TEXT = 200
_MAX_OUTPUT = 262_144
_READ_BYTES = 65_536
_POLL_S = 0.05
_NAMES, _TITLES = ("rule_id", "rule", "id"), ("title", "message", "description", "detail")


def arguments(binary: Path, command: str) -> list[str]:
    """Return the command line of Tirith for a shell command."""
    return [str(binary), "check", "--json", "--non-interactive", "--shell", "posix", "--", command]


def run_tirith(
    binary: Path,
    command: str,
    *,
    timeout_s: float,
    environ: Mapping[str, str],
    is_cancelled: Callable[[], bool] = lambda: False,
) -> ScanReport:
    """Let Tirith judge a command; raise `ScanFailed` if it gives no verdict in time."""
    try:
        if len(os.fsencode(command)) > MAX_COMMAND_BYTES or "\0" in command:
            raise CommandNotScannable("the command is too long to be scanned")
    except UnicodeEncodeError:
        raise CommandNotScannable("the command is not valid text") from None
    try:
        process = subprocess.Popen(
            arguments(binary, command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=dict(environ),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise ScanFailed(f"it could not be started: {reason}") from None
    try:
        output = _read_output(process, time.monotonic() + timeout_s, is_cancelled)
    finally:
        _end(process)
    if output is None:
        raise ScanFailed("it was stopped" if is_cancelled() else f"it took more than {timeout_s:g} s")
    code = process.returncode
    if code not in VERDICTS:
        raise ScanFailed(f"it ended with exit code {code}" if code >= 0 else f"it was ended by signal {-code}")
    findings, summary = read_findings(output)
    return ScanReport(VERDICTS[code], findings, summary)


def read_findings(output: bytes) -> tuple[tuple[Finding, ...], str]:
    """Return the findings and the summary in an output; anything else in it is ignored."""
    try:
        data = json.loads(output.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return (), ""
    if not isinstance(data, dict):
        return (), ""
    listed = data.get("findings")
    found = [_finding(each) for each in listed[:MAX_FINDINGS]] if isinstance(listed, list) else []
    return tuple(each for each in found if each is not None), _clean(data.get("summary"), MAX_SUMMARY)


def _finding(data: Any) -> Finding | None:
    if isinstance(data, str):
        text = _clean(data, _MAX_TEXT)
        return Finding("tirith", text) if text else None
    if not isinstance(data, dict):
        return None
    rule = next((text for name in _NAMES if (text := _clean(data.get(name), 60))), "tirith")
    title = next((text for name in _TITLES if (text := _clean(data.get(name), _MAX_TEXT))), "")
    severity = _clean(data.get("severity"), 20).lower()
    return Finding(rule, f"{rule}{f' ({severity})' if severity else ''}{f': {title}' if title else ''}")


def _clean(value: Any, limit: int) -> str:
    """Return a text on one line, limited, and without anything that acts on a terminal."""
    return make_visible(" ".join(value[: 4 * limit].split()))[:limit] if isinstance(value, str) else ""


def _read_output(process: subprocess.Popen[bytes], deadline: float, is_cancelled: Callable[[], bool]) -> bytes | None:
    """Return the beginning of the output when the process has ended; None at the deadline or if cancelled."""
    assert process.stdout is not None
    kept = bytearray()
    os.set_blocking(process.stdout.fileno(), False)
    is_open = True
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            # Another process may keep the pipe open, so the end of Tirith itself counts.
            has_ended = _has_ended(process)
            while is_open and (chunk := process.stdout.read(_READ_BYTES)) is not None:
                is_open = bool(chunk)
                kept += chunk[: _MAX_OUTPUT - len(kept)]
                if time.monotonic() >= deadline:
                    break
            if has_ended:
                return bytes(kept)
            left = deadline - time.monotonic()
            if left <= 0 or is_cancelled():
                return None
            if is_open:
                selector.select(min(left, _POLL_S))
            else:
                time.sleep(min(left, _POLL_S / 10))


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process has ended; where possible its number stays reserved until `_end` has used it."""
    if not hasattr(os, "waitid"):  # macOS
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process with everything that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # the whole group has ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
