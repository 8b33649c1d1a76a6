"""Record the first minute with Hermes, in a real terminal, as a moving picture: docs/images/first-minute.svg

    python -m tools.recording            # compare with the picture; the exit code is 1 if it differs
    python -m tools.recording --write    # write the picture

A shell runs on a pseudo-terminal, in a new home and at a fixed time, and a user types. The screen is kept after every
few keys and whenever the program waits again, so the same program gives the same picture. The picture loads nothing and
runs no script.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pexpect  # type: ignore[import-untyped]
import pyte

from tests.support.transcript_home import ROOT, Home
from tools.transcripts import BETWEEN_COMMANDS_S, new_home

PICTURE = ROOT / "docs" / "images" / "first-minute.svg"
COLUMNS, LINES = 84, 24
LIMIT_S = 20.0
SHELL_PROMPT, CHAT_PROMPT = "$", ">"
KEYS_PER_FRAME = 3
TYPING_S, READING_S, LAST_S = 0.15, 2.5, 5.0

SCRIPT = (
    ("hermes", CHAT_PROMPT),
    ("The nightly backup goes to the NAS in the cellar.", CHAT_PROMPT),
    ("/title backup plan", CHAT_PROMPT),
    ("\x04", SHELL_PROMPT),
    ("clear", SHELL_PROMPT),
    ('hermes -q "What did we say about the NAS?"', SHELL_PROMPT),
    ("clear", SHELL_PROMPT),
    ("hermes sessions list", SHELL_PROMPT),
)
"""What is typed, and at which prompt the next line is typed."""

_CELL_WIDTH, _LINE_HEIGHT, _MARGIN = 8.4, 18, 14
_COLOURS = {
    "black": "#3b4252",
    "red": "#e06c75",
    "green": "#98c379",
    "brown": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": "#dcdfe4",
    "default": "#dcdfe4",
}
_STYLE = """text { font: 14px ui-monospace, 'DejaVu Sans Mono', monospace; white-space: pre; fill: #dcdfe4; }
.b { font-weight: bold; } .i { font-style: italic; } .d { opacity: .65; } .u { text-decoration: underline; }"""


class Run(NamedTuple):
    """Characters in one style."""

    column: int
    width: int
    text: str
    colour: str
    classes: str


Line = tuple[Run, ...]


@dataclass
class Recording:
    """The screens of a session, and how long each of them is shown."""

    frames: list[tuple[tuple[Line, ...], float]] = field(default_factory=list)

    def keep(self, screen: pyte.Screen, seconds: float) -> None:
        """Add a screen; one that has not changed is shown longer."""
        lines = tuple(_runs(screen, row) for row in range(LINES))
        if self.frames and self.frames[-1][0] == lines:
            seconds += self.frames.pop()[1]
        self.frames.append((lines, seconds))


class Typist:
    """Types in a shell on a pseudo-terminal."""

    def __init__(self, home: Home) -> None:
        self._home = home
        environment = home.environment() | {"TERM": "xterm-256color", "PS1": "$ "}
        del environment["NO_COLOR"]
        self.screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self.screen)
        self._shell = pexpect.spawn(
            "bash", ["--norc", "--noprofile"], env=environment, cwd=home.work, dimensions=(LINES, COLUMNS)
        )
        self._shell.delaybeforesend = None
        self.recording = Recording()

    def record(self) -> Recording:
        """Type the whole script."""
        try:
            self._until(lambda: self._line() == SHELL_PROMPT)
            self.recording.keep(self.screen, 1.0)
            for text, prompt in SCRIPT:
                self._type(text)
                self._until(lambda prompt=prompt: self._line() == prompt)
                self.recording.keep(self.screen, READING_S)
            self.recording.keep(self.screen, LAST_S)
        finally:
            self._shell.close(force=True)
        return self.recording

    def _place_program(self) -> None:
        """Put a `hermes` on the path that runs some seconds after the one before."""
        file = self._home.bin / "hermes"
        file.write_text(f'#!/bin/sh\nexec {shlex.join(self._home.entry("hermes", self._home.seconds))} "$@"\n')
        file.chmod(0o700)
        self._home.seconds += BETWEEN_COMMANDS_S

    def _type(self, text: str) -> None:
        """Type a line, and keep the screen after every few keys."""
        self._place_program()
        if not text.isprintable():
            self._shell.send(text)
            self._until(lambda: self._line() != CHAT_PROMPT)
            return
        typed = self._line()
        for start in range(0, len(text), KEYS_PER_FRAME):
            keys = text[start : start + KEYS_PER_FRAME]
            self._shell.send(keys)
            wanted = f"{typed} {text[: start + len(keys)]}".rstrip()
            self._until(lambda wanted=wanted: self._line() == wanted)
            self.recording.keep(self.screen, TYPING_S)
        self._shell.send("\r")
        self._until(lambda: self._line() != wanted)

    def _line(self) -> str:
        """Return the line of the cursor: below it, a chat may have more."""
        return self.screen.display[self.screen.cursor.y].rstrip()

    def _until(self, is_so: object) -> None:
        """Read until something is so; what comes at once after it belongs to it."""
        assert callable(is_so)
        deadline = time.monotonic() + LIMIT_S
        while not is_so() or self._read(0.1):
            if time.monotonic() > deadline:
                raise TimeoutError("\n".join(self.screen.display))
            if not is_so():
                self._read(0.1)

    def _read(self, seconds: float) -> bool:
        """Read what was written; return whether there was anything."""
        try:
            self._stream.feed(self._shell.read_nonblocking(65_536, timeout=seconds))
        except pexpect.TIMEOUT:
            return False
        return True


def draw(recording: Recording) -> str:
    """Return the moving picture: the screens below each other, of which one is visible."""
    unique = list(dict.fromkeys(line for lines, _ in recording.frames for line in lines if line))
    numbers = {line: number for number, line in enumerate(unique)}
    height, width = LINES * _LINE_HEIGHT, COLUMNS * _CELL_WIDTH
    defined = "\n".join(f'<g id="l{number}">{"".join(map(_draw_run, line))}</g>' for line, number in numbers.items())
    frames = "\n".join(
        f'<use href="#l{numbers[line]}" y="{place * height + row * _LINE_HEIGHT}"/>'
        for place, (lines, _) in enumerate(recording.frames)
        for row, line in enumerate(lines)
        if line
    )
    whole = sum(seconds for _, seconds in recording.frames)
    steps, passed = [], 0.0
    for place, (_, seconds) in enumerate(recording.frames):
        steps.append(f"{100 * passed / whole:.3f}% {{ transform: translateY({-place * height}px); }}")
        passed += seconds
    last = (len(recording.frames) - 1) * height
    box = f"{width + 2 * _MARGIN:.0f} {height + 2 * _MARGIN}"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {box}" role="img">
<title>The first minute: a chat, and a search for it in another one</title>
<style>
{_STYLE}
.reel {{ animation: play {whole:.1f}s steps(1, end) infinite; }}
@keyframes play {{ {" ".join(steps)} }}
@media (prefers-reduced-motion: reduce) {{ .reel {{ animation: none; transform: translateY({-last}px); }} }}
</style>
<defs>
{defined}
</defs>
<rect width="100%" height="100%" rx="8" fill="#1f2227"/>
<svg x="{_MARGIN}" y="{_MARGIN}" width="{width:.0f}" height="{height}"><g class="reel">
{frames}
</g></svg>
</svg>
"""


def _draw_run(run: Run) -> str:
    x, length = run.column * _CELL_WIDTH, run.width * _CELL_WIDTH
    attributes = f'x="{x:.1f}" y="{_LINE_HEIGHT - 5}" textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs"'
    if run.classes:
        attributes += f' class="{run.classes}"'
    if run.colour != _COLOURS["default"]:
        attributes += f' style="fill: {run.colour}"'
    return f"<text {attributes}>{escape(run.text)}</text>"


def _runs(screen: pyte.Screen, row: int) -> Line:
    """Return a row of the screen in pieces of one style."""
    return tuple(_pieces(screen, row))


def _pieces(screen: pyte.Screen, row: int) -> Iterator[Run]:
    def style(column: int) -> tuple[str, str]:
        char = screen.buffer[row][column]
        classes = [name for name, is_so in (("b", char.bold), ("i", char.italics), ("u", char.underscore)) if is_so]
        colour = _COLOURS.get(char.fg, f"#{char.fg}" if re.fullmatch(r"[0-9a-f]{6}", char.fg) else _COLOURS["default"])
        return colour, " ".join(classes)

    for (colour, classes), columns in groupby(range(COLUMNS), style):
        listed = list(columns)
        bare = "".join(screen.buffer[row][column].data for column in listed).rstrip()
        if bare:
            yield Run(listed[0], len(bare), bare, colour, classes)


def main() -> int:
    """Record the session; return 1 if the picture differs and was not written."""
    parser = argparse.ArgumentParser(description="Record the first minute with Hermes.")
    parser.add_argument("--write", action="store_true", help="write the picture")
    parser.add_argument("picture", nargs="?", type=Path, default=PICTURE)
    arguments = parser.parse_args()
    with new_home() as home:
        drawn = draw(Typist(home).record()).replace(str(home.path), Home.SHOWN)
    if arguments.write:
        arguments.picture.write_text(drawn, encoding="utf-8")
        return 0
    is_same = arguments.picture.exists() and arguments.picture.read_text("utf-8") == drawn
    print(f"{arguments.picture} {'is up to date' if is_same else 'differs: python -m tools.recording --write'}")
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
