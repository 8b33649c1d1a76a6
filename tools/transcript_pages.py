"""The console blocks of README.md and docs/: how they are read, compared and replaced."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.transcript_home import ROOT
from tests.support.transcript_states import STATES

CONTINUED, NOT_RUN, OMITTED = "continued", "not run:", "..."

_BLOCK = re.compile(
    r"(?:^(?P<indent> *)<!-- transcript: (?P<state>[^\n]*?) -->\n)?^(?P<fence> *)```console\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
_QUESTION = re.compile(r".*\[[^\]]*\].*: (?P<reply>\S+)$")

_VARIABLE = [
    (re.compile(pattern), name)
    for pattern, name in [
        (r"\d{8}_\d{6}_[0-9a-f]{8}(?:[0-9a-f]{16})?", "<id>"),
        (r"\b(conv_|resp_|chatcmpl-)[0-9a-f]{32,}", r"\1<id>"),
        (r'(?<=created": )\d+|(?<=_at": )[\d.]+|(?<=last_active": )[\d.]+', "<time>"),
        (r"\b[0-9a-f]{32}\b|(?<=[a-z]/)[0-9a-f]{8}\b|(?<=turn |eply:|mand:)[\w-]{16}\b", "<id>"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", "<time>"),
        (r"\d{8}_\d{6}", "<time>"),
        (r"\b\d\d:\d\d(:\d\d)?( [AP]M)?", "<time>"),
        (r"\b[\d,]+(\.\d+)? ?m?s\b", "<duration>"),
        (r"\b[\d,]+(\.\d+)? (bytes|KB|MB|GB)", "<size>"),
        (r'(?<=_bytes": )\d+', "<size>"),
        (r"(?<=pid )\d+|(?<=process )\d+", "<pid>"),
        (r"\b\d+ (tokens read|tables|pages)\b", r"<count> \1"),
        (r"\b[\d,]+ read, [\d,]+ written\b", "<count> read, <count> written"),
        (r"\b(Hermes|Python|SQLite|apsw|PostgreSQL|version) \d+(\.\d+)+", r"\1 <version>"),
        (r"^  \S (place|disk) .*", r"<\1>"),
        # A thread fills the index in pauses.
        (r" but for \d+ messages; searches read those", ""),
        (r" {2,}", "  "),
        (r"([─█])\1+", r"\1"),
        (r" +$", ""),
    ]
]


class Unclear(Exception):
    """A block that does not say how it is run."""


@dataclass(frozen=True)
class Command:
    """One command of a block, with the output that the page shows."""

    line: str
    shown: tuple[str, ...]
    is_inside_chat: bool = False
    """Whether the block leaves out how the chat was started."""

    @property
    def inputs(self) -> list[str]:
        """What is typed while the command runs."""
        found = []
        for line in self.shown:
            if line.startswith("> "):
                found.append(line[2:])
            elif question := _QUESTION.fullmatch(line):
                found.append(question["reply"])
        return found

    @property
    def is_left_open(self) -> bool:
        """Whether the page ends at the prompt of a chat."""
        return self.shown[-1:] == (">",)


@dataclass(frozen=True)
class Block:
    """A console block of a page."""

    page: Path
    line: int
    indent: str
    state: str
    text: str
    """As it stands on the page."""

    @property
    def place(self) -> str:
        return f"{os.path.relpath(self.page, ROOT)}:{self.line}"

    @property
    def reason(self) -> str | None:
        """Why it is not run, or None."""
        return self.state.removeprefix(NOT_RUN).strip() if self.state.startswith(NOT_RUN) else None

    @property
    def lines(self) -> list[str]:
        return [line.removeprefix(self.indent) for line in self.text.splitlines()]

    def commands(self) -> list[Command]:
        """Split the block at its commands."""
        if self.lines[:1] and self.lines[0].startswith("> "):
            return [Command("hermes", tuple(self.lines), is_inside_chat=True)]
        starts = [number for number, line in enumerate(self.lines) if line.startswith("$ ")]
        if not starts or starts[0] != 0:
            raise Unclear(f"{self.place}: the block does not begin with `$ command` or `> text`")
        return [
            Command(self.lines[start][2:], tuple(self.lines[start + 1 : end]))
            for start, end in zip(starts, [*starts[1:], len(self.lines)], strict=True)
        ]


@dataclass(frozen=True)
class Scene:
    """Blocks of one page that run one after the other in one home."""

    blocks: tuple[Block, ...]

    @property
    def place(self) -> str:
        return self.blocks[0].place


@dataclass
class Result:
    """A block and its fresh text."""

    block: Block
    lines: list[str] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        return normalised(self.lines) == normalised(self.block.lines)

    @property
    def text(self) -> str:
        return "".join(f"{self.block.indent}{line}".rstrip() + "\n" for line in self.lines)

    def difference(self) -> str:
        """The lines that differ in more than times, ids and the like."""
        page, fresh = normalised(self.block.lines), normalised(self.lines)
        return "\n".join(difflib.unified_diff(page, fresh, self.block.place, "the program today", lineterm=""))


def pages() -> list[Path]:
    """The documents that are looked at."""
    return sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def blocks_of(page: Path) -> list[Block]:
    """The console blocks of a page; raises `Unclear` if one has no state."""
    text = page.read_text()
    found = []
    for match in _BLOCK.finditer(text):
        line = text[: match.start("fence")].count("\n") + 1
        block = Block(page, line, match["fence"], match["state"] or "", match["text"])
        if block.reason is None and block.state not in (CONTINUED, *STATES):
            raise Unclear(f"{block.place}: there is no state {block.state!r}; known are {', '.join(STATES)}")
        found.append(block)
    return found


def scenes_of(page: Path) -> list[Scene]:
    """The scenes of a page, without the blocks that are not run."""
    scenes: list[list[Block]] = []
    for block in blocks_of(page):
        if block.state == CONTINUED and scenes:
            scenes[-1].append(block)
        elif block.reason is None:
            scenes.append([block])
    return [Scene(tuple(each)) for each in scenes]


def not_run() -> list[Block]:
    """All blocks that are only shown."""
    return [block for page in pages() for block in blocks_of(page) if block.reason is not None]


def shorten(fresh: list[str], shown: Sequence[str]) -> list[str]:
    """Omit from the fresh lines what the page omits: everything between its first and last lines."""
    if OMITTED not in shown:
        return fresh
    at = shown.index(OMITTED)
    after = len(shown) - at - 1
    if len(fresh) <= at + after:
        return fresh
    return [*fresh[:at], OMITTED, *fresh[len(fresh) - after :]]


def normalised(lines: Sequence[str]) -> list[str]:
    """Lines with placeholders for everything that differs from run to run."""
    found = []
    for line in lines:
        for pattern, name in _VARIABLE:
            line = pattern.sub(name, line)
        found.append(line)
    return found


def write(page: Path, results: Sequence[Result]) -> None:
    """Put fresh text into the blocks of a page; the results are in the order of the page."""
    text, done = page.read_text(), 0
    for result in results:
        block = result.block
        start = text.find(f"```console\n{block.text}{block.indent}```", done)
        if start < 0:
            print(f"{block.place}: the page has changed meanwhile; run it again", file=sys.stderr)
            continue
        start += len("```console\n")
        text = f"{text[:start]}{result.text}{text[start + len(block.text) :]}"
        done = start + len(result.text)
    page.write_text(text)
