"""The patterns that always apply: what a command contains, whatever it does. Nothing here runs a command."""

from __future__ import annotations

import re
from unicodedata import category

from hermes.agent.safety.scanning.addresses import find_addresses
from hermes.agent.safety.scanning.findings import Finding
from hermes.agent.safety.scanning.interpreters import find_interpreters
from hermes.agent.safety.visible_text import has_disguise

RULE_ESCAPE, RULE_WRITTEN_ESCAPE, RULE_INVISIBLE, RULE_DISGUISE, RULE_LENGTH = (
    "terminal_escape",
    "written_escape",
    "invisible_character",
    "disguised_character",
    "too_long",
)
MAX_CHARACTERS = 400_000
"""No system starts a longer command."""

# Not colors: codes that set the title, the clipboard or keys, move the cursor, or erase or hide what is shown.
_WRITTEN_ESCAPE = re.compile(
    r"\\(?:e|E|0{0,2}33|x1[bB]|u\{?(?:00)?1[bB]\}?|c\[)"
    r"(?:\\?[\]P_^X]|\\?\[[0-9;?>=]{0,20}[A-JL-Za-ln-z@]|\\?\[(?:[0-9]{0,3};){0,8}(?<![34]8;5;)8m)"
    r"|\\(?:0?233|x9[0bBdDeEfF]|u009[0bBdDeEfF]|u20(?:0[b-fB-F]|2[a-eA-E]|6[0-9a-fA-F])|u\{?[fF][eE][fF]{2}\}?)"
)
_TYPOGRAPHY = re.compile(r"(?<=\w)\u2019(?=\w)|(?<=\s)[\u2013\u2014](?=\s)|(?<=\d)\u2013(?=\d)|\u2026")
"""Apostrophes in words, dashes between words and numbers, and ellipses: no one takes them for a part of a command."""
_QUOTING = re.compile(r"""["'\\]+""")


def find_patterns(command: str) -> list[Finding]:
    """Return what makes a command suspicious by its text alone."""
    if len(command) > MAX_CHARACTERS:
        return [Finding(RULE_LENGTH, f"is too long to be checked ({len(command)} characters)")]
    found = find_interpreters(command)
    # Once as it is written, and once as a shell reads it: `xn\--` and `xn"--"` are the same.
    found += find_addresses((command, _QUOTING.sub("", command)))
    found += _characters(command)
    if _WRITTEN_ESCAPE.search(command):
        found.append(Finding(RULE_WRITTEN_ESCAPE, "writes codes that control a terminal, or invisible characters"))
    return found


def _characters(command: str) -> list[Finding]:
    """Return findings about characters that a person cannot see or takes for others."""
    if not has_disguise(_TYPOGRAPHY.sub("", command)):
        return []
    kinds = (
        {category(each) for each in set(command) if not each.isascii() or not each.isprintable()} if command else set()
    )
    found = []
    if any(ord(each) < 32 or 0x7F <= ord(each) < 0xA0 for each in set(command) - {"\t", "\n"}):
        found.append(Finding(RULE_ESCAPE, "contains characters that control a terminal"))
    if "Cf" in kinds:
        found.append(
            Finding(RULE_INVISIBLE, "contains invisible characters, or such that change the order of the text")
        )
    return found or [Finding(RULE_DISGUISE, "contains characters that look like others")]
