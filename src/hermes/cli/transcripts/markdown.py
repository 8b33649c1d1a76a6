"""Sessions as Markdown: what was said is quoted, so that nothing in it can pass for the document's own."""

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
        """Nothing comes first."""
        return iter(())

    def session(self, session: SessionExport) -> Iterator[bytes]:
        """A session: its title, what it is, and what was said."""
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
        """Nothing comes last."""
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
    """A block of code whose fence is longer than any in it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence
    yield from text.split("\n")
    yield fence


def _escape_markdown(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _encode_lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
