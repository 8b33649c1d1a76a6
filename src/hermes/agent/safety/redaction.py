"""Texts that others wrote, such as errors, without the secrets that they may quote."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hermes.agent.history.text_limits import limit_text
from hermes.agent.safety.environment import is_secret_name

HIDDEN = "***"
MAX_CHARACTERS = 16_000
"""Well above what is shown of an error, so that no secret is cut in two where somebody sees its half."""

_MIN_SECRET_CHARACTERS = 8
_PASSWORD_IN_URL = re.compile(r"(://[^:/@\s]{0,200}):[^@\s]{0,500}@")
_HEADER = re.compile(r"\b(Bearer|Basic|Token)\s{1,20}[\w.~+/=-]{8,}", re.IGNORECASE)
_ASSIGNED = re.compile(
    # Only from the word itself on: what its name begins with is not hidden, so it need not be looked for.
    r"((?:api[_-]?key|token|secret|password|passwd)[\w-]{0,60}[\"']?\s{0,20}[:=]\s{0,20}[\"']?)[^\s\"',;&]{4,}",
    re.IGNORECASE,
)
_SHAPES = re.compile(
    r"\b(?:[spr]k-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|hf_\w{20,}|eyJ[\w-]{8,500}\.[\w-]{8,}\.[\w-]*)"
)


def redact(text: str, environ: Mapping[str, str]) -> str:
    """`text` without the values of secret variables, passwords in addresses, and what has the shape of a key.

    Of a long text both ends are kept: what nobody will read is not looked through.
    """
    for value in _secrets(environ):
        text = text.replace(value, HIDDEN)
    text = limit_text(text, MAX_CHARACTERS, more="look at less at once")
    text = _PASSWORD_IN_URL.sub(rf"\1:{HIDDEN}@", text)
    text = _HEADER.sub(rf"\1 {HIDDEN}", text)
    text = _ASSIGNED.sub(rf"\1{HIDDEN}", text)
    return _SHAPES.sub(HIDDEN, text)


def _secrets(environ: Mapping[str, str]) -> list[str]:
    """The values to hide, the longest first, so that none is left in part."""
    values = {value for name, value in environ.items() if is_secret_name(name) and len(value) >= _MIN_SECRET_CHARACTERS}
    return sorted(values, key=len, reverse=True)
