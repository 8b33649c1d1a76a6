"""The log file of the command line, in the Hermes home: log records never appear on the user's terminal."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from hermes.cli.display.terminal import printable
from hermes.errors import HermesError
from hermes.home import ensure_private_dir, get_hermes_home, private_opener

DIRECTORY, NAME = "logs", "hermes.log"
MAX_BYTES = 1024 * 1024
MAX_RECORD = 4_000


class LogFile(logging.Handler):
    """Appends one line per record. A file larger than `MAX_BYTES` is renamed to `hermes.log.1`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record. A record that cannot be written is dropped: there is nowhere left to report it."""
        try:
            line = format_record(record)
            path = log_path()
            ensure_private_dir(path.parent)
            _rotate(path)
            with open(path, "ab", opener=private_opener) as file:
                file.write(line.encode("utf-8", "backslashreplace"))
        except (OSError, HermesError, TypeError, ValueError):
            return


def log_path() -> Path:
    """The path of the log file."""
    return get_hermes_home() / DIRECTORY / NAME


def format_record(record: logging.LogRecord) -> str:
    """Format a record as one line without control characters."""
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(record.created))
    return f"{when} {os.getpid()} {record.levelname} {record.name}: {printable(record.getMessage()[:MAX_RECORD])}\n"


def log_to_file() -> None:
    """Send the log records of this process, including those of libraries, to the log file."""
    logging.getLogger().addHandler(LogFile())


def _rotate(path: Path) -> None:
    if path.exists() and path.stat().st_size > MAX_BYTES:
        os.replace(path, path.with_name(f"{NAME}.1"))
