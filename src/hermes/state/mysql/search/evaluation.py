"""Evaluating conditions on messages whose words are known."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.state.mysql.search.document import EVERYTHING, Text
from hermes.state.mysql.search.expression import Condition, Every, InARow, Lacks, OneOf, Some

Places = Mapping[str, set[int]]
"""For each word, the messages of a span that have it, as positions in the span."""


def find_matching(condition: Condition, places: Places) -> set[int]:
    """The messages that match a condition without an order of words."""
    match condition:
        case OneOf(words):
            return set().union(*(places.get(word, ()) for word in words))
        case InARow():
            raise AssertionError("places do not say which word follows which")
        case Lacks(inner):
            return set(places.get(EVERYTHING, ())) - find_matching(inner, places)
        case Every(conditions):
            # Excluded words come last, when fewer messages are left.
            first, *others = sorted(conditions, key=lambda each: isinstance(each, Lacks))
            found = find_matching(first, places)
            for each in others:
                if not found:
                    break
                found = (
                    found - find_matching(each.condition, places)
                    if isinstance(each, Lacks)
                    else (found & find_matching(each, places))
                )
            return found
        case Some(conditions):
            return set().union(*(find_matching(each, places) for each in conditions))


def holds(condition: Condition, text: Text, ids: Mapping[str, int]) -> bool:
    """Whether a message with these words in this order matches a condition."""
    match condition:
        case OneOf(named):
            return any(ids.get(word) in text.present for word in named)
        case InARow(steps):
            return text.has_in_a_row([[ids[word] for word in step.words if word in ids] for step in steps])
        case Lacks(inner):
            return not holds(inner, text, ids)
        case Every(conditions):
            return all(holds(each, text, ids) for each in conditions)
        case Some(conditions):
            return any(holds(each, text, ids) for each in conditions)


def cover(condition: Condition, weights: Mapping[str, int]) -> tuple[frozenset[str], int]:
    """The rarest words of which every match has at least one, and how many messages have them."""
    match condition:
        case OneOf(words):
            return frozenset(words), sum(weights.get(word, 0) for word in words)
        case InARow(steps):
            return min((cover(step, weights) for step in steps), key=lambda each: each[1])
        case Lacks():
            return frozenset({EVERYTHING}), weights.get(EVERYTHING, 0)
        case Every(conditions):
            return min((cover(each, weights) for each in conditions), key=lambda each: each[1])
        case Some(conditions):
            each = [cover(choice, weights) for choice in conditions]
            return frozenset().union(*(words for words, _ in each)), sum(weight for _, weight in each)
