"""Text that another program has piped in: read whole, bounded, and joined to a question."""

from __future__ import annotations

import time

from hermes.cli.chat.terminal.signals import Signals, raise_chat_ended
from hermes.cli.chat.terminal.stdin_lines import read_chunk_before
from hermes.errors import InvalidValue
from hermes.phrases import sized

MAX_BYTES = 1024 * 1024
PATIENCE_S = 5.0
"""How long a question waits for the first byte of a stdin that is open but may never be written to."""
BOM = "\ufeff"


class NoInput(Exception):
    """Nothing came in time, and stdin is still open."""


def read_text(signals: Signals, patience_s: float | None) -> str:
    """All of stdin as text, empty if there is nothing in it.

    Raises `Silent` if its first byte does not come in time; what has begun is read to its end. Raises `InvalidValue`
    for more than `MAX_BYTES`, and for what is no text. Bytes that are no UTF-8 become U+FFFD.
    """
    return decode_text(_read_bytes(signals, patience_s))


def decode_text(data: bytes) -> str:
    """Bytes as text."""
    if (place := data.find(b"\0")) >= 0:
        raise InvalidValue(
            f"stdin is no text: byte {place + 1} is zero; nothing was sent",
            hint="convert it to UTF-8 text first, as with `strings` or `iconv -t utf-8`",
        )
    return data.decode("utf-8", "replace").removeprefix(BOM).rstrip()


def join_message(question: str | None, text: str) -> str:
    """The message: the question, an empty line, and the text."""
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
                    f"stdin has more than {sized(MAX_BYTES)}; nothing was sent",
                    hint="send the part that matters, as with `tail -n 500`, or --lines for one turn a line",
                )
