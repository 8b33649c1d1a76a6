"""Files that answers send along, as the platform takes them."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from typing import Any

from hermes.gateway.engine.ports import NotSent
from hermes.platforms.base.media import MAX_FILE_BYTES, MediaFile

MAX_CAPTION = 1024
_SHOWN: Mapping[str, frozenset[str]] = {
    "image": frozenset({"image/jpeg", "image/png"}),
    "video": frozenset({"video/mp4", "video/3gpp"}),
    "audio": frozenset({"audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"}),
}
"""What the platform shows as a picture, a video or a recording; everything else is sent as a document."""


def mime_of(file: MediaFile) -> str:
    """Return the type of a file, by its name."""
    return mimetypes.guess_type(file.path.name)[0] or "application/octet-stream"


def file_message(file: MediaFile, media_id: str) -> dict[str, Any]:
    """Return the part of a message that names an uploaded file."""
    kind = file.kind if mime_of(file) in _SHOWN.get(file.kind, ()) else "document"
    about: dict[str, Any] = {"id": media_id}
    if file.caption and kind != "audio":
        about["caption"] = file.caption[:MAX_CAPTION]
    if kind == "document":
        about["filename"] = file.path.name
    return {"type": kind, kind: about}


def read_file(file: MediaFile) -> bytes:
    """Return the content of a file; raise `NotSent` if it is too large or cannot be read."""
    try:
        with file.path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise NotSent(f"the file cannot be read: {error.strerror}", is_final=True) from error
    if len(data) > MAX_FILE_BYTES:
        raise NotSent(f"the file is larger than {MAX_FILE_BYTES // 1024 // 1024} MB", is_final=True)
    return data
