"""The content of a text file, and how it is stored: its line breaks and its byte order mark are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from hermes.errors import InvalidValue
from hermes.phrases import plural

MAX_BYTES = 1_000_000
"""A larger file is not changed: no person could check the change."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class TextContent:
    """A text as a model sees it: with line feeds, unless the file mixes both kinds of line breaks."""

    text: str = ""
    has_crlf: bool = False
    """Whether every line ends with a carriage return and a line feed."""
    has_bom: bool = False

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Return the text of a file; raise `InvalidValue` if it is not text, or too large."""
        if len(data) > MAX_BYTES:
            raise InvalidValue(f"the file has {plural(len(data), 'byte')}; at most {MAX_BYTES} can be changed")
        if b"\0" in data:
            raise InvalidValue(f"not a text file: {plural(len(data), 'byte')} of binary data")
        try:
            text = data.removeprefix(_BOM).decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise InvalidValue(
                f"not a UTF-8 text: line {line} has other bytes; convert the file first, or change it with a command"
            ) from None
        has_crlf = 0 < text.count("\n") == text.count("\r\n") == text.count("\r")
        return cls(text.replace("\r\n", "\n") if has_crlf else text, has_crlf, data.startswith(_BOM))

    def encode(self, text: str) -> bytes:
        """Return another text as it is stored in this file; raise `InvalidValue` if it is not text, or too large."""
        text = text.removeprefix("\ufeff") if self.has_bom else text
        if self.has_crlf:
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        if "\0" in text:
            raise InvalidValue("the content is not text: it has a zero byte")
        try:
            data = (_BOM if self.has_bom else b"") + text.encode()
        except UnicodeEncodeError:
            raise InvalidValue("the content is not valid text: it has half of a surrogate pair") from None
        if len(data) > MAX_BYTES:
            raise InvalidValue(
                f"the content has {plural(len(data), 'byte')}; the limit is {MAX_BYTES}", hint="write several files"
            )
        return data

    def stored_notes(self) -> list[str]:
        """Return what a person cannot see in the text."""
        notes = {
            "its lines end with CR LF, which stays so": self.has_crlf,
            "it begins with a byte order mark": self.has_bom,
        }
        return [note for note, is_so in notes.items() if is_so]
