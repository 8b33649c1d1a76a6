"""Words that look like language, made from syllables so that no word list needs to be shipped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random

ZIPF_EXPONENT = 1.07
ZIPF_SHIFT = 2.7

_ONSETS = (
    *("b", "bl", "br", "c", "ch", "cl", "cr", "d", "dr", "f", "fl", "fr", "g", "gl", "gr", "h", "j", "k", "l", "m"),
    *("n", "p", "pl", "pr", "qu", "r", "s", "sc", "sh", "sl", "sp", "st", "str", "t", "th", "tr", "v", "w", "z"),
)
_VOWELS = ("a", "e", "i", "o", "u", "a", "e", "i", "o", "ai", "ea", "ee", "io", "oa", "ou")
_CODAS = ("", "", "", "", "n", "r", "s", "t", "l", "m", "nd", "nt", "rk", "st", "ck", "ng")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words by rank, drawn as often as Zipf's law says."""

    words: tuple[str, ...]
    cumulative_weights: tuple[float, ...]

    @classmethod
    def of(cls, words: list[str]) -> Vocabulary:
        """The vocabulary in which the first word is the most common one."""
        weights = (1.0 / (rank + ZIPF_SHIFT) ** ZIPF_EXPONENT for rank in range(len(words)))
        return cls(tuple(words), tuple(accumulate(weights)))

    def draw(self, rng: Random, count: int) -> list[str]:
        """`count` words, each independent of the others."""
        return rng.choices(self.words, cum_weights=self.cumulative_weights, k=count)


@cache
def latin(seed: int, size: int = 20_000) -> Vocabulary:
    """Pronounceable lower-case words; the short ones tend to be the common ones."""
    rng = Random(f"latin:{seed}")
    words: dict[str, None] = {}
    while len(words) < size:
        syllables = 1 + min(3, int(len(words) / size * 3 + rng.random()))
        words["".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(syllables))] = None
    return Vocabulary.of(list(words))


@cache
def cjk(seed: int, script: str, size: int = 4_000) -> Vocabulary:
    """Words of one to three characters of `han`, `kana` or `hangul`."""
    rng = Random(f"{script}:{seed}")
    alphabet = _alphabet(script, rng)
    words: dict[str, None] = {}
    while len(words) < size:
        words["".join(rng.choices(alphabet, k=rng.choice((1, 2, 2, 2, 3))))] = None
    return Vocabulary.of(list(words))


def _alphabet(script: str, rng: Random) -> list[str]:
    if script == "hangul":
        return [chr(code) for code in rng.sample(range(0xAC00, 0xD7A4), 900)]
    han = [chr(code) for code in rng.sample(range(0x4E00, 0x9FA6), 2_500)]
    if script == "han":
        return han
    return han[:800] + [chr(code) for code in range(0x3042, 0x3094)] * 10
