"""Secrets in texts: found by their shape or by the text before them, and replaced.

A secret is what opens something: a key, a token, a password. Names, addresses and paths are not secrets, so a
conversation without secrets is not yet anonymous. In doubt, a text is treated as a secret.

`redact` and `redact_value` are for exports, where the rest must stay readable. `hide_keys` is for error texts: it also
hides everything that begins like a key. Importing this module compiles all patterns, so callers import it late.
"""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "[redacted]"
MASK = "***"
"""What error texts show instead of a secret."""

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
    "hf_": r"\bhf_[A-Za-z0-9]{34}\b",  # Hugging Face: often without a digit
    "-": r"\b(?:xai|pplx|pypi|tskey)-(?=[\w-]{0,200}?[0-9])[\w-]{16,}",
    "hvs.": r"\bhvs\.[\w-]{20,}",
    "dp.": r"\bdp\.[ps]t\.[\w-]{20,}",
    "dapi": r"\bdapi[0-9a-f]{32}\b",
    "atatt3": r"\bATATT3[\w=-]{20,}",
    "sg.": r"\bSG\.[\w-]{16,}\.[\w-]{16,}",
    "atbb": r"\bATBB[A-Za-z0-9]{20,}",  # Bitbucket
    "dckr_": r"\bdckr_(?:pat|oat)_[\w-]{20,}",
    "sk": r"\bSK[0-9a-f]{32}\b",  # Twilio
    "ac": r"\bAC[0-9a-f]{32}:[0-9a-f]{32}\b",
    "key-": r"\bkey-[0-9a-f]{32}\b",  # Mailgun
    "age-secret-key": r"\bAGE-SECRET-KEY-1[0-9A-Z]{20,}",
    "eyj": r"\beyJ[\w-]{8,500}\.[\w-]{8,}\.[\w-]*",  # JSON web tokens
    ":": r"\b[0-9]{8,10}:[\w-]{35}(?![\w-])",  # Telegram bots
    ".": r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}",  # Discord bots
}
"""Secrets with a shape of their own, by a text in lower case that each contains: most texts contain none of these."""

_SCHEME = r"(?:bearer|basic|token|digest|apikey|negotiate|ntlm|hawk)\s"
_OPEN = rf"(?!{re.escape(HIDDEN)})"
_NO_VALUE = (
    r"(?![$%{<*\[]|(?:required|needed|optional|wrong|correct|incorrect|invalid|valid|empty|missing|secret|hidden|unknown"
    r"|known|stored|saved|encrypted|hashed|expired|changed|weak|strong|secure|safe|short|long|null|none|true|false|unset"
    r"|here|there|below|above|same|different|compromised|public|random|temporary|case|falsch|richtig|leer|geheim|sicher"
    r"|unsicher|bekannt|unbekannt|abgelaufen|erforderlich|notwendig|gespeichert|verschlüsselt|kurz|lang|gleich|hier"
    r"|dort|noch|nicht|auch|also|still)(?![^\s.,;:!?)]))"
)


def _sentence_pattern(name: str) -> str:
    """The pattern of a sentence such as `Password is x`: x has a digit or a sign, is quoted, or ends the line."""
    return (
        rf"(\b{name}\s{{1,4}}(?:is|was|ist|war|lautet)\s{{1,4}}(?:(?:now|jetzt)\s{{1,4}})?[\"'`]?){_OPEN}{_NO_VALUE}"
        r"(?:(?=[^\s\"'`]{0,80}[0-9#&+=@^~])[^\s\"'`,;]{4,80}(?<![.,;:!?)])"
        r"|(?<=[\"'`])[^\s\"'`]{4,80}(?=[\"'`])|\w{4,80}(?=[.!]{0,3}[ \t]{0,8}(?:$|[\r\n])))"
    )


_BY_PLACE = {
    "passw": _sentence_pattern("passwor[dt]"),
    "kennwort": _sentence_pattern("kennwort"),
    "passphrase": _sentence_pattern("passphrase"),
    "hooks": r"(https://(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks)/)"
    r"[\w/.-]{8,}",
    "://": rf"([a-z][a-z0-9+.-]{{1,20}}://[^\s:/@\"'<>]{{0,200}}:){_OPEN}[^\s/@\"'<>]+(?=@)",
    "http": r"(https?://)[\w-]{20,}(?=@)",
    "authorization": rf"(\bauthorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:{_SCHEME}\s*)?)"
    rf"(?!{_SCHEME}){_OPEN}[^\s\"'\\,;]{{6,}}",
    "bearer": r"(\bbearer\s+)(?=[\w.~+/=-]*[0-9])[\w.~+/=-]{12,}",
    "cookie": rf"((?<![\w-])(?:set-)?cookie\\{{0,4}}[\"']?\s{{0,8}}[:=]\s{{0,8}}\[?\\{{0,4}}[\"']?){_OPEN}"
    r"[\w.!#$%&*+^|~-]{1,100}=[^\r\n\"'\\]*",
    " -b": r"(\s-b\s{1,4}[\"']?)[\w.-]{1,80}=[^\s\"']+",
    "--cookie": r"(\s--cookie[\s=]{1,4}[\"']?)[\w.-]{1,80}=[^\s\"']+",
    "sessi": r"((?<![\w.])(?:jsessionid|sessionid|asp\.net_sessionid|aspsessionid[a-z]{0,20})=)[^\s;,\"'&<>\[]{8,}",
    "_sess": rf"((?<![\w.])[\w-]{{1,40}}_session=){_OPEN}(?=[^\s;,\"'&<>]{{0,100}}[0-9])[^\s;,\"'&<>]{{16,}}",
    "phpsessid": r"((?<![\w.])phpsessid=)[^\s;,\"'&<>\[]{8,}",
    "connect.sid": r"((?<![\w.])connect\.sid=)[^\s;,\"'&<>\[]{8,}",
    "sig": r"([?&;, ](?:x-amz-|x-goog-)?sig(?:nature)?=)(?=[\w%+/=-]{0,60}[0-9])[\w%+/=-]{12,}",
    "auth=": rf"((?<![a-z0-9])_?auth\s{{0,4}}=\s{{0,4}}[\"']?){_OPEN}(?=[\w+/=-]{{0,60}}[0-9])[\w+/=-]{{8,}}",
    '"auth"': r"(\"auth\"\s{0,4}:\s{0,4}\")(?=[A-Za-z0-9+/]{0,200}[0-9=])[A-Za-z0-9+/=]{8,}(?=\")",
    "pass": rf"((?<![\w.-])pass\\{{0,4}}[\"'`]?\s{{0,8}}[:=]\s{{0,8}}\\{{0,4}}[\"'`]?){_OPEN}"
    r"(?=[^\s\"'`,;]{0,80}[0-9])(?=[^\s\"'`,;]{0,80}[a-z])[^\s\"'`,;\\]{6,}",
    "requirepass": r"(\brequirepass\s{1,4}[\"']?)[^\s\"'\[]{4,}",
    "identified": rf"(\bidentified\s{{1,4}}(?:with\s{{1,4}}\S{{1,40}}\s{{1,4}})?by\s{{1,4}}(?:password\s{{1,4}})?"
    rf"[\"']){_OPEN}"
    r"[^\"'\r\n]{3,200}",
    "password '": rf"(\bpassword '){_OPEN}[^'\r\n]{{3,200}}(?=')",
    "password ": rf"((?:^|\n)[ \t]{{0,20}}password[ \t]{{1,4}}){_OPEN}"
    r"\S{4,200}(?=[ \t]{0,4}\r?\n[ \t]{0,20}login[ \t])",
    "sshpass": rf"(\bsshpass\s{{1,4}}-p\s{{0,4}}[\"']?){_OPEN}[^\s\"']{{3,}}",
    "mysql": rf"(\bmysql(?:dump|admin)?\s[^\r\n|;&]{{0,200}}?(?<=\s)(?-i:-p)){_OPEN}(?![\s=])[^\s\"']{{3,}}",
    "mariadb": rf"(\bmariadb(?:-dump|-admin)?\s[^\r\n|;&]{{0,200}}?(?<=\s)(?-i:-p)){_OPEN}(?![\s=])[^\s\"']{{3,}}",
    "redis-cli": rf"(\bredis-cli\s[^\r\n|;&]{{0,200}}?(?<=\s)-a\s{{1,4}}[\"']?){_OPEN}[^\s\"']{{3,}}",
    "login ": rf"(\b(?:docker|podman|helm|oc|az)\s{{1,4}}(?:registry\s)?login\s[^\r\n|;&]{{0,200}}?"
    rf"(?<=\s)(?-i:-p)\s{{1,4}}[\"']?){_OPEN}[^\s\"']{{3,}}",
    "login": rf"(\slogin\s+\S+\s+password\s+){_OPEN}\S+",
    "-u": rf"(\s(?:-u|--user)\s+[\"']?[^\s:\"'/]+:){_OPEN}[^\s\"'@]+",
}
"""Secrets that the text before them shows; that text is kept."""

_NAMES = (
    r"(?:api|access|secret|private|signing|encryption|account|master|auth|license|ssh|service)[_-]?key"
    r"(?:[_-]?(?:id|base))?|secret|token|credentials?|passwd|passwor[dt](?:[_-]hash)?|kennwort|passphrase|pwd"
    r"|(?<![a-z0-9])pw|(?-i:(?<=[a-z])Pw)"
    r"|(?-i:(?<=[A-Z0-9])(?<!PRIMARY)(?<!FOREIGN)(?<!UNIQUE)(?<!PARTITION)(?<!SORT)(?<!HASH)(?<!CACHE)(?<!PUBLIC)_KEY)"
    r"|(?:(?<=_)|user|db|mail|smtp|root|admin)pass|(?-i:(?<=[a-z])Pass)"
    r"|(?-i:(?:SECRET|TOKEN|PASSWORD|PASS|API_KEY|SECRET_KEY|PRIVATE_KEY|ACCESS_KEY)"
    r"_(?:PROD|PRODUCTION|STAGING|DEV|TEST|LIVE|OLD|NEW|PRIMARY|SECONDARY|RO|RW|V?[0-9]{1,3}))"
)
_NAME_HINTS = ("key", "secret", "token", "credential", "pass", "pw", "kennwort")
_ASSIGNED = re.compile(
    rf"""(?P<before>(?:{_NAMES})\\*["'`]?
         (?:\s*:\s*(?:str|string|bytes)\b(?:\s*\|\s*None)?(?=\s*=))?       # as Python and others declare it
         \s*(?:=>|:=|[:=])(?!=)\s*)
         (?:(?P<plain>["'])(?P<escaped>(?:\\.|(?!(?P=plain))[^\\\r\n]){{4,400}})(?P=plain)
           |(?P<quote>\\*["'`])(?P<quoted>(?:(?!(?P=quote)|[\r\n]).){{4,400}})(?P=quote)
           |(?P<bare>[^\s"'`,;&<>()\[\]{{}}\\|]{{4,}}+(?!\()))""",
    re.IGNORECASE | re.VERBOSE,
)
_OPTION = re.compile(rf"((?<![\w-])--(?:[\w-]{{1,60}}-)?(?:{_NAMES})\s+)(?!-)([^\s\"'`<\[$]{{4,}})", re.IGNORECASE)
_LEAST_SECRET_NUMBER = 1_000
"""A smaller number with the name of a secret is a count."""
_SECRET_NAME = re.compile(rf"(?:{_NAMES}|^pass|authorization|^(?:set-)?cookie)$", re.IGNORECASE)
_ELEMENT = re.compile(
    rf"(<[\w.:-]{{0,60}}?(?:{_NAMES}|(?<=<)pass)(?:\s[^<>]{{0,200}})?>\s{{0,8}})([^<>\s][^<>\r\n]{{2,400}})(?=</)",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(
    rf"(\b(?:key|name)=[\"'][\w:.-]{{0,60}}?(?:{_NAMES})[\"']\s{{1,8}}value=[\"'])([^\"'<>]{{4,400}})", re.IGNORECASE
)

_REFERENCE = re.compile(
    r"[$%{<*\[]|process\.env|os\.|env\.|getenv|(?:[A-Za-z_]+\.)+[A-Za-z_]+$|(?:~|\.{0,2})/[\w.-]+(?:/|$)"
    r"|(?:string|bytes|boolean|integer|number|object|none|null|true|false|undefined|required|optional|default|secretstr)$",
    re.IGNORECASE,
)
"""What may stand where a secret is expected: a variable, a path, the name of a type."""

_SHAPES = {hint: re.compile(pattern) for hint, pattern in _BY_SHAPE.items()}
_PLACES = {hint: re.compile(pattern, re.IGNORECASE) for hint, pattern in _BY_PLACE.items()}


_BEGINS_LIKE_A_KEY = re.compile(
    r"\b(?:[spr]k[-_]|gsk_|xai-|AIza)[^\s\"',;)]{8,}|(?<=bearer )[^\s\"',;)]{4,}", re.IGNORECASE
)


def hide_keys(text: str) -> str:
    """Return an error text without secrets, and without anything that begins like a key."""
    return _BEGINS_LIKE_A_KEY.sub(MASK, redact(text)[0].replace(HIDDEN, MASK))


def hide_login(address: str) -> str:
    """Return an address without the user and the password before its host; a password may contain an @ too."""
    start, end = address.find("://"), address.rfind("@")
    return address if start < 0 or end < start else f"{address[:start]}://{MASK}{address[end:]}"


def redact(text: str) -> tuple[str, int]:
    """Return a text with its secrets replaced, and their number."""
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
        value = found["escaped"] or found["quoted"] or found["bare"]
        if HIDDEN in value or _REFERENCE.match(value):
            return found[0]
        count += 1
        quote = found["plain"] or found["quote"] or ""
        return f"{found['before']}{quote}{HIDDEN}{quote}"

    def hide_value(found: re.Match[str]) -> str:
        nonlocal count
        if HIDDEN in found[2] or _REFERENCE.match(found[2]):
            return found[0]
        count += 1
        return f"{found[1]}{HIDDEN}"

    for pattern in (_ELEMENT, _ATTRIBUTE):
        text = pattern.sub(hide_value, text)
    text, replaced = _OPTION.subn(rf"\1{HIDDEN}", text)
    return _ASSIGNED.sub(hide, text), count + replaced


def redact_value(value: Any) -> tuple[Any, int]:
    """Return a value with the secrets in all of its texts replaced, and their number."""
    try:
        return _redact_value(value)
    except RecursionError:
        return HIDDEN, 1  # too deep to look for secrets


def _redact_value(value: Any) -> tuple[Any, int]:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        parts = [_redact_value(each) for each in value]
        return [part for part, _ in parts], sum(count for _, count in parts)
    if isinstance(value, dict):
        entries = {name: _entry(name, each) for name, each in value.items()}
        return {name: part for name, (part, _) in entries.items()}, sum(count for _, count in entries.values())
    return value, 0


def _entry(name: str, value: Any) -> tuple[Any, int]:
    if not _SECRET_NAME.search(name):
        return _redact_value(value)
    if isinstance(value, list):
        parts = [_entry(name, each) for each in value]
        return [part for part, _ in parts], sum(count for _, count in parts)
    is_number = type(value) is int and abs(value) >= _LEAST_SECRET_NUMBER
    if is_number or (isinstance(value, str) and value and not _REFERENCE.match(value)):
        return HIDDEN, 1
    return _redact_value(value)
