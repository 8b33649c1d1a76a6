"""Piped text: read completely, up to a limit, and joined to the question."""

from __future__ import annotations

import time

from hermes.cli.chat.keyboard.stdin_lines import read_chunk_before
from hermes.cli.chat.terminal.signals import Signals, raise_chat_ended
from hermes.errors import InvalidValue
from hermes.phrases import format_size

MAX_BYTES = 1024 * 1024
PATIENCE_S = 5.0
"""How long a question waits for the first byte on stdin, which may be open but never written to."""
BOM = "\ufeff"


class NoInput(Exception):
    """No byte arrived on stdin in time."""


def read_text(signals: Signals, patience_s: float | None) -> str:
    """Return all of stdin as text, empty if there is none.

    Raise `NoInput` if the first byte does not arrive in time; after it, stdin is read to its end. Raise `InvalidValue`
    for more than `MAX_BYTES` and for binary data. Bytes that are not UTF-8 become U+FFFD.
    """
    return decode_text(_read_bytes(signals, patience_s))


def decode_text(data: bytes) -> str:
    """Decode bytes as UTF-8 text; raise `InvalidValue` for binary data."""
    if (place := data.find(b"\0")) >= 0:
        raise InvalidValue(
            f"stdin is not text: byte {place + 1} is zero; nothing was sent",
            hint="convert it to UTF-8 text first, for example with `strings` or `iconv -t utf-8`",
        )
    return data.decode("utf-8", "replace").removeprefix(BOM).rstrip()


def join_message(question: str | None, text: str) -> str:
    """Join the question and the text with an empty line."""
    return "\n\n".join(part for part in (question, text) if part and part.strip())


def _read_bytes(signals: Signals, patience_s: float | None) -> bytes:
    chunks: list[bytes] = []
    size = 0
    deadline = None if patience_s is None else time.monotonic() + patience_s
    with signals.on_leave(raise_chat_ended):
        while True:
            chunk = read_chunk_before(None if chunks else deadline)
            if chunk is None:
                raise NoInput
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
            size += len(chunk)
            if size > MAX_BYTES:
                raise InvalidValue(
                    f"stdin has more than {format_size(MAX_BYTES)}; nothing was sent",
                    hint="send only a part, for example with `tail -n 500`, or use --lines for one message per line",
                )
