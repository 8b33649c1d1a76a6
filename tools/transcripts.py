"""Compare the console transcripts in README.md and docs/ with what the program writes today.

    python -m tools.transcripts            # show the differences; the exit code is 1 if there are any
    python -m tools.transcripts --write    # put fresh output into the pages that differ
    python -m tools.transcripts README.md  # only this page

A comment above each ```console block says in which state its commands run:

    <!-- transcript: empty -->                      a new home in this state (tests/support/transcript_states.py)
    <!-- transcript: continued -->                  the home of the block before
    <!-- transcript: not run: needs a provider -->  the block is only shown, for this reason

Each `$ command` runs in bash on a pseudo-terminal of 100 columns, with the offline model, in UTC, and at a fixed
time (`tools/hermes_at.py`). Input is read from the page: `> text` is typed at the prompt of a
chat, and the word at the end of a line such as `Restore it? [y/N]: y` is the reply to that question. When the page has
no more input, Ctrl-D is pressed. A block that begins with `> ` starts in the middle of a chat. If the last line is `>`,
the chat is still open there. A line `...` stands for omitted lines.

Text that differs from run to run (ids, times, sizes, durations, versions, process numbers) may differ from the page.
"""

from __future__ import annotations

import argparse
import difflib
import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.servers import NoServer, begin_run, end_run
from tests.support.transcript_home import ROOT, Home
from tests.support.transcript_states import STATES

COLUMNS, LINES = 100, 50
COMMAND_S = 60.0
"""How long one command may take."""
QUIET_S = 0.25
"""An unfinished line that is followed by this much silence is a question."""
BETWEEN_COMMANDS_S = 10
WORKERS = 4

CONTINUED, NOT_RUN, OMITTED = "continued", "not run:", "..."
CTRL_D = b"\x04"

_BLOCK = re.compile(
    r"(?:^(?P<indent> *)<!-- transcript: (?P<state>[^\n]*?) -->\n)?^(?P<fence> *)```console\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
_QUESTION = re.compile(r".*\[[^\]]*\].*: (?P<reply>\S+)$")
_PROMPT_SHOWN, _PROMPT_LEFT = "\x1b[?2004h", "\x1b[?2004l"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")

_VARIABLE = [
    (re.compile(pattern), name)
    for pattern, name in [
        (r"\d{8}_\d{6}_[0-9a-f]{8}", "<id>"),
        (r"\d{8}_\d{6}", "<time>"),
        (r"\b\d\d:\d\d(:\d\d)?( [AP]M)?", "<time>"),
        (r"\b[\d,]+(\.\d+)? ?m?s\b", "<duration>"),
        (r"\b[\d,]+(\.\d+)? (bytes|KB|MB|GB)", "<size>"),
        (r'(?<=_bytes": )\d+', "<size>"),
        (r"(?<=pid )\d+", "<pid>"),
        (r"\b\d+ (tokens read|tables|pages)\b", r"<count> \1"),
        (r"\b(Hermes|Python|SQLite|apsw|PostgreSQL) \d+(\.\d+)+", r"\1 <version>"),
        (r"^  \S (place|disk) .*", r"<\1>"),
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


def run_scene(scene: Scene) -> list[Result]:
    """Run the commands of a scene in a new home; raises `NoServer` if it needs a server that cannot be started."""
    with new_home() as home:
        STATES[scene.blocks[0].state](home)
        return [run_block(block, home) for block in scene.blocks]


def run_block(block: Block, home: Home) -> Result:
    """Run the commands of a block one after the other."""
    result = Result(block)
    for command in block.commands():
        if not command.is_inside_chat:
            result.lines.append(f"$ {command.line}")
        result.lines += shorten(fresh_output(command, home), command.shown)
    return result


def fresh_output(command: Command, home: Home) -> list[str]:
    """Run one command and return its lines, with the texts that stand for this machine's own."""
    for name in ("hermes", "python"):
        program = home.bin / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join(home.entry(name, home.seconds))} "$@"\n')
        program.chmod(0o700)
    home.seconds += BETWEEN_COMMANDS_S
    text = Terminal(command, home).run()
    for own, shown in home.shown.items():
        text = text.replace(own, shown)
    lines = [line.rstrip() for line in text.splitlines()]
    if command.is_inside_chat:
        first = next((number for number, line in enumerate(lines) if line.startswith(">")), 0)
        lines = lines[first:]
    if command.is_left_open and ">" in lines:
        del lines[lines.index(">") + 1 :]
    while lines and not lines[-1]:
        lines.pop()
    return lines


class Terminal:
    """A command on a pseudo-terminal, and the person who types there."""

    def __init__(self, command: Command, home: Home) -> None:
        self._inputs = command.inputs
        self._written = ""
        self._prompts = 0
        """How many prompts of a chat have got their input."""
        self._is_asked = False
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        try:
            self._process = subprocess.Popen(
                ["bash", "--norc", "-c", command.line],
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                env=home.environment(),
                cwd=home.work,
                start_new_session=True,
            )
        finally:
            os.close(theirs)

    def run(self) -> str:
        """Type what the page says until the command ends, and return what is on the screen."""
        deadline = time.monotonic() + COMMAND_S
        try:
            while (chunk := self._read()) is not None:
                self._written += chunk
                self._reply(is_silent=not chunk)
                if time.monotonic() > deadline:
                    return self._screen() + f"\n[still running after {COMMAND_S:g} s]"
            self._process.wait(COMMAND_S)
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            os.close(self._ours)
        return self._screen()

    def _read(self) -> str | None:
        """What was written meanwhile: an empty text after some silence, None at the end."""
        if not select.select([self._ours], [], [], QUIET_S)[0]:
            return ""
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:  # Linux reports the end of a terminal like this
            return None
        while chunk and chunk[-1] >= 0x80:  # perhaps half a character
            try:
                chunk.decode()
                break
            except UnicodeDecodeError:
                chunk += os.read(self._ours, 1)
        return chunk.decode(errors="replace") if chunk else None

    def _reply(self, *, is_silent: bool) -> None:
        if self._written.count(_PROMPT_SHOWN) > self._prompts:
            self._prompts += 1
            self._type()
        elif is_silent and not self._is_at_prompt() and re.search(r"\S[:?] $", self._written):
            self._type()
            self._written += "\0"  # the same question gets one reply

    def _is_at_prompt(self) -> bool:
        return self._written.rfind(_PROMPT_SHOWN) > self._written.rfind(_PROMPT_LEFT)

    def _type(self) -> None:
        os.write(self._ours, f"{self._inputs.pop(0)}\r".encode() if self._inputs else CTRL_D)

    def _screen(self) -> str:
        """What was written, with each prompt of a chat as `> ` and the text that was entered there."""
        shown, typed = "", iter(self._typed())
        for number, part in enumerate(self._written.replace("\0", "").split(_PROMPT_SHOWN)):
            if number:
                _, _, part = part.partition(_PROMPT_LEFT)
                shown += f"> {next(typed, '')}\n"
            shown += part
        return _CONTROL.sub("", shown)

    def _typed(self) -> Iterator[str]:
        """What was typed at each prompt: prompt_toolkit draws it last behind the mark."""
        for part in self._written.split(_PROMPT_SHOWN)[1:]:
            drawn = _CONTROL.sub("", part.partition(_PROMPT_LEFT)[0])
            yield drawn.rpartition("> ")[2].strip()


@contextmanager
def new_home() -> Iterator[Home]:
    """A home directory whose path is as long as the one that the pages show."""
    with ExitStack() as stack:
        path = short_directory(len(Home.SHOWN) - len("/tmp/"))  # noqa: S108 - created with mode 0700 below
        stack.callback(shutil.rmtree, path, ignore_errors=True)
        yield Home.create(path, stack)


def short_directory(length: int) -> Path:
    """A new directory below /tmp whose name has so many characters."""
    while True:
        path = Path("/tmp") / os.urandom(length).hex()[:length]  # noqa: S108
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return path.resolve()


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


def main() -> int:
    """Run all blocks; return 1 if a page differs and was not written."""
    parser = argparse.ArgumentParser(description="Compare the transcripts of the documents with the program.")
    parser.add_argument("--write", action="store_true", help="put fresh output into the pages that differ")
    parser.add_argument("pages", nargs="*", type=Path, help="only these pages")
    arguments = parser.parse_args()
    chosen = [page.resolve() for page in arguments.pages] or pages()
    scenes = [scene for page in chosen for scene in scenes_of(page)]
    place = begin_run()
    try:
        with ThreadPoolExecutor(WORKERS) as pool:
            runs = [(scene, pool.submit(run_scene, scene)) for scene in scenes]
    finally:
        end_run(place)
    failed = [(scene, error) for scene, run in runs if (error := run.exception()) is not None]
    results = [result for _, run in runs if run.exception() is None for result in run.result()]
    changed = [result for result in results if not result.is_same]
    for result in changed:
        print(result.difference())
    for page in sorted({result.block.page for result in changed} if arguments.write else ()):
        write(page, [result for result in results if result.block.page == page])
    for block in not_run():
        if block.page in chosen:
            print(f"{block.place}: not run: {block.reason}")
    for scene, error in failed:
        print(f"{scene.place}: could not be run: {type(error).__name__}: {error}")
    print(f"{len(results)} blocks run, {len(changed)} differ{' and were written' if arguments.write else ''}")
    return 1 if any(not isinstance(error, NoServer) for _, error in failed) or (changed and not arguments.write) else 0


if __name__ == "__main__":
    sys.exit(main())
