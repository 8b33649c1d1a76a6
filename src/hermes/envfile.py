"""Parse the `.env` file, and expand `${VAR}` references."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_ASSIGNMENT = re.compile(r"(?:export\s+)?(?P<key>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?P<rest>.*)")
_SINGLE_QUOTED = re.compile(r"'(?P<text>[^']*)'\s*(?:#.*)?")
_DOUBLE_QUOTED = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_LINE_END = re.compile(r"\r\n|\n|\r")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}

_REFERENCE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]{0,500}))?\}")


class Expansion(NamedTuple):
    """A text with its `${VAR}` references expanded."""

    text: str
    names: tuple[str, ...]
    unset: tuple[str, ...]


def parse_env(data: bytes) -> tuple[dict[str, str], list[str]]:
    """Return the variables of a `.env` file, and a list of problems with line numbers but without values."""
    variables: dict[str, str] = {}
    problems: list[str] = []
    text = data.decode("utf-8-sig", "surrogateescape")
    for number, line in enumerate(_LINE_END.split(text), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        found = _ASSIGNMENT.fullmatch(stripped)
        value = _unquote(found["rest"]) if found else None
        if not _is_utf8(line):
            problems.append(f"line {number} is not UTF-8 text and is ignored")
        elif found is None:
            problems.append(f"line {number} is not KEY=VALUE and is ignored")
        elif value is None:
            problems.append(f"line {number} ({found['key']}) has unbalanced quotes or text after them and is ignored")
        else:
            variables[found["key"]] = value
    return variables, problems


def expand(text: str, variables: Mapping[str, str]) -> Expansion:
    """Replace `${VAR}` and `${VAR:-default}` once. As in a shell, the default also replaces an empty value."""
    names: list[str] = []
    unset: list[str] = []

    def look_up(reference: re.Match[str]) -> str:
        name, default = reference["name"], reference["default"]
        names.append(name)
        value = variables.get(name)
        if default is not None:
            return value or default
        if value is None:
            unset.append(name)
            return reference[0]
        return value

    return Expansion(_REFERENCE.sub(look_up, text), tuple(names), tuple(unset))


def _unquote(text: str) -> str | None:
    """Return the value of `text` without its quotes, or None if the quotes are not balanced."""
    if text.startswith("'"):
        found = _SINGLE_QUOTED.fullmatch(text)
        return found["text"] if found else None
    if text.startswith('"'):
        found = _DOUBLE_QUOTED.fullmatch(text)
        return _ESCAPE.sub(_unescape, found["text"]) if found else None
    return _COMMENT.sub("", text).strip()


def _unescape(escape: re.Match[str]) -> str:
    return _ESCAPED.get(escape[1], escape[1])


def _is_utf8(line: str) -> bool:
    """False if decoding kept bytes that are not UTF-8 as lone surrogates."""
    return not any("\udc80" <= character <= "\udcff" for character in line)
