"""The trigrams by which parts of words are found: any three characters that stand side by side.

Scripts without spaces have none. They would be a fourth of the index, and the pairs of the other index find any part.
"""

from __future__ import annotations

from hermes.query import analyze

MAX_ASKED = 10
"""So many of a part are asked for; the messages that have them are read anyway."""


def text_of(text: str) -> str:
    """What of a text is cut into trigrams."""
    return " ".join(" ".join(analyze.spaced(analyze.fold(text))).split())


def asked_of(part: str) -> list[str]:
    """Those of a folded part of a text, but no more than are worth asking for."""
    stretches = [stretch.strip() for stretch in analyze.spaced(part)]
    found = list(dict.fromkeys(each[at : at + 3] for each in stretches for at in range(len(each) - 2)))
    return found[:: -(-len(found) // MAX_ASKED)] if found else []
