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

Text that differs from run to run (ids, times, sizes, durations, versions, tokens, process numbers) may differ from the
page.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.servers import NoServer, begin_run, end_run
from tests.support.transcript_home import Home
from tests.support.transcript_states import STATES
from tools.transcript_pages import Block, Command, Result, Scene, not_run, pages, scenes_of, shorten, write

COLUMNS, LINES = 100, 50
COMMAND_S = 60.0
"""How long one command may take."""
QUIET_S = 0.25
"""An unfinished line that is followed by this much silence is a question."""
BETWEEN_COMMANDS_S = 10
WORKERS = 4

CTRL_D = b"\x04"

_PROMPT = re.compile(r"(?:^|\n)> $")
_QUESTION = re.compile(r"\S[:?] $")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\0")


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
                if not chunk:
                    self._reply()
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

    def _reply(self) -> None:
        """Type what comes next if the program waits for it."""
        if _PROMPT.search(self._written) or _QUESTION.search(self._written):
            self._type()
            self._written += "\0"  # the same question gets one reply

    def _type(self) -> None:
        os.write(self._ours, f"{self._inputs.pop(0)}\r".encode() if self._inputs else CTRL_D)

    def _screen(self) -> str:
        return _CONTROL.sub("", self._written)


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
