"""The history of what the user typed, also in earlier chats."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory

from hermes.home import create_private_file, ensure_private_dir, write_private_atomic
from hermes.log import warn

HISTORY = "chat_history"
MAX_HISTORY_BYTES = 512 * 1024


class PrivateHistory(FileHistory):
    """The history of earlier input, in a file that only its owner can read.

    If the file cannot be read or written, earlier history is missing, but current input is never lost.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(str(path))

    def load_history_strings(self) -> Iterable[str]:
        """Return the entries of the file, newest first; none if it cannot be read."""
        try:
            return list(super().load_history_strings()) if self._is_plain() else []
        except OSError as error:
            warn(__name__, "%s cannot be read: %s", self._path, error.strerror)
            return []

    def append_string(self, string: str) -> None:
        """Add an entry."""
        super().append_string(valid_input(string))

    def store_string(self, string: str) -> None:
        """Append an entry to the file, if it is writable."""
        try:
            create_private_file(self._path)
            if self._is_plain():
                super().store_string(string)
        except OSError as error:
            warn(__name__, "%s cannot be written: %s", self._path, error.strerror)

    def shorten(self) -> None:
        """Delete older entries of a file larger than `MAX_HISTORY_BYTES`."""
        try:
            if not self._is_plain() or self._path.stat().st_size <= MAX_HISTORY_BYTES:
                return
            data = self._path.read_bytes()
            cut = data.find(b"\n# ", len(data) - MAX_HISTORY_BYTES // 2)
            write_private_atomic(self._path, data[cut:] if cut >= 0 else b"")
        except OSError as error:
            warn(__name__, "%s cannot be shortened: %s", self._path, error.strerror)

    def _is_plain(self) -> bool:
        """Whether the path is a regular file; reading a pipe or a device might never end."""
        return self._path.is_file()


def open_history(home: Path) -> PrivateHistory:
    """Return the history of a Hermes home."""
    ensure_private_dir(home)
    history = PrivateHistory(home / HISTORY)
    history.shorten()
    return history


def valid_input(text: str) -> str:
    """Return typed text with bytes that are not UTF-8 as U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
