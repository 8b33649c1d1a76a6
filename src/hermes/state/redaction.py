"""Secrets in what was said: known by their shape or by what stands before them, and replaced.

What opens something is a secret: keys, tokens, passwords. Names, addresses and paths are none, so a conversation
without secrets is not yet an anonymous one. Where it is not certain whether something is a secret, it is taken for one.
"""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "[redacted]"

_BY_SHAPE = {
    "private key": r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?!-----)[A-Za-z0-9+/=\s\\:;,.()<>@_-])*+(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?",
    "k-": r"\b[sr]k-(?=[\w-]{0,200}?[0-9])[\w-]{16,}",  # OpenAI, Anthropic, OpenRouter and many others
    "k_": r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
    "whsec_": r"\bwhsec_[A-Za-z0-9]{16,}",
    "gh": r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    "github_pat_": r"\bgithub_pat_\w{20,}",
    "gl": r"\bgl(?:pat|ptt|rt|soat)-[\w-]{16,}",
    "xox": r"\bxox[a-z]-[A-Za-z0-9-]{10,}",
    "xapp-": r"\bxapp-[A-Za-z0-9-]{10,}",
    "akia": r"\bAKIA[0-9A-Z]{16}\b",
    "asia": r"\bASIA[0-9A-Z]{16}\b",
    "aiza": r"\bAIza[\w-]{30,}",
    "ya29.": r"\bya29\.[\w-]{20,}",
    "gocspx-": r"\bGOCSPX-[\w-]{20,}",
    "_": r"\b(?:hf|npm|gsk|r8|dop_v1|lin_api|shpat|shpss|ntn|figd|glc|sntrys)_(?=\w{0,200}?[0-9])[\w=+/-]{20,}",
    "-": r"\b(?:xai|pplx|pypi|tskey)-(?=[\w-]{0,200}?[0-9])[\w-]{16,}",
    "hvs.": r"\bhvs\.[\w-]{20,}",
    "dp.": r"\bdp\.[ps]t\.[\w-]{20,}",
    "dapi": r"\bdapi[0-9a-f]{32}\b",
    "atatt3": r"\bATATT3[\w=-]{20,}",
    "sg.": r"\bSG\.[\w-]{16,}\.[\w-]{16,}",
    "age-secret-key": r"\bAGE-SECRET-KEY-1[0-9A-Z]{20,}",
    "eyj": r"\beyJ[\w-]{8,500}\.[\w-]{8,}\.[\w-]*",  # JSON web tokens
    ":": r"\b[0-9]{8,10}:[\w-]{35}(?![\w-])",  # Telegram bots
    ".": r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}",  # Discord bots
}
"""What is a secret by its shape alone, by what it has in small letters: most texts have nothing of it."""

_SCHEME = r"(?:bearer|basic|token|digest|apikey)\s"
_OPEN = rf"(?!{re.escape(HIDDEN)})"
_BY_PLACE = {
    "hooks": r"(https://(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks)/)"
    r"[\w/.-]{8,}",
    "://": rf"([a-z][a-z0-9+.-]{{1,20}}://[^\s:/@\"'<>]{{0,200}}:){_OPEN}[^\s/@\"'<>]+(?=@)",
    "http": r"(https?://)[\w-]{20,}(?=@)",
    "authorization": rf"(\bauthorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:{_SCHEME}\s*)?)"
    rf"(?!{_SCHEME}){_OPEN}[^\s\"'\\,;]{{6,}}",
    "bearer": r"(\bbearer\s+)(?=[\w.~+/=-]*[0-9])[\w.~+/=-]{12,}",
    "cookie:": rf"((?<![\w-])(?:set-)?cookie:\s*){_OPEN}[^\s\"'][^\r\n\"']*",
    "login": rf"(\slogin\s+\S+\s+password\s+){_OPEN}\S+",
    "-u": rf"(\s(?:-u|--user)\s+[\"']?[^\s:\"'/]+:){_OPEN}[^\s\"'@]+",
}
"""What is a secret by what stands before it, which is kept."""

_NAMES = (
    r"(?:api|access|secret|private|signing|encryption|account|master|auth|license|ssh|service)[_-]?key(?:[_-]?id)?"
    r"|secret|token|credentials?|passwd|password|passphrase|pwd"
)
_NAME_HINTS = ("key", "secret", "token", "credential", "pass", "pwd")
_ASSIGNED = re.compile(
    rf"""(?P<before>(?:{_NAMES})\\*["'`]?
         (?:\s*:\s*(?:str|string|bytes)\b(?:\s*\|\s*None)?(?=\s*=))?       # as Python and others declare it
         \s*(?:=>|:=|[:=])(?!=)\s*)
         (?:(?P<quote>\\*["'`])(?P<quoted>(?:(?!(?P=quote)|[\r\n]).){{4,400}})(?P=quote)
           |(?P<bare>[^\s"'`,;&<>()\[\]{{}}\\|]{{4,}}+(?!\()))""",
    re.IGNORECASE | re.VERBOSE,
)
_OPTION = re.compile(rf"((?<![\w-])--(?:[\w-]{{1,60}}-)?(?:{_NAMES})\s+)(?!-)([^\s\"'`<\[$]{{4,}})", re.IGNORECASE)
_SECRET_NAME = re.compile(rf"(?:{_NAMES})$", re.IGNORECASE)

_REFERENCE = re.compile(
    r"[$%{<*\[]|process\.env|os\.|env\.|getenv|(?:[A-Za-z_]+\.)+[A-Za-z_]+$|(?:~|\.{0,2})/[\w.-]+(?:/|$)"
    r"|(?:string|bytes|boolean|integer|number|object|none|null|true|false|undefined|required|optional|default|secretstr)$",
    re.IGNORECASE,
)
"""What stands in the place of a secret and is none: a variable, a path, the name of a type."""

_SHAPES = {hint: re.compile(pattern) for hint, pattern in _BY_SHAPE.items()}
_PLACES = {hint: re.compile(pattern, re.IGNORECASE) for hint, pattern in _BY_PLACE.items()}


def redact(text: str) -> tuple[str, int]:
    """A text with its secrets replaced, and how many there were."""
    small = text.lower()
    count = 0
    for patterns, replacement in ((_SHAPES, HIDDEN), (_PLACES, rf"\1{HIDDEN}")):
        for hint, pattern in patterns.items():
            if hint in small:
                text, replaced = pattern.subn(replacement, text)
                count += replaced
    if not any(hint in small for hint in _NAME_HINTS):
        return text, count

    def hide(found: re.Match[str]) -> str:
        nonlocal count
        value = found["quoted"] or found["bare"]
        if HIDDEN in value or _REFERENCE.match(value):
            return found[0]
        count += 1
        quote = found["quote"] or ""
        return f"{found['before']}{quote}{HIDDEN}{quote}"

    text, replaced = _OPTION.subn(rf"\1{HIDDEN}", text)
    return _ASSIGNED.sub(hide, text), count + replaced


def redact_value(value: Any) -> tuple[Any, int]:
    """A value with the secrets in all of its texts replaced, and how many there were."""
    try:
        return _redacted(value)
    except RecursionError:
        return HIDDEN, 1  # nobody can look through it, so nobody knows what is in it


def _redacted(value: Any) -> tuple[Any, int]:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        parts = [_redacted(each) for each in value]
        return [part for part, _ in parts], sum(count for _, count in parts)
    if isinstance(value, dict):
        entries = {name: _entry(name, each) for name, each in value.items()}
        return {name: part for name, (part, _) in entries.items()}, sum(count for _, count in entries.values())
    return value, 0


def _entry(name: str, value: Any) -> tuple[Any, int]:
    if isinstance(value, str) and value and _SECRET_NAME.search(name) and not _REFERENCE.match(value):
        return HIDDEN, 1
    return _redacted(value)
