"""The read_file tool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from heapq import nsmallest
from pathlib import Path
from typing import Annotated, BinaryIO

from hermes.agent.history.text_limits import MAX_CHARACTERS
from hermes.agent.models.model import Cancellation
from hermes.agent.safety.approval import ApprovalRequest
from hermes.agent.safety.opening import open_regular_file
from hermes.agent.safety.paths import ResolvedPath
from hermes.agent.safety.visible_text import make_path_visible
from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.registry import tool
from hermes.agent.tools.results import ToolResult, failure
from hermes.errors import InvalidValue, NotFound

LINES = 2_000
MAX_LINE_BYTES = 2_000
MAX_ENTRIES = 500

_MAX_TEXT_CHARACTERS = MAX_CHARACTERS - 1_000
_SNIFFED_BYTES = 8_192


@tool(toolset="files", more="continue with a later start_line")
def read_file(
    context: ToolContext,
    path: Annotated[str, "A file, or a directory to list; relative to the working directory unless absolute."],
    start_line: Annotated[int, "The first line to read; the first of a file is 1."] = 1,
    lines: Annotated[int, "How many lines to read at most."] = LINES,
) -> str | ToolResult:
    """Read a text file with line numbers, or list a directory; outside the working directory the user is asked."""
    place = context.resolve_path(path)
    reason = context.protected.reason(place)
    if reason is not None:
        return failure(
            f"{path} cannot be read, because {reason}. No permission can change this; do not try another way."
        )
    if not os.path.lexists(place.real):
        raise NotFound(f"there is no file {path}", hint=f"paths are relative to {context.directory.cwd}")
    denied = None if context.is_free(place) else _refusal(context, place)
    if denied is not None:
        return failure(denied)
    if place.real.is_dir():
        return _list_directory(place.real)
    with open_regular_file(place.real) as file:
        return _number_lines(file, max(1, start_line), max(1, lines), context.cancellation)


def _refusal(context: ToolContext, place: ResolvedPath) -> str | None:
    shown = make_path_visible(place.real)
    named = "" if place.named == place.real else f"\n\ngiven as {make_path_visible(place.named)}"
    return context.refusal(
        ApprovalRequest(
            "read_file", summary=f"read {shown}", detail=f"{shown}{named}", risk="normal", subject=str(place.real)
        )
    )


def _number_lines(file: BinaryIO, first: int, count: int, cancellation: Cancellation) -> str:
    """Return at most `count` numbered lines from `first` on, as many as fit."""
    if b"\0" in file.read(_SNIFFED_BYTES):
        raise InvalidValue(f"not a text file: {os.fstat(file.fileno()).st_size} bytes of binary data")
    file.seek(0)
    shown: list[str] = []
    space, number = _MAX_TEXT_CHARACTERS, 0
    for number, line in enumerate(_lines(file), start=1):
        if cancellation.is_cancelled:
            return "\n".join([*shown, "[the user stopped this turn]"])
        if number < first:
            continue
        space -= len(line) + len(f"{number}\t\n")
        if len(shown) == count or space < 0:
            return "\n".join([*shown, f"[more lines follow: continue with start_line={number}]"])
        shown.append(f"{number}\t{line}")
    if number and not shown:
        raise InvalidValue(f"start_line {first} is after the end of the file, which has {number} lines")
    return "\n".join(shown) or "[the file is empty]"


def _lines(file: BinaryIO) -> Iterator[str]:
    """Yield the lines of a file, long ones cut, so that memory use is limited."""
    is_first = True
    while start := file.readline(MAX_LINE_BYTES):
        omitted, piece = 0, start
        while not piece.endswith(b"\n") and (piece := file.readline(_SNIFFED_BYTES)):
            omitted += len(piece.rstrip(b"\r\n"))
        line = _decode_line(start.rstrip(b"\r\n"), is_cut=omitted > 0)
        yield (line.removeprefix("\ufeff") if is_first else line) + (
            f" [... {omitted} more bytes on this line]" if omitted else ""
        )
        is_first = False


def _decode_line(line: bytes, *, is_cut: bool) -> str:
    """Decode a line as UTF-8, or as Latin-1 if it is not UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        if is_cut and error.reason == "unexpected end of data":
            return line[: error.start].decode()
        return line.decode("latin-1")


def _list_directory(directory: Path) -> str:
    count = 0

    def counted(found: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        nonlocal count
        for count, each in enumerate(found, start=1):  # noqa: B007 - it is used after the loop
            yield each

    with os.scandir(directory) as found:
        entries = nsmallest(MAX_ENTRIES, counted(found), key=lambda each: each.name)
    lines = [_format_entry(each) for each in entries]
    if count > len(entries):
        lines.append(f"[... {count - len(entries)} more entries]")
    return "\n".join([f"{make_path_visible(directory)} has {count} entries", *lines])


def _format_entry(entry: os.DirEntry[str]) -> str:
    name = make_path_visible(entry.name)  # a line break in a name must not look like another entry
    try:
        if entry.is_dir():
            return f"{name}/"
        return f"{name}  {entry.stat().st_size} bytes"
    except OSError:
        return f"{name}  (cannot be read)"
