"""Sessions as Markdown. Messages are quoted, so that their text cannot act as the document's own markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from hermes.cli.transcripts.blocks import (
    Block,
    BlockKind,
    format_time,
    message_blocks,
    session_facts,
    session_title,
    speaker_name,
)
from hermes.state.import_export.session_reader import SessionExport

_BACKTICKS = re.compile("`+")
_SPECIAL = re.compile(r"([\\`*\[\]<>#|~]|(?<!\w)_|_(?!\w))")


class Markdown:
    """One document for all sessions."""

    def begin(self) -> Iterator[bytes]:
        """Yield nothing: the document has no header."""
        return iter(())

    def session(self, session: SessionExport) -> Iterator[bytes]:
        """Yield a session: its title, its facts and its messages."""
        lines = [f"# {_escape_markdown(session_title(session.row))}", ""]
        lines += [f"- {name}: {_escape_markdown(value)}" for name, value in session_facts(session.row)]
        yield _encode_lines(lines)
        speaker = ""
        for page in session.pages:
            for message in page:
                lines = []
                if speaker_name(message) != speaker:
                    speaker = speaker_name(message)
                    lines += ["", f"## {_escape_markdown(speaker)} · {format_time(message['timestamp'])}"]
                for block in message_blocks(message):
                    lines += ["", *_block_lines(block)]
                yield _encode_lines(lines)
        yield b"\n"

    def end(self) -> Iterator[bytes]:
        """Yield nothing: the document has no footer."""
        return iter(())


def _block_lines(block: Block) -> Iterator[str]:
    if block.kind is BlockKind.TEXT:
        yield from _quote_lines(block.text)
        return
    yield f"<details><summary>{escape(block.summary)}</summary>"
    yield ""
    yield from _quote_lines(block.text) if block.kind is BlockKind.THOUGHT else _fence_lines(block.text)
    yield ""
    yield "</details>"


def _quote_lines(text: str) -> Iterator[str]:
    return (f"> {line}".rstrip() for line in text.split("\n"))


def _fence_lines(text: str) -> Iterator[str]:
    """Yield a code block with a fence longer than any inside it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence
    yield from text.split("\n")
    yield fence


def _escape_markdown(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _encode_lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
