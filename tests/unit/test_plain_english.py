"""Code, tests and documents keep to the words of the house: no private or translated-sounding wording."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("src", "docs", "tests", "bench", "tools", "README.md", "SECURITY.md", "CONTRIBUTING.md")
# Not .json: stored conversations are data.
ENDINGS = {".md", ".py", ".sql", ".txt", ".html", ".css", ".tcss", ".bash", ".fish", ".zsh"}

BETTER_WORDS = {
    "somebody": "name who: the user, another process, the caller",
    "someone": "name who: the user, another process, the caller",
    "nobody": "name who does not: no user, no process, no caller",
    "whoever": "name who: the user, the process, the caller that",
    "whomever": "name who: the user, the process, the caller that",
    "anew": "again",
    "to be had": "available, free, in use",
    "(?:go|goes|gone|going) on with": "continue",
    "what hangs on": "what depends on, or name it",
    "brought to the present": "upgraded",
    "(?:is|are) told": "gets, receives, is notified",
    "tells of": "describes, reports",
    "put right": "corrected, repaired",
    "hears? of": "is notified of, learns",
    "is to go": "is deleted, is removed",
    "nothing was said": "there are no messages yet",
    "made out": "recognized, found",
    "of no kind": "unknown",
    "as it were": "leave it out",
    '"""Answers?': 'Return (a function returns; a model answers: "The model that answers ...")',
    "and answers? (?:how|whether|the|an?|what|None)": "and return ...",
}
# Where such a word is right: the user `nobody` of the operating system, and texts of stored messages.
ALLOWED = re.compile(
    r"NOBODY|user `nobody`|belongs to nobody|getpwnam\(\"nobody\"\)|\bnobody(?: =|\.pw_)|Nobody knows where I belong"
)


def phrase(words: str) -> re.Pattern[str]:
    """A pattern for words that may be parts of a name (`for_somebody_else`) or continue on the next line."""
    between_words = r'[ _]*(?:[ _]|\n[ \t]*(?:#|--|//|\*|>)?[ \t]*(?:[rf]?")?)'
    first_letters = "" if words.startswith('"') else r"(?<![a-zA-Z])"
    return re.compile(first_letters + words.replace(" ", between_words) + r"(?![a-zA-Z])", re.IGNORECASE)


PHRASES = {phrase(words): better for words, better in BETTER_WORDS.items()}


def find_phrases(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line number of every unwanted phrase, the phrase and what to write instead."""
    allowed = [found.span() for found in ALLOWED.finditer(text)]
    for pattern, better in PHRASES.items():
        for found in pattern.finditer(text):
            if not any(start <= found.start() < end for start, end in allowed):
                yield text.count("\n", 0, found.start()) + 1, " ".join(found[0].split()), better


def documents() -> Iterator[Path]:
    for place in PLACES:
        path = ROOT / place
        files = [path] if path.is_file() else path.rglob("*")
        yield from (file for file in files if file.suffix in ENDINGS and file != Path(__file__))


def test_no_file_uses_private_or_translated_sounding_words() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{line}: {words!r} -> {better}"
        for path in sorted(documents())
        for line, words, better in find_phrases(path.read_text("utf-8"))
    ]
    assert not places, "plain English is missing here:\n" + "\n".join(places)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("# Asks somebody.", 1, "somebody"),
        ("def test_other():\n    wait_for_somebody_else()", 2, "somebody"),
        ("# a chat that is gone\n# on with", 1, "gone # on with"),
        ('def count():\n    """Answer how many there are."""', 2, '"""Answer'),
        ("Stores it and answers whether it is new.", 1, "and answers whether"),
    ],
)
def test_an_unwanted_phrase_is_found_with_its_line(text: str, line: int, words: str) -> None:
    assert [(where, what) for where, what, _ in find_phrases(text)] == [(line, words)]


@pytest.mark.parametrize(
    "text",
    [
        "NOBODY = 65_534",
        "it switches to the user `nobody` first",
        "EVERYBODY",
        "a model reads and answers",
        "has heard often",
    ],
)
def test_names_of_the_system_and_answers_of_a_model_are_allowed(text: str) -> None:
    assert list(find_phrases(text)) == []
