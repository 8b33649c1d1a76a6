"""Patches as git writes them, without the changes of protected files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hermes.agent.safety.visible_text import make_path_visible

_HEADER = re.compile(r"diff --(git|cc|combined) (.+)")
_QUOTED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_SPECIAL = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_COMMIT = re.compile(r"commit [0-9a-f]{40,64}")


def without_protected(patch: str, reason_of: Callable[[str], str | None]) -> str:
    """Return a patch with a remark instead of the changes of each protected file.

    A header that cannot be read hides its changes too. Every line of a change begins with another character than a
    header, and messages of commits are indented, so no text in the repository can look like a header.
    """
    return "\n".join(_shown_lines(patch, reason_of))


def _shown_lines(patch: str, reason_of: Callable[[str], str | None]) -> Iterator[str]:
    is_hidden = False
    for line in patch.split("\n"):
        if header := _HEADER.fullmatch(line):
            name = _path_of(header[1], header[2])
            reason = "its name cannot be read" if name is None else reason_of(name)
            is_hidden = reason is not None
            if is_hidden:
                shown = "a file" if name is None else make_path_visible(name)
                yield f"[the changes of {shown} are not shown: {reason}]"
        elif _COMMIT.fullmatch(line):
            if is_hidden:
                yield ""
            is_hidden = False
        if not is_hidden:
            yield line


def _path_of(kind: str, rest: str) -> str | None:
    """Return the path in a header; without renames, both names in it are the same."""
    if kind != "git":
        return _unquote(rest) if rest.startswith('"') else rest
    first, second = rest[: (len(rest) - 1) // 2], rest[(len(rest) + 1) // 2 :]
    if first.startswith('"') and second.startswith('"'):
        first, second = _unquote(first), _unquote(second)
    return first[2:] if first[:2] == "a/" and second == f"b/{first[2:]}" and first[2:] else None


def _unquote(text: str) -> str:
    """Return a name that git has written as a C string."""
    inner = text.removeprefix('"').removesuffix('"').encode("utf-8", "replace")
    return _QUOTED.sub(_character, inner).decode("utf-8", "surrogateescape")


def _character(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8) & 0xFF]) if code.isdigit() else _SPECIAL.get(code, code)
