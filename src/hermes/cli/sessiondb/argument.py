"""Paths and DSNs as command arguments, which must not contain passwords: every user of the machine can read them."""

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
    """Expand `${NAME}` in an argument; raise `InvalidValue` if it contains a password."""
    if carries_password(text):
        raise InvalidValue(
            "the DSN contains a password, which every user of this machine can read while the command runs",
            hint="write '${DB_PASSWORD}' instead, in single quotes, and put DB_PASSWORD=... into .env; if others use"
            " this machine, change the password",
        )
    expanded = expand(text, variables)
    if expanded.unset:
        raise InvalidValue(
            f"the variable {expanded.unset[0]} is not set", hint=f"set it, or put {expanded.unset[0]}=... into .env"
        )
    return expanded.text


def carries_password(text: str) -> bool:
    """Whether a DSN contains a password and not only the name of a variable."""
    rest = _reference.sub("", text)
    in_url = _in_url.match(rest) is not None and _empty_in_url.match(rest) is None
    return in_url or _as_option.search(rest) is not None
