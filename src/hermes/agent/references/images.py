"""Recognizes images by their content, whatever their names are."""

from __future__ import annotations

import os
import re
from typing import BinaryIO

from hermes.agent.history.images import Image
from hermes.agent.references.texts import NotAttached
from hermes.phrases import plural

MAX_BYTES = 5_000_000
MAX_MESSAGE_BYTES = 10_000_000
"""The images of one message together."""
MAX_SIDE = 8_000
"""In pixels, as several endpoints want it."""
SNIFFED_BYTES = 16

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_GIFS = (b"GIF87a", b"GIF89a")
_FRAMES = frozenset((*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)))
"""The segments of a JPEG file that have its size."""
_ALONE = frozenset((0x01, *range(0xD0, 0xD9)))
"""The segments without a length."""
_END_SEARCHED = 65_536
_MAX_SEGMENTS = 10_000
"""How many segments of a JPEG file are searched for its size; millions of empty ones fit into a file."""

_ESCAPED = re.compile(r"\\(.)")
_NAMED = re.compile(
    r"""(?:(?P<quote>['"])(?P<quoted>(?:/|~/|file://)[^\n'"]{1,4096})(?P=quote)
      | (?<!\S)(?P<plain>(?:/|~/|file:///)(?:\\[^\n]|[^\s\\'"]){1,4096}))""",
    re.VERBOSE,
)
_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")


def image_type(head: bytes) -> str | None:
    """Return the type of an image by its first bytes, or None if it is none that models can see."""
    if head.startswith(_PNG):
        return "image/png"
    if head.startswith(_JPEG):
        return "image/jpeg"
    if head.startswith(_GIFS):
        return "image/gif"
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None


def read_image(file: BinaryIO, media_type: str) -> Image:
    """Read an open file as an image; raise `NotAttached` if it is too large, or cut off."""
    size = os.fstat(file.fileno()).st_size
    if size > MAX_BYTES:
        raise NotAttached(f"the image has {plural(size, 'byte')}; the limit is {MAX_BYTES}")
    data = file.read(MAX_BYTES + 1)
    sides = _sides(data, media_type) if len(data) <= MAX_BYTES else None
    if sides is None or not all(sides):
        raise NotAttached("the image is damaged or cut off")
    if max(sides) > MAX_SIDE:
        raise NotAttached(f"the image has {sides[0]} x {sides[1]} pixels; a side can have {MAX_SIDE}")
    return Image(media_type, *sides, data)


def find_image_paths(text: str) -> list[tuple[str, str]]:
    """Return the absolute paths of images that were pasted or dragged into a text, each as written and as a path."""
    if not any(each in text.casefold() for each in _ENDINGS):
        return []
    found: dict[str, str] = {}
    for match in _NAMED.finditer(text):
        written = match["quoted"] or match["plain"].rstrip(".,;:!?)")
        if written.casefold().endswith(_ENDINGS):
            found.setdefault(_as_path(written, is_quoted=match["quoted"] is not None), match[0].rstrip(".,;:!?)"))
    return [(written, path) for path, written in found.items()]


def _as_path(written: str, *, is_quoted: bool) -> str:
    if written.casefold().startswith("file://"):
        from urllib.parse import unquote

        return unquote(written[len("file://") :])
    return written if is_quoted else _ESCAPED.sub(r"\1", written)


def _sides(data: bytes, media_type: str) -> tuple[int, int] | None:
    """Return width and height; None if the file is not complete."""
    match media_type:
        case "image/png":
            is_whole = data[12:16] == b"IHDR" and b"IEND" in data[-_END_SEARCHED:]
            return (_big(data[16:20]), _big(data[20:24])) if is_whole else None
        case "image/jpeg":
            return _jpeg_sides(data) if b"\xff\xd9" in data[-_END_SEARCHED:] else None
        case "image/gif":
            is_whole = b";" in data[-_END_SEARCHED:] and len(data) > len(b"GIF89a....;")
            return (_little(data[6:8]), _little(data[8:10])) if is_whole else None
        case _:
            return _webp_sides(data) if len(data) >= _little(data[4:8]) + 8 else None


def _jpeg_sides(data: bytes) -> tuple[int, int] | None:
    place = 2
    for _ in range(_MAX_SEGMENTS):
        if place + 9 > len(data) or data[place] != 0xFF:
            return None
        kind = data[place + 1]
        if kind in _FRAMES:
            return _big(data[place + 7 : place + 9]), _big(data[place + 5 : place + 7])
        if kind == 0xFF:  # a fill byte
            place += 1
        elif kind in _ALONE:
            place += 2
        else:
            place += 2 + max(2, _big(data[place + 2 : place + 4]))
    return None


def _webp_sides(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8X":
            return _little(data[24:27]) + 1, _little(data[27:30]) + 1
        case b"VP8L":
            bits = _little(data[21:25])
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
