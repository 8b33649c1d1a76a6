"""Which of the found messages is shown first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from hermes.query.tree import Leaf

HEAD = 2_000
"""How many characters of a message are looked at."""

_ROLE_WEIGHT = {"assistant": 1.0, "user": 0.95, "tool": 0.7}
_OTHER_ROLE = 0.8
_SATURATION = 1.2
_LENGTH_SHARE = 0.35
"""How much a long text weighs less. Little: a short question must not beat the answer to it."""
_RECENCY_SHARE = 0.1
_TOGETHER = 0.5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message that matches, as far as ranking looks at it."""

    message_id: int
    role: str
    head: str


def ranked(candidates: Sequence[Candidate], wanted: Sequence[Leaf], together: str) -> list[int]:
    """The ids, best first; `candidates` come newest first, which decides between equals.

    Words that few of the candidates have weigh more, a word said often weighs more but not in proportion, and so does
    a text that has the whole query in one place.
    """
    needles = [leaf.text for leaf in dict.fromkeys(wanted)]
    heads = [candidate.head[:HEAD].casefold() for candidate in candidates]
    mean_length = sum(map(len, heads)) / max(1, len(heads)) or 1
    damping = [_SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * len(head) / mean_length) for head in heads]
    scores = [0.0] * len(heads)
    for needle in needles:
        said = [head.count(needle) for head in heads]
        rarity = log(1 + len(heads) / (1 + len(heads) - said.count(0)))
        for at, often in enumerate(said):
            weight = often or 0.5  # it is in there, further down or spelled in another way
            scores[at] += rarity * weight / (weight + damping[at])
    for age, (candidate, head) in enumerate(zip(candidates, heads, strict=True)):
        scores[age] *= _ROLE_WEIGHT.get(candidate.role, _OTHER_ROLE) * (1 - _RECENCY_SHARE * age / len(heads))
        if len(needles) > 1 and together in head:
            scores[age] *= 1 + _TOGETHER
    return [candidates[at].message_id for at in sorted(range(len(scores)), key=lambda at: (-scores[at], at))]
