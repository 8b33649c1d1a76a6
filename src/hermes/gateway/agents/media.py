"""Files that users send in chats: images go to models that see; of other files the model learns what they are."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from hermes.agent.references.images import MAX_MESSAGE_BYTES, SNIFFED_BYTES, image_type, read_image
from hermes.agent.references.limits import MAX_REFERENCES, Budget, TooMuchContext
from hermes.agent.references.texts import NotAttached
from hermes.agent.safety.opening import open_regular_file
from hermes.errors import InvalidValue
from hermes.phrases import format_size, join_some

if TYPE_CHECKING:
    from hermes.agent.history.images import Image

FOLDER = "media"
"""The folder of the Hermes home in which adapters store files."""
NOT_HERE = "the file is not on this machine; another node of the gateway may have received it"

_NO_FILE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP))
"""Errors for a path that is missing, is no file, or contains a link."""
_IMAGES = frozenset(("image", "photo"))
_KIND = re.compile(r"[a-z]{1,20}")
_MAX_NAME = 120


@dataclass(frozen=True, slots=True)
class SentFiles:
    """The files of one message."""

    images: Sequence[Image] = ()
    lines: Sequence[str] = ()
    """What the files are, for the user's text."""
    context: Sequence[str] = ()
    """What else the model learns about them."""


@dataclass(slots=True)
class _File:
    name: str
    kind: str
    mime: str
    path: Path | None = None
    """Where it is, if it was found."""
    size: int | None = None
    is_image: bool = False
    image: Image | None = None
    reason: str = ""
    """Why it was not attached."""

    @property
    def line(self) -> str:
        """What it is, in brackets."""
        kind = "image" if self.is_image else self.kind
        size = "" if self.size is None else format_size(self.size)
        return f"[Attached {kind}: {', '.join(each for each in (self.name, self.mime, size) if each)}]"


class FileReader:
    """Reads the files of the messages of one turn; together they have one limit."""

    def __init__(self, home: Path, budget: Budget, *, why_no_images: str, shows_paths: bool) -> None:
        """`shows_paths` says whether the agent has a tool that can read a stored file, and so needs its path."""
        real = Path(os.path.realpath(home))
        self._folder = real / FOLDER
        self._folders = (Path(os.path.abspath(home)) / FOLDER, self._folder)
        self._budget = budget
        self._why_no_images = why_no_images
        self._shows_paths = shows_paths
        self._image_count = 0
        self._image_bytes = 0
        self._not_attached: dict[str, list[str]] = {}
        """The names of files by the reason."""

    @property
    def remarks(self) -> list[str]:
        """Sentences for the user, one for each reason why files were not attached."""
        return [_remark(names, reason) for reason, names in self._not_attached.items()]

    def read(self, files: Sequence[Mapping[str, Any]], *, has_text: bool) -> SentFiles:
        """Return the files of a message. An image beside a text has no line, so that the text stays as it was typed."""
        images: list[Image] = []
        lines: list[str] = []
        context: list[str] = []
        for each in map(self._examine, files):
            if each.image is not None:
                images.append(each.image)
            if each.image is not None and has_text:
                context.append(f"{each.name} ({each.image.label}, attached to the message)")
            else:
                lines.append(each.line)
            if each.reason:
                self._not_attached.setdefault(each.reason, []).append(each.name)
                context.append(_remark([each.name], each.reason))
            if each.path is not None and self._shows_paths:
                context.append(f"{each.name} is stored in {each.path}")
        return SentFiles(images, lines, context)

    def _examine(self, sent: Mapping[str, Any]) -> _File:
        kind = str(sent.get("type"))
        is_plain = _KIND.fullmatch(kind) is not None and kind not in _IMAGES
        file = _File(_shown(sent.get("name")) or "file", kind if is_plain else "file", _shown(sent.get("mime")))
        try:
            self._open(file, sent.get("path"))
        except NotAttached as error:
            file.reason = str(error)
        return file

    def _open(self, file: _File, path: object) -> None:
        """Note what a stored file is, and its image; raise `NotAttached` if it is not here or cannot be attached."""
        place = self._place_of(path)
        try:
            with open_regular_file(place) as opened:
                file.path, file.size = place, os.fstat(opened.fileno()).st_size
                media_type = image_type(opened.read(SNIFFED_BYTES))
                if media_type is not None:
                    file.is_image = True
                    file.image = self._image(opened, media_type)
        except InvalidValue:  # a device, a pipe or a directory
            raise NotAttached(NOT_HERE) from None
        except OSError as error:
            reason = NOT_HERE if error.errno in _NO_FILE else f"it cannot be read: {error.strerror}"
            raise NotAttached(reason) from None

    def _place_of(self, path: object) -> Path:
        """Return the place of a stored file; raise `NotAttached` for every path outside of the folder of files."""
        given = Path(path) if isinstance(path, str) and "\0" not in path else Path()
        for folder in self._folders:
            if given.is_relative_to(folder) and given != folder and ".." not in given.parts:
                return self._folder / given.relative_to(folder)
        raise NotAttached(NOT_HERE)

    def _image(self, opened: BinaryIO, media_type: str) -> Image:
        """Return an image that the model can see and that is within the limits; else raise `NotAttached`."""
        if self._why_no_images:
            raise NotAttached(self._why_no_images)
        if self._image_count >= MAX_REFERENCES:
            raise NotAttached(f"a message can have {MAX_REFERENCES} images")
        opened.seek(0)
        image = read_image(opened, media_type)
        if self._image_bytes + len(image.data) > MAX_MESSAGE_BYTES:
            raise NotAttached(f"the images of a message can have {MAX_MESSAGE_BYTES} bytes together")
        try:
            self._budget.spend("", images=1)
        except TooMuchContext:
            raise NotAttached("the message has more than the model can read at once") from None
        self._image_count += 1
        self._image_bytes += len(image.data)
        return image


def _shown(text: object) -> str:
    """Return a text that a sender chose as one line that cannot end its brackets."""
    if not isinstance(text, str):
        return ""
    printable = "".join(each if each.isprintable() else " " for each in text[: 4 * _MAX_NAME])
    return " ".join(printable.split()).replace("[", "(").replace("]", ")")[:_MAX_NAME]


def _remark(names: Sequence[str], reason: str) -> str:
    verb = "was" if len(names) == 1 else "were"
    return f"{join_some(names)} {verb} not attached: {reason}"
