"""The queries, by kind; every query is made from words of the archive."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, permutations, repeat
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from bench import archive, vocabulary
from bench.corpus import SEED, Message, conversation

if TYPE_CHECKING:  # the workers of other programs do not have it
    from hermes_state import Sort


LIMIT = 20
BAR_MS, SUBSTRING_BAR_MS, NO_HIT_BAR_MS, SENTENCE_BAR_MS = 10.0, 150.0, 100.0, 20.0
PER_KIND = 15
_SAMPLE_SESSIONS = 400
_FEW = 5
_MIDDLING = (8, 120)
"""The messages of the sample that a middling word is in."""

_han = re.compile("[\u4e00-\u9fff]+")
_latin = re.compile("[a-z]+")


@dataclass(frozen=True, slots=True)
class Question:
    """One query with its filters."""

    text: str
    owner: tuple[str, str] | None = None
    """A platform and a user id."""
    source: str | None = None
    sort: Sort | None = None
    is_sentence: bool = False
    """Whether the text is a whole question: ours passes it to `session_search`, others get its words joined by OR."""

    @property
    def words_or(self) -> str:
        """The text for a store that has no search for questions."""
        return " OR ".join(self.text.split()) if self.is_sentence else self.text


@dataclass(frozen=True, slots=True)
class Kind:
    """Queries of one kind, their time limit, and how many results a correct search has."""

    name: str
    questions: tuple[Question, ...]
    bar_ms: float = BAR_MS
    least: int = LIMIT
    most: int = LIMIT


def kinds() -> list[Kind]:
    """Every kind of query; the same for archives of every size."""
    sample = _Sample(message for number in range(_SAMPLE_SESSIONS) for message in _session(number))
    words, common, planted = vocabulary.latin(SEED).words, sample.common_words(), archive.planted()
    pairs = [f"{one} {other}" for one, other in permutations(common, 2)]
    owners = [archive.regular(number) for number in range(archive.REGULARS)]
    return [
        _kind("a rare word", planted.rare),
        _kind("a common word", common),
        _kind("two common words", pairs),
        _kind("a common and a rare word", _zipped("{} {}", common, planted.rare), least=1),
        _kind("a phrase of common words", (f'"{pair}"' for pair in pairs)),
        _kind("a prefix, three letters, of many words", (f"{each}*" for each in _shared(words, 3))),
        _kind("a prefix, two letters, of many words", (f"{each}*" for each in _shared(words, 2))),
        _kind("a prefix of few words", (f"{each}*" for each in _hardly_shared(words)), least=1),
        _kind("OR", _zipped("{} OR {}", common[::-1], planted.rare)),
        _kind("NOT", (f"{one} NOT {other}" for one, other in permutations(common, 2))),
        _kind("one CJK character", sample.runs(1)),
        _kind("two CJK characters", sample.runs(2)),
        _kind("three CJK characters", sample.runs(3)),
        _kind("a Latin word and two CJK characters", sample.mixed(), least=1),
        _kind("part of common words", (f"*{each}*" for each in _inner(words[:2_000])), SUBSTRING_BAR_MS),
        _kind("part of a rare word", (f"*{each[2:-1]}*" for each in planted.rare), SUBSTRING_BAR_MS, least=1),
        _kind("part of no word", (f"*{each}*" for each in _nowhere(words)), SUBSTRING_BAR_MS, 0, 0),
        _kind("two common words, no hit", (f"{a} {b}" for a, b in planted.apart), NO_HIT_BAR_MS, 0, 0),
        _kind(
            "a phrase of common words, no hit",
            (f'"{a} {b}"' for a, b in planted.never_adjacent),
            NO_HIT_BAR_MS,
            0,
            0,
        ),
        Kind("a common word of one owner", tuple(Question(common[0], owner=each) for each in owners)),
        Kind("a common word, rare source", tuple(Question(each, source=archive.RARE_SOURCE) for each in common)),
        Kind("a common word, newest first", tuple(Question(each, sort="newest") for each in common)),
        _sentences("a question of ten words, five of them common", sample.sentences(5, ())),
        _sentences("a question of ten words, one of them rare", sample.sentences(5, planted.rare)),
        _sentences("a question of ten common words", sample.sentences(10, ())),
        _sentences("a question of one owner, five of ten words common", sample.sentences(5, ()), owners),
    ]


def write(path: Path, found: list[Kind]) -> None:
    """Store the queries for the workers, which must not spend time on creating them."""
    path.write_text(json.dumps([asdict(kind) for kind in found], ensure_ascii=False))


def read(path: Path) -> list[Kind]:
    """Read the queries that `write` stored."""
    return [
        Kind(**{**kind, "questions": tuple(Question(**each) for each in kind["questions"])})
        for kind in json.loads(path.read_text())
    ]


def _kind(name: str, texts: Iterable[str], bar_ms: float = BAR_MS, least: int = LIMIT, most: int = LIMIT) -> Kind:
    return Kind(name, tuple(Question(text) for text in islice(texts, PER_KIND)), bar_ms, least, most)


def _sentences(name: str, texts: Iterable[str], owners: Iterable[tuple[str, str] | None] = repeat(None)) -> Kind:
    asked = (Question(text, owner, is_sentence=True) for text, owner in zip(texts, owners, strict=False))
    return Kind(name, tuple(asked), SENTENCE_BAR_MS, 1, LIMIT)


def _session(number: int) -> Iterator[Message]:
    return islice(conversation(number), archive.MESSAGES_PER_SESSION)


class _Sample:
    """How many of some messages have each word, and each run of up to three Chinese characters."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._texts = [message.get("content", "").lower() for message in messages]
        self._words = Counter(word for text in self._texts for word in set(_latin.findall(text)))

    def common_words(self) -> list[str]:
        """The words that more than half of the messages have."""
        return [word for word, count in self._words.most_common() if count > len(self._texts) / 2]

    def sentences(self, common: int, rare: Sequence[str]) -> Iterator[str]:
        """Ten words: some common ones, one of the rare ones if there are any, and words of some messages."""
        words = [word for word, _ in self._words.most_common(60)]
        middling = [word for word, count in self._words.items() if _MIDDLING[0] < count < _MIDDLING[1]]
        for number in range(PER_KIND):
            draw = Random(f"sentence:{SEED}:{number}")
            rest = list(rare[number % len(rare) :][:1]) if rare else []
            chosen = draw.sample(words, common) + rest
            chosen += draw.sample(middling, 10 - len(chosen))
            draw.shuffle(chosen)
            yield " ".join(chosen)

    def runs(self, length: int) -> list[str]:
        """The runs of characters that most messages have."""
        found = Counter(run for text in self._texts for run in _runs(text, length))
        return [run for run, _ in found.most_common(_FEW)]

    def mixed(self) -> list[str]:
        """A word and two characters, the pairs that most messages have."""
        found = Counter(
            f"{word} {run}"
            for text in self._texts
            for run in _runs(text, 2)
            for word in set(_latin.findall(text))
            if len(word) > 2
        )
        return [text for text, _ in found.most_common(_FEW)]


def _runs(text: str, length: int) -> set[str]:
    return {run[at : at + length] for run in _han.findall(text) for at in range(len(run) - length + 1)}


def _zipped(form: str, some: Iterable[str], others: Iterable[str]) -> list[str]:
    cycle = list(some)
    return [form.format(cycle[number % len(cycle)], other) for number, other in enumerate(others)]


def _shared(words: Iterable[str], length: int) -> list[str]:
    """The prefixes that most words have."""
    found = Counter(word[:length] for word in words if len(word) > length)
    return [beginning for beginning, _ in found.most_common(_FEW)]


def _hardly_shared(words: Iterable[str]) -> list[str]:
    """Prefixes that two or three words have."""
    found = Counter(word[:6] for word in words if len(word) > 6)
    return [beginning for beginning, count in found.items() if count in (2, 3)]


def _inner(words: Iterable[str]) -> list[str]:
    """Four letters from the inside of words, those that most words have."""
    found = Counter(word[at : at + 4] for word in words for at in range(1, len(word) - 4))
    return [part for part, _ in found.most_common(PER_KIND)]


def _nowhere(words: Sequence[str]) -> Iterator[str]:
    """Six letters whose trigrams are all common, but which are in no word and in no two words written as one."""
    text = " ".join(words)
    starts = {word[:length] for word in words for length in range(1, 6)}
    ends = {word[-length:] for word in words for length in range(1, 6)}
    trigrams = Counter(word[at : at + 3] for word in words for at in range(len(word) - 2))
    common = [trigram for trigram, _ in trigrams.most_common(300)]
    for one, other in permutations(common, 2):
        joined = one + other
        is_common = all(trigrams[joined[at : at + 3]] > 100 for at in range(4))
        if is_common and joined not in text and not any(_splits(joined, ends, starts)):
            yield joined


def _splits(joined: str, ends: Container[str], starts: Container[str]) -> Iterator[bool]:
    return (joined[:at] in ends and joined[at:] in starts for at in range(1, len(joined)))
