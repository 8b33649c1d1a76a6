"""A path or a DSN as an argument of a command: every user of the machine can read it, so no password stands in it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hermes.envfile import expand
from hermes.errors import InvalidValue

_reference = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_in_url = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^/?#:@]*:[^@]*@")
_empty_in_url = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^/?#:@]*:@")
_as_option = re.compile(r"(?:^|[?&\s])(?:password|sslpassword|ssl_key_password)\s*=\s*[^\s&]", re.IGNORECASE)


def read_argument(text: str, variables: Mapping[str, str]) -> str:
    """Return what an argument stands for, its `${NAME}` looked up; raises where a password is written in it."""
    if carries_password(text):
        raise InvalidValue(
            "a password in a command can be read by everybody on this machine while the command runs",
            hint="write ${DB_PASSWORD} in its place, in single quotes, and DB_PASSWORD=... into .env; if others use"
            " this machine, change the password",
        )
    expanded = expand(text, variables)
    if expanded.unset:
        raise InvalidValue(
            f"there is no variable {expanded.unset[0]}", hint=f"set it, or write {expanded.unset[0]}=... into .env"
        )
    return expanded.text


def carries_password(text: str) -> bool:
    """Whether a DSN has a password of its own, and not only the name of a variable."""
    rest = _reference.sub("", text)
    in_url = _in_url.match(rest) is not None and _empty_in_url.match(rest) is None
    return in_url or _as_option.search(rest) is not None
