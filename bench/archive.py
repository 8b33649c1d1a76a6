"""The messages that searches read: conversations of the corpus of many people, with a few planted words.

The corpus alone has no word that is in twenty messages at every size, and no two common words that are never in one
message. Such words are created here and added to the messages; everything else is the corpus of the other workloads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random

from bench import vocabulary
from bench.corpus import SEED, Message, conversation

VERSION = 3
MESSAGES_PER_SESSION = 10
PEOPLE = 10_000
RARE_IN = 20
"""How many messages have each of the rare words."""
RARE_SOURCE = "cli"
RARE_SOURCE_SESSIONS = 6
REGULARS, REGULAR_SESSIONS = 15, 4
"""People with the same number of sessions at every size, so that searches in their sessions are comparable."""

_PLATFORMS = ("telegram", "discord", "slack", "whatsapp")
_PLATFORM_WEIGHTS = (60, 24, 12, 4)
_RARE, _PAIRS = 15, 3
_TENTHS = 2
"""In how many tenths of the messages each word of a pair is."""
_FIRST_MOMENT = 1_735_689_600.0
_SECONDS_BETWEEN_SESSIONS, _SECONDS_BETWEEN_MESSAGES = 60.0, 20.0


@dataclass(frozen=True, slots=True)
class Planted:
    """The words that only the archive has."""

    rare: tuple[str, ...]
    apart: tuple[tuple[str, str], ...]
    """Pairs of common words that no message has both of."""
    never_adjacent: tuple[tuple[str, str], ...]
    """Pairs of common words that are in the same messages, but never in this order."""


@dataclass(frozen=True, slots=True)
class Part:
    """One session of the archive."""

    session_id: str
    source: str
    user_id: str | None
    messages: list[Message]


@cache
def planted() -> Planted:
    """Words like those of the corpus, but not in it, and no beginnings of its words: texts are cut anywhere."""
    beginnings = {word[:length] for word in vocabulary.latin(SEED).words for length in range(1, len(word) + 1)}
    others = (word for word in vocabulary.latin(SEED + 1).words if len(word) > 4 and word not in beginnings)
    common = [(next(others), next(others)) for _ in range(2 * _PAIRS)]
    rare = [word for word in others if len(word) > 7][:_RARE]
    return Planted(tuple(rare), tuple(common[:_PAIRS]), tuple(common[_PAIRS:]))


def person(number: int) -> tuple[str, str]:
    """The platform and the user id of one of the people."""
    source = Random(f"person:{SEED}:{number}").choices(_PLATFORMS, weights=_PLATFORM_WEIGHTS)[0]
    return source, f"user{number:05d}"


def regular(number: int) -> tuple[str, str]:
    """The platform and the user id of one of the regulars, who are not among the other people."""
    return person(PEOPLE + number)


def sessions(messages: int) -> Iterator[Part]:
    """Sessions with `messages` messages together, at least a thousand."""
    rare = _places_of_rare_words(messages)
    count = messages // MESSAGES_PER_SESSION
    taken = _taken_sessions(count)
    for number in range(count):
        yield _part(number, taken.get(number) or person(number % PEOPLE), rare)


def later_sessions(messages: int, after: int) -> Iterator[Part]:
    """The sessions after an archive of `after` messages: no rare words, and no owner that a query uses."""
    first = after // MESSAGES_PER_SESSION
    for number in range(first, first + messages // MESSAGES_PER_SESSION):
        yield _part(number, person(number % PEOPLE), {})


def _taken_sessions(count: int) -> dict[int, tuple[str, str | None]]:
    """The sessions of the terminal and of the regulars, spread over the archive."""
    rng = Random(f"taken:{SEED}")
    wanted: list[tuple[tuple[str, str | None], int]] = [((RARE_SOURCE, None), RARE_SOURCE_SESSIONS)]
    wanted += [(regular(number), REGULAR_SESSIONS) for number in range(REGULARS)]
    taken: dict[int, tuple[str, str | None]] = {}
    for who, share in wanted:
        for turn in range(share):
            number = (turn * count + rng.randrange(count)) // share
            while number in taken:
                number = (number + 1) % count
            taken[number] = who
    return taken


def _part(number: int, who: tuple[str, str | None], rare: dict[int, list[str]]) -> Part:
    return Part(f"20250101_{number // 10_000:06d}_{number:08x}", *who, _messages(number, rare))


def _messages(number: int, rare: dict[int, list[str]]) -> list[Message]:
    started = _FIRST_MOMENT + number * _SECONDS_BETWEEN_SESSIONS
    found: list[Message] = []
    for position, message in zip(range(MESSAGES_PER_SESSION), conversation(number), strict=False):
        place = number * MESSAGES_PER_SESSION + position
        words = " ".join([*_common_words(place), *rare.get(place, ())])
        message["content"] = f"{message.get('content', '')} {words}".rstrip()
        message["timestamp"] = started + position * _SECONDS_BETWEEN_MESSAGES
        found.append(message)
    return found


def _common_words(place: int) -> Iterator[str]:
    """The planted words of a message, which depend only on its number: there is no order that an index could use."""
    words = planted()
    for number, (one, other) in enumerate(words.apart):
        tenth = _tenth(place, number)
        if tenth < _TENTHS:
            yield one
        elif tenth < 2 * _TENTHS:
            yield other
    for number, (one, other) in enumerate(words.never_adjacent):
        if _tenth(place, _PAIRS + number) < _TENTHS:
            yield f"{other} {one}"


def _tenth(place: int, salt: int) -> int:
    mixed = (place * 16 + salt + 1) * 0x9E3779B97F4A7C15 % 2**64
    return (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9 % 2**64 // 2**32 % 10


def _places_of_rare_words(messages: int) -> dict[int, list[str]]:
    """The positions of the rare words: spread over the archive, the same number of each at every size."""
    places: dict[int, list[str]] = {}
    for word in planted().rare:
        rng = Random(f"rare:{SEED}:{word}")
        for number in range(RARE_IN):
            place = (number * messages + rng.randrange(messages)) // RARE_IN
            places.setdefault(place, []).append(word)
    return places
