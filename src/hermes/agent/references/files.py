"""Reads the file of a reference, or the lines of it that the reference names."""

from __future__ import annotations

import os
from typing import BinaryIO

from hermes.agent.references.access import require_place
from hermes.agent.references.images import image_type, read_image
from hermes.agent.references.limits import TooMuchContext
from hermes.agent.references.parse import Lines
from hermes.agent.references.texts import Block, NotAttached, language_of
from hermes.agent.safety.opening import open_regular_file
from hermes.agent.tools.context import ToolContext
from hermes.errors import InvalidValue
from hermes.phrases import plural

MAX_SCANNED_BYTES = 64 * 1024 * 1024
"""How far into a file lines are counted."""

_SNIFFED_BYTES = 8_192
_CHUNK_BYTES = 64 * 1024
_BOM = "\ufeff"


def read_file_block(context: ToolContext, path: str, lines: Lines | None, limit_bytes: int) -> Block:
    """Return the content of a text file, or an image; raise `NotAttached` with a plain reason if there is none."""
    if lines is not None:
        _check_lines(lines)
    place = require_place(context, path)
    if place.real.is_dir():
        raise NotAttached("it is a directory; use @folder:")
    try:
        with open_regular_file(place.real) as file:
            head = file.read(_SNIFFED_BYTES)
            if lines is None and (media_type := image_type(head)) is not None:
                file.seek(0)
                image = read_image(file, media_type)
                return Block(image.label, "", image=image)
            if b"\0" in head:
                raise NotAttached(f"it is a binary file of {plural(os.fstat(file.fileno()).st_size, 'byte')}")
            file.seek(0)
            label, data = _whole(file, limit_bytes) if lines is None else _selected(file, lines, limit_bytes)
    except InvalidValue:  # its text has the whole path, which a chat must not see
        raise NotAttached("it is not a regular file") from None
    except OSError as error:
        raise NotAttached(f"it cannot be read: {error.strerror}") from None
    return Block(label, _decode(data), language_of(place.real.name))


def _check_lines(lines: Lines) -> None:
    if lines.first < 1 or lines.last < 1:
        raise NotAttached("the first line of a file is 1")
    if lines.last < lines.first:
        raise NotAttached(
            f"the lines are reversed: {lines.first}-{lines.last}; did you mean {lines.last}-{lines.first}?"
        )


def _whole(file: BinaryIO, limit_bytes: int) -> tuple[str, bytes]:
    if os.fstat(file.fileno()).st_size > limit_bytes:
        raise TooMuchContext
    data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise TooMuchContext
    count = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    return (plural(count, "line") if data else "empty file"), data


def _selected(file: BinaryIO, lines: Lines, limit_bytes: int) -> tuple[str, bytes]:
    """Return the named lines; lines after the end of the file are left out, and the label says so."""
    kept: list[bytes] = []
    number, size, scanned, is_line_start = 0, 0, 0, True
    while piece := file.readline(_CHUNK_BYTES):  # a long line comes in several pieces
        number += is_line_start
        is_line_start = piece.endswith(b"\n")
        scanned += len(piece)
        if number > lines.last:
            break
        if number >= lines.first:
            kept.append(piece)
            size += len(piece)
            if size > limit_bytes:
                raise TooMuchContext
        elif scanned > MAX_SCANNED_BYTES:
            raise NotAttached(f"line {lines.first} is too far into the file; only its first 64 MiB are searched")
    if not kept:
        raise NotAttached(f"line {lines.first} is after the end of the file, which has {plural(number, 'line')}")
    if number < lines.last:
        label = f"lines {lines.first}-{number}; the file has only {plural(number, 'line')}"
    else:
        label = f"line {lines.first}" if lines.first == lines.last else f"lines {lines.first}-{lines.last}"
    return label, b"".join(kept)


def _decode(data: bytes) -> str:
    """Decode a text as UTF-8, or as Latin-1 if it is not UTF-8."""
    try:
        return data.decode().removeprefix(_BOM)
    except UnicodeDecodeError:
        return data.decode("latin-1")
