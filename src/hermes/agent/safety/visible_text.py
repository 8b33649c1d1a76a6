"""Text for approval requests: nothing in it can hide, act on the terminal, or look like something else."""

from __future__ import annotations

import re
from unicodedata import bidirectional, category, combining, name, normalize

# Alphabets with letters that look like Latin ones.
_ALPHABETS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "DESERET", "GEORGIAN")
_TWINS = frozenset(
    "аеорсухіјѕһԁԛԝӏԍвкмнтАВЕЗКМНОРСТУХІЈЅԌԚԜ"  # Cyrillic
    "ονραυικωγΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳ"  # Greek
    "օոսցԁհյՕՍԼ"  # Armenian
    "ɑɡıȷǀǃʟꓐꓑꓓꓔꓚƖ"
)
_MARKS = frozenset(
    "‐‑‒–—―−⁃➖⎯∕⁄⧸⟋╱᜵∖⧵⟍⧹╲"  # like - / and \\
    "‘’‚‛“”„‟′″‵‶´΄՚՝〃ᑊ"  # like quotes
    "∣❘│┃⎮￨‖ᛁⵏ"  # like |
    "׃∶꞉⁚։ꓽ᛬⁏ꓸꓹ⸱⸲"  # like : ; . and ,
    "‹›❮❯⟨⟩ᐸᐳ∼⁓∗⁎✱᛭➕᐀꓿⹀⌃⁒ⵑ"  # like < > ~ * + = ^ % and !
)

# Small capitals and letters of phonetic alphabets, many of which look like plain ones.
_PHONETIC = re.compile("[\u0250-\u02af\u1d00-\u1dbf\ua720-\ua7ff\uab30-\uab6f]")

# Characters that Unicode allows to ignore, characters that most fonts draw as a blank, and parts of Korean syllables
# without a width (whole syllables are other characters).
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160-\u11ff\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ud7b0-\ud7ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\ufffc\U00013441\U00013442\U00016fe4\U0001bca0-\U0001bca3\U0001d159"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_MODIFIERS = re.compile("[\u02b0-\u02ff]")
"""Small signs that look like quotes, blanks, minus or colon."""

_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
_OVERLAY = 1
_MAX_MARKS = 3
"""How many combining marks in a row a letter may have."""

_WORD = re.compile(r"[^\W_]+")
_BLANK_LINES = re.compile(r"(?<=\n)(?: *\n){3,}")
_SPACES = re.compile(r" {21,}")


def make_visible(text: str) -> str:
    """Return `text` with escapes for characters that are invisible, act on a terminal, or look like others.

    Right-to-left letters are escaped too, since they change the order of the text around them. Line breaks stay.
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks, before = 0, ""
    for char in _WORD.sub(_visible_word, text):
        is_mark = category(char).startswith("M")
        marks = marks + 1 if is_mark else 0
        is_misplaced = is_mark and (marks > _MAX_MARKS or not (marks > 1 or before.isalpha()))
        shown.append(_escape(char) if is_misplaced else _visible_char(char))
        before = char
    return "".join(shown)


def make_path_visible(path: object) -> str:
    """Return a path as `make_visible` shows it, on one line: a line break in a name must not start a new line."""
    return make_visible(str(path)).replace("\n", r"\n")


def fold_blanks(text: str) -> str:
    """Return `text` with a count instead of long runs of blank lines and blanks, which could push text off screen."""
    text = _BLANK_LINES.sub(lambda found: f"[... {found[0].count(chr(10))} blank lines]\n", f"\n{text}\n")[1:-1]
    return _SPACES.sub(lambda found: f" [... {len(found[0])} blanks] ", text)


def has_disguise(text: str) -> bool:
    """Whether `text` has characters that are not what they look like."""
    return any(line != make_visible(line) for line in text.replace("\t", " ").split("\n"))


def _visible_word(found: re.Match[str]) -> str:
    """Return a word of one alphabet unchanged, or a mixed word with its foreign letters escaped."""
    word = found[0]
    if word.isascii():
        return word
    is_mixed = any(char.isascii() and char.isalpha() for char in word)
    if is_mixed or all(char in _TWINS or char.isdecimal() or _PHONETIC.match(char) for char in word):
        return "".join(_escape(char) if _is_foreign(char) else char for char in word)
    return word


def _is_foreign(char: str) -> bool:
    if char.isascii():
        return False
    return char in _TWINS or _PHONETIC.match(char) is not None or name(char, "").startswith(_ALPHABETS)


def _visible_char(char: str) -> str:
    if char == "\n" or (char.isascii() and char.isprintable()):
        return char
    is_odd = (
        not char.isprintable()
        or char in _MARKS
        or _INVISIBLE.match(char) is not None
        or _MODIFIERS.match(char) is not None
        or bidirectional(char) in _RIGHT_TO_LEFT
        or combining(char) == _OVERLAY
        or category(char) == "Me"
        or any(each.isascii() for each in normalize("NFKC", char))
    )
    return _escape(char) if is_odd else char


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
