"""Interpreters that get their program from their arguments: then what is piped into them is only data for it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.agent.safety.scanning.programs import base_name, is_known

_LANGUAGES = {
    "python": re.compile(r"i?python[\d.]*|pypy[\d.]*"),
    "perl": re.compile(r"perl[\d.]*"),
    "ruby": re.compile(r"ruby[\d.]*"),
    "node": re.compile(r"node(?:js)?"),
    "shell": re.compile(r"(?:ba|z|da|k)?sh"),
}
_PLAIN_OPTIONS = {
    "python": re.compile(r"-[uEsSIBOqb]+"),
    "perl": re.compile(r"-[wlanp0]+|-F\S{1,3}|-M(?:List::Util|JSON(?:::PP)?|POSIX|strict|warnings)(?:=[\w,]+)?"),
    "ruby": re.compile(r"-[wlanp]+|-r(?:json|csv|set|time|date|pp)"),
    "node": re.compile(r"--no-warnings"),
    "shell": re.compile(r"(?!)"),
}
"""The options before the program that change nothing about where it comes from."""
_CODE_OPTIONS = {
    "python": re.compile(r"-[uEsSIBOqb]*c"),
    "perl": re.compile(r"-[wlanp0]*[eE]"),
    "ruby": re.compile(r"-[wlanp]*e"),
    "node": re.compile(r"-e|-p|-pe|--eval|--print"),
    "shell": re.compile(r"(?!)"),
}
_DATA_MODULES = frozenset({"json.tool", "json"})
"""Modules of Python that only read their input."""
_SCRIPT = re.compile(r"(?!-)(?!.*/(?:dev|proc)/).{0,200}\.(?:py|pl|rb|[cm]?js)", re.DOTALL)
_CAN_RUN_OR_STORE = re.compile(
    r"exec|eval|compile|system|popen|spawn|fork|process\.(?!std|argv|exit)|__|builtin|global|locals|vars|getattr|modules"
    r"|breakpoint|\bopen|\bPath\b|\bIO\b|\bFile\b|socket|Function|constructor|binding|Kernel|\bmethod|\bconst_get"
    r"|send|\btrap\b|autoload|`|\bqx\b|%x|\b(?:do|load|require)\s*[\"'$<%]|&\s*[{$]|->\s*[$(]|\[[^\]\n]{0,80}\+"
    r"|(?<!stdout\.)(?<!stderr\.)write|appendFile|[lL]ink|[rR]ename|[cC]opy(?:File|_)|import\s*\("
    r"|require\s*\((?!\s*[\"'](?:node:)?(?:fs|path|util|readline|url)[\"']\s*\))"
)
"""What in a program could run its input, or store it."""
_RUN_REPLACEMENT = re.compile(r"[^\w\s]\w{0,6}e\w{0,3}e\w{0,4}(?!\w)")
"""In Perl, a replacement that is run twice: `s/x/$_/ee`."""
_USED_IN_PERL = re.compile(r"\buse\s+(?!(?:strict|warnings|utf8)\b)")
_IMPORTS = re.compile(r"\bimport\b")
_IMPORT = re.compile(r"(?:\bfrom\s+(?P<one>[\w.]+)\s+)?\bimport\s+(?P<several>[\w., ]+)")
_DATA_LIBRARIES = frozenset(
    (
        *("json", "sys", "re", "csv", "math", "collections", "itertools", "datetime", "time", "statistics", "string"),
        *("textwrap", "html", "urllib.parse", "hashlib", "pprint", "unicodedata", "decimal", "fractions", "random"),
        *("xml.etree.ElementTree", "xml.dom.minidom", "ast", "difflib", "ipaddress", "uuid", "tomllib", "zlib"),
    )
)
"""Modules of Python in which nothing runs a text."""


def has_own_program(words: Sequence[str]) -> bool:
    """Whether words start an interpreter whose program is in them, and which neither runs nor stores its input.

    Only what is certain counts: a plain script, or code without anything in it that can run a text.
    """
    name = base_name(words[0]) if words else ""
    language = next((each for each, names in _LANGUAGES.items() if names.fullmatch(name)), None)
    if language is None or not all(map(is_known, words)):
        return False
    if language == "shell":
        return list(words[1:]) == ["-n"]  # it only checks the syntax
    rest = iter(words[1:])
    for word in rest:
        if _CODE_OPTIONS[language].fullmatch(word):
            code = next(rest, None)
            return code is not None and _only_reads(code, language)
        if language == "python" and word == "-m":
            return next(rest, "") in _DATA_MODULES
        if not _PLAIN_OPTIONS[language].fullmatch(word):
            return _SCRIPT.fullmatch(word) is not None
    return False


def _only_reads(code: str, language: str) -> bool:
    """Whether a program certainly neither runs nor stores what it reads."""
    if _CAN_RUN_OR_STORE.search(code):
        return False
    if language == "perl":
        return not (_RUN_REPLACEMENT.search(code) or _USED_IN_PERL.search(code))
    return language != "python" or all(map(_DATA_LIBRARIES.__contains__, _imported(code)))


def _imported(code: str) -> list[str]:
    """Return the modules that a program in Python imports; what cannot be read is returned as "?"."""
    found = list(_IMPORT.finditer(code))
    names = [each["one"] for each in found if each["one"]]
    several = (each["several"].split(",") for each in found if not each["one"])
    names += [(words or ["?"])[0] for listed in several for words in map(str.split, listed)]
    return names if len(found) == len(_IMPORTS.findall(code)) else ["?"]
