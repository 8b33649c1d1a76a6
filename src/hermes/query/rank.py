"""Order the found messages, best first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from hermes.query.tree import Leaf

HEAD = 2_000
"""How many characters of a message count for ranking."""

_ROLE_WEIGHT = {"assistant": 1.0, "user": 0.95, "tool": 0.5}
_OTHER_ROLE = 0.8
_MACHINERY = 0.01
_SATURATION = 1.2
_MOST_MENTIONS = 4
"""More mentions count no more: a tool that prints a word twenty times says it no better than a person does once."""
_LENGTH_SHARE = 0.35
"""How much less a long text weighs. Little: a short question must not beat the answer to it."""
_RECENCY_SHARE = 0.1
_TOGETHER = 0.5
_UNSEEN, _UNSEEN_CHOICE = 0.5, 0.05
"""The weight of a word that is not in the head: it is further down or spelled in another way. One of several
alternatives is more likely not in the text at all."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The fields of a matching message that ranking needs."""

    message_id: int
    role: str
    head: str
    is_machinery: bool = False
    """Whether it is only the call or the result of an earlier search."""


def rank(
    candidates: Sequence[Candidate],
    wanted: Sequence[Leaf],
    *,
    is_choice: bool = False,
    rarities: Mapping[str, float] | None = None,
) -> list[int]:
    """Return the ids, best first; `candidates` come newest first, which decides between equals.

    `rarities` says how much a word weighs that few messages of the store have; without it, words that few of the
    candidates have weigh more. A repeated word weighs more but not in proportion, and so does
    a text that has the whole query in one place.
    """
    together = " ".join(leaf.text for leaf in wanted)
    needles = [leaf.text for leaf in dict.fromkeys(wanted)]
    heads = [candidate.head[:HEAD].casefold() for candidate in candidates]
    mean_length = sum(map(len, heads)) / max(1, len(heads)) or 1
    # A message whose match is in a tool call has an empty head, and is not better for being short.
    damping = [
        _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * min(max(len(head) / mean_length, 0.5), 2.0))
        for head in heads
    ]
    unseen = _UNSEEN_CHOICE if is_choice else _UNSEEN
    scores = [0.0] * len(heads)
    for needle in needles:
        mentions = _mentions(heads, needle)
        rarity = (rarities or {}).get(needle) or log(1 + len(heads) / (1 + len(heads) - mentions.count(0)))
        for at, often in enumerate(mentions):
            weight = min(often, _MOST_MENTIONS) or unseen
            scores[at] += rarity * weight / (weight + damping[at])
    for age, (candidate, head) in enumerate(zip(candidates, heads, strict=True)):
        role_weight = _MACHINERY if candidate.is_machinery else _ROLE_WEIGHT.get(candidate.role, _OTHER_ROLE)
        scores[age] *= role_weight * (1 - _RECENCY_SHARE * age / len(heads))
        if len(needles) > 1 and together in head:
            scores[age] *= 1 + _TOGETHER
    return [candidates[at].message_id for at in sorted(range(len(scores)), key=lambda at: (-scores[at], at))]


def _mentions(heads: Sequence[str], needle: str) -> list[int]:
    if len(needle) > 3 or not needle.isascii():
        return [head.count(needle) for head in heads]
    # Almost every text contains a few given letters; only the start of a word counts.
    begins = re.compile(rf"\b{re.escape(needle)}")
    return [len(begins.findall(head)) if needle in head else 0 for head in heads]
