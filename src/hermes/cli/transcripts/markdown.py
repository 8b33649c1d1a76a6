"""Sessions as Markdown: what was said is quoted, so that nothing in it can pass for the document's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from hermes.cli.transcripts.blocks import Block, Kind, blocks_of, facts_of, speaker_of, title_of, when
from hermes.state.outgoing import Outgoing

_BACKTICKS = re.compile("`+")
_SPECIAL = re.compile(r"([\\`*\[\]<>#|~]|(?<!\w)_|_(?!\w))")


class Markdown:
    """One document for all sessions."""

    def begin(self) -> Iterator[bytes]:
        """Nothing comes first."""
        return iter(())

    def session(self, session: Outgoing) -> Iterator[bytes]:
        """A session: its title, what it is, and what was said."""
        lines = [f"# {_plain(title_of(session.row))}", ""]
        lines += [f"- {name}: {_plain(value)}" for name, value in facts_of(session.row)]
        yield _encoded(lines)
        speaker = ""
        for page in session.pages:
            for message in page:
                lines = []
                if speaker_of(message) != speaker:
                    speaker = speaker_of(message)
                    lines += ["", f"## {_plain(speaker)} · {when(message['timestamp'])}"]
                for block in blocks_of(message):
                    lines += ["", *_lines(block)]
                yield _encoded(lines)
        yield b"\n"

    def end(self) -> Iterator[bytes]:
        """Nothing comes last."""
        return iter(())


def _lines(block: Block) -> Iterator[str]:
    if block.kind is Kind.TEXT:
        yield from _quoted(block.text)
        return
    yield f"<details><summary>{escape(block.summary)}</summary>"
    yield ""
    yield from _quoted(block.text) if block.kind is Kind.THOUGHT else _fenced(block.text)
    yield ""
    yield "</details>"


def _quoted(text: str) -> Iterator[str]:
    return (f"> {line}".rstrip() for line in text.split("\n"))


def _fenced(text: str) -> Iterator[str]:
    """A block of code whose fence is longer than any in it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence
    yield from text.split("\n")
    yield fence


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _encoded(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
